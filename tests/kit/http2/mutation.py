"""Frames of HTTP/2 that are nearly right: whole answers with a few random changes."""

import random
from collections.abc import Iterator, Sequence

_HEAD_BYTES = 9
_MOST_CHANGES = 3
_LARGEST_STREAM = 2**31 - 1


def mutate_frames(content: bytes, chance: random.Random) -> bytes:
    """Frames with one to three changes: some are cut, doubled or swapped, and some say what is not so."""
    frames = [bytearray(frame) for frame in split_frames(content)]
    for _ in range(chance.randint(1, _MOST_CHANGES)):
        if frames:
            _change(frames, chance)
    return b"".join(frames)


def split_frames(content: bytes) -> Iterator[bytes]:
    """Take frames apart; what is left at the end may be less than one."""
    while content:
        end = _HEAD_BYTES + int.from_bytes(content[:3])
        yield content[:end]
        content = content[end:]


def shuffle_answers(answers: Sequence[bytes], chance: random.Random) -> bytes:
    """The frames of several answers in between each other; those of each stay in their order."""
    left = [list(split_frames(answer)) for answer in answers if answer]
    mixed = []
    while left:
        frames = chance.choice(left)
        mixed.append(frames.pop(0))
        left = [each for each in left if each]
    return b"".join(mixed)


def split_anywhere(content: bytes, chance: random.Random) -> Iterator[bytes]:
    """The same in up to four pieces."""
    cuts = sorted(chance.randint(0, len(content)) for _ in range(chance.randint(0, 3)))
    for begin, end in zip([0, *cuts], [*cuts, len(content)], strict=True):
        if begin < end:
            yield content[begin:end]


def _change(frames: list[bytearray], chance: random.Random) -> None:
    place = chance.randrange(len(frames))
    frame = frames[place]
    match chance.randrange(10):
        case 0:
            del frame[chance.randint(0, len(frame)) :]
        case 1:
            frames.insert(chance.randint(0, len(frames)), bytearray(frame))
        case 2:
            other = chance.randrange(len(frames))
            frames[place], frames[other] = frames[other], frame
        case 3:
            del frames[place]
        case 4 if frame:
            frame[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)
        case 5:
            frame[:3] = chance.choice((0, 1, len(frame), 2**14, 2**14 + 1, 2**24 - 1)).to_bytes(3)
        case 6:
            frame[3:4] = bytes((chance.randrange(12),))
        case 7:
            frame[4:5] = bytes((chance.randrange(256),))
        case 8:
            stream = chance.choice((0, 1, 2, 3, 5, 9, 101, _LARGEST_STREAM, chance.randrange(2**32)))
            frame[5:9] = stream.to_bytes(4)
        case _:
            at = chance.randint(0, len(frame))
            frame[at:at] = chance.randbytes(chance.randint(1, 20))
