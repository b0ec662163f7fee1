"""Bytes that are nearly right: samples with a few random changes, the same ones for the same seed."""

import random
from collections.abc import Sequence

_TOKENS = (
    *(b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b";", b",", b"%", b"{", b"}", b"[", b'"', b"\xff"),
    *(b"\xc3\x28", b"0", b"-1", b"18446744073709551616", b"chunked", b"HTTP/1.0", b"HTTP/2.0"),
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: 0\r\n",
    b"Connection: close\r\n",
    b"Upgrade: x\r\n",
    b"Expect: 100-continue\r\n",
    b"A" * 9000,
    b"X: y\r\n" * 300,
)
_MOST_CHANGES = 4


def mutate(sample: bytes, seed: str) -> bytes:
    """A sample with one to four changes: bits, bytes, pieces, and what parsers stumble over."""
    chance = random.Random(seed)
    content = bytearray(sample)
    for _ in range(chance.randint(1, _MOST_CHANGES)):
        at = chance.randint(0, len(content))
        end = min(len(content), at + chance.randint(1, 12))
        match chance.randrange(6):
            case 0 if at < len(content):
                content[at] ^= 1 << chance.randrange(8)
            case 1:
                content[at:at] = chance.choice(_TOKENS)
            case 2:
                del content[at:end]
            case 3:
                content[at:at] = content[at:end]
            case 4:
                content[at:end] = chance.choice(_TOKENS)
            case _:
                del content[at:]
    return bytes(content)


def mutate_one_of(samples: Sequence[bytes], seed: str) -> bytes:
    """One of several samples, changed."""
    return mutate(random.Random(f"{seed} sample").choice(samples), seed)
