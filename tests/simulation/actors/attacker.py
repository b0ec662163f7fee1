"""Who is not part of Oku: somebody at the broker who records, replays, misdelivers and forges messages.

And a broken worker that has the key, and says of leases what is not its to say, or cannot be true.
"""

import random
from collections.abc import Callable
from typing import Any

import msgspec
from tests.simulation.outside.broker import Broker
from tests.simulation.outside.target import PROTOCOL_ERROR

from oku_core.accounting.outcome import OUTCOMES, ReasonCount
from oku_core.messaging.checkpoint import Checkpoint, CheckpointBatch, Part
from oku_core.messaging.codec import decode_checkpoints, seal_checkpoints
from oku_core.messaging.signing import MessageKind, RejectedMessageError, SealedMessage, Signer

LIE = 100_000
"""A checkpoint with a higher number is a lie; a worker that does not lie never sends so many."""
_FORGED = Signer(b"not the key of anybody here")


class Attacker:
    """Somebody at the broker.

    Args:
        broker: where the messages are.
        chance: decides which message, and what is done with it.
        signer: of the real key, for a worker that is broken.
        note: takes what happens, for the story.
        find_done: how far a lease is, as committed.
    """

    def __init__(
        self,
        broker: Broker,
        chance: random.Random,
        signer: Signer,
        note: Callable[[str], None],
        find_done: Callable[[str], int],
    ) -> None:
        self._broker = broker
        self._chance = chance
        self._signer = signer
        self._note = note
        self._find_done = find_done

    def replay(self) -> None:
        """Send some messages that were sent before again, to where they were sent."""
        for _ in range(self._chance.randint(1, 20)):
            if found := self._pick(lambda _: True):
                self._note(f"an old message to {found[0]} is replayed")
                self._put(*found)

    def misdeliver(self) -> None:
        """Put a message of one queue into another."""
        found = self._pick(lambda _: True)
        other = self._pick(lambda name: found is not None and name != found[0])
        if found and other:
            self._note(f"a message to {found[0]} comes to {other[0]}")
            self._put(other[0], found[1])

    def forge(self) -> None:
        """Send a message that nobody with the key has signed, or that was changed since."""
        found = self._pick(lambda _: True)
        if found is None:
            return
        name, sealed = found
        how = self._chance.choice(("signed with another key", "changed", "signed as another kind", "cut off"))
        self._note(f"a message to {name} is {how}")
        message = msgspec.convert(sealed, SealedMessage)
        if how == "signed with another key":
            forged = _FORGED.seal(_find_kind(name), message.body.encode())
        elif how == "changed":
            forged = msgspec.structs.replace(message, body=message.body.replace("1", "2"))
        elif how == "signed as another kind":
            kind = self._chance.choice([kind for kind in MessageKind if kind != _find_kind(name)])
            forged = self._signer.seal(kind, message.body.encode())
        else:
            forged = msgspec.structs.replace(message, body=message.body[: len(message.body) // 2])
        self._put(name, msgspec.to_builtins(forged))

    def speak_as_worker(self) -> None:
        """Send a checkpoint, signed with the key, that is not true."""
        found = self._pick(lambda name: name == "checkpoints")
        if found is None:
            return
        try:
            batch = decode_checkpoints(self._signer, msgspec.json.encode([[found[1]], {}, {}]))
        except RejectedMessageError:
            return  # a message that was put there before: it may name leases that do not exist
        if not batch.checkpoints:
            return
        # What it says must be seen to be untrue: nobody can tell a lie from the truth if both are possible.
        moved = all(self._find_done(each.lease) > 0 for each in batch.checkpoints)
        lie = self._chance.choice((_claim_as_another, _add_answers, _grow, *((_take_back,) if moved else ())))
        self._note(f"a worker that has the key lies: {(lie.__doc__ or '').lower()}")
        self._broker.put("checkpoints", seal_checkpoints(self._signer, lie(batch)))

    def _pick(self, suits: Callable[[str], bool]) -> tuple[str, Any] | None:
        found = [message for message in self._broker.history if suits(message[0])]
        return self._chance.choice(found) if found else None

    def _put(self, name: str, payload: Any) -> None:
        if name.startswith("*"):
            self._broker.spread(name, payload)
        else:
            self._broker.put(name, payload)


def _claim_as_another(batch: CheckpointBatch) -> CheckpointBatch:
    """All of a lease is done, says another process than its own."""
    checkpoints = [
        msgspec.structs.replace(
            each,
            sequence=each.sequence + LIE,
            done=each.end,
            in_flight=[],
            parts=[_build_part(each, each.end, int(each.figures.ended_at))],
            is_final=True,
        )
        for each in batch.checkpoints
    ]
    return msgspec.structs.replace(batch, incarnation="ffffffffffffffff", checkpoints=checkpoints)


def _take_back(batch: CheckpointBatch) -> CheckpointBatch:
    """Less is done than before, and its number is higher."""
    checkpoints = [
        msgspec.structs.replace(
            each, sequence=each.sequence + LIE, done=0, in_flight=[], parts=[_build_part(each, 0, 0)]
        )
        for each in batch.checkpoints
    ]
    return msgspec.structs.replace(batch, checkpoints=checkpoints)


def _add_answers(batch: CheckpointBatch) -> CheckpointBatch:
    """There are more answers than requests."""
    checkpoints = [
        msgspec.structs.replace(
            each,
            sequence=each.sequence + LIE,
            parts=[_build_part(each, each.covered + 7, int(each.figures.ended_at))],
        )
        for each in batch.checkpoints
    ]
    return msgspec.structs.replace(batch, checkpoints=checkpoints)


def _grow(batch: CheckpointBatch) -> CheckpointBatch:
    """A lease has more positions than it has."""
    checkpoints = [
        msgspec.structs.replace(
            each,
            sequence=each.sequence + LIE,
            done=10**9,
            end=10**9,
            in_flight=[],
            parts=[_build_part(each, 10**9, int(each.figures.ended_at))],
        )
        for each in batch.checkpoints
    ]
    return msgspec.structs.replace(batch, checkpoints=checkpoints)


def _build_part(each: Checkpoint, failed: int, second: int) -> Part:
    """A part of a closed run in which all has failed, in a phase that the worker has told of."""
    phase = each.parts[-1].phase if each.parts else ""
    outcomes = [0] * len(OUTCOMES)
    outcomes[PROTOCOL_ERROR] = failed
    per_second = {second: list(outcomes)} if failed else {}
    reasons = [ReasonCount(PROTOCOL_ERROR, "forged", failed, 0, 0)] if failed else []
    return Part(phase=phase, outcomes=outcomes, reasons=reasons, per_second=per_second)


def _find_kind(name: str) -> MessageKind:
    for prefix, kind in (
        ("leases", MessageKind.LEASE),
        ("checkpoints", MessageKind.CHECKPOINT),
        ("*progress", MessageKind.PROGRESS),
    ):
        if name.startswith(prefix):
            return kind
    return MessageKind.ORDER
