"""Positions and reasons of failed requests in one part of a lease, counted as they end."""

from collections.abc import Iterator

from oku_core.accounting.index_ranges import RangeSet, Room
from oku_core.accounting.outcome import MOST_REASONS, OTHER, OUTCOMES, Outcome, ReasonCount
from oku_core.messaging.checkpoint import MOST_REASON_RANGES
from oku_core.messaging.reason_runs import find_runs

_NO_ROOM = Room(0)


class _Reason:
    """The requests that failed for one reason; `positions` has those for which there was room."""

    __slots__ = ("first", "last", "positions", "requests")

    def __init__(self, position: int, room: Room) -> None:
        self.requests = 0
        self.first = self.last = position
        self.positions = RangeSet(room)


class Failures:
    """Reasons and positions of failed requests. They only grow.

    Which positions have failed does not depend on their reasons, which have room of their own.

    Args:
        room: for ranges of positions, which all parts of a lease share.
        reason_room: for ranges of positions by their reasons, which all parts of a lease share, too.
    """

    __slots__ = ("_failed", "_reason_room", "_reasons", "_room")

    def __init__(self, room: Room, reason_room: Room | None = None) -> None:
        self._room = room
        self._reason_room = reason_room or Room(MOST_REASON_RANGES)
        self._reasons: dict[tuple[int, str], _Reason] = {}
        self._failed: dict[int, RangeSet] = {}

    def record(self, outcome: int, position: int, reason: str) -> None:
        """A request has failed.

        Args:
            outcome: as what, as an index; not `ok`.
            position: where in its lease it is.
            reason: why, a text of the catalogue.
        """
        counted = self._reasons.get((outcome, reason)) or self._add_reason(outcome, position, reason)
        counted.requests += 1
        if position > counted.last:
            counted.last = position
        elif position < counted.first:
            counted.first = position
        counted.positions.add(position)
        failed = self._failed.get(outcome)
        if failed is None:
            failed = self._add_failed(outcome)
        failed.add(position)

    def record_many(self, outcome: int, positions: range, reason: str, requests: int | None = None) -> None:
        """Several requests have failed in the same way.

        Args:
            outcome: as what, as an index; not `ok`.
            positions: where in their lease they are, in a row, after all that have failed so before.
            reason: why, a text of the catalogue.
            requests: how many they are, if they are only some of these positions: then none is listed.
        """
        first, last = positions[0], positions[-1]
        counted = self._reasons.get((outcome, reason)) or self._add_reason(outcome, first, reason)
        counted.requests += len(positions) if requests is None else requests
        counted.first, counted.last = min(counted.first, first), max(counted.last, last)
        if requests is None:
            counted.positions.append(first, last + 1)
            failed = self._failed.get(outcome)
            if failed is None:
                failed = self._add_failed(outcome)
            failed.append(first, last + 1)

    def _add_reason(self, outcome: int, position: int, reason: str) -> _Reason:
        """The count for a reason; beyond the bound, that for all others of its outcome."""
        if len(self._reasons) >= MOST_REASONS:
            reason = OTHER
        room = _NO_ROOM if reason == OTHER else self._reason_room
        return self._reasons.setdefault((outcome, reason), _Reason(position, room))

    def _add_failed(self, outcome: int) -> RangeSet:
        failed = self._failed[outcome] = RangeSet(self._room)
        return failed

    def build_reasons(self) -> list[ReasonCount]:
        """The counts by reason, with the first and last position of each."""
        return [
            ReasonCount(*key, each.requests, each.first, each.last) for key, each in self._reasons.items()
        ]

    def build_failed(self) -> dict[Outcome, list[int]]:
        """The positions by outcome, packed."""
        return {OUTCOMES[outcome]: failed.pack() for outcome, failed in self._failed.items() if len(failed)}

    def build_failed_reasons(self) -> dict[Outcome, list[int]]:
        """The reasons of these positions by outcome, as runs; places are in the order of the reasons."""
        return {
            OUTCOMES[outcome]: _find_runs(failed, dict(self._list_positions(outcome)))
            for outcome, failed in self._failed.items()
            if len(failed)
        }

    def _list_positions(self, outcome: int) -> Iterator[tuple[int, RangeSet]]:
        """The places of the reasons of an outcome, with the positions of each."""
        for place, (key, reason) in enumerate(self._reasons.items(), 1):
            if key[0] == outcome:
                yield place, reason.positions


def _find_runs(failed: RangeSet, reasons: dict[int, RangeSet]) -> list[int]:
    """The runs of failed positions by their reasons; mostly there is one, which takes no search."""
    [place, positions], *more = reasons.items()
    if not more and positions.equals(failed):
        return [place, 1 - failed.count] if failed.count > 1 else [place]
    return find_runs(failed.ranges, {place: found.ranges for place, found in reasons.items()})
