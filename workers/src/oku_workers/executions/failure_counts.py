"""Positions and reasons of failed requests in one part of a lease, counted as they end."""

from oku_core.accounting.index_ranges import RangeSet, Room
from oku_core.accounting.outcome import MOST_REASONS, OTHER, OUTCOMES, Outcome, ReasonCount


class Failures:
    """Reasons and positions of failed requests. They only grow.

    Args:
        room: for ranges of positions, which all parts of a lease share.
    """

    __slots__ = ("_failed", "_reasons", "_room")

    def __init__(self, room: Room) -> None:
        self._room = room
        self._reasons: dict[tuple[int, str], list[int]] = {}
        self._failed: dict[int, RangeSet] = {}

    def record(self, outcome: int, position: int, reason: str) -> None:
        """A request has failed.

        Args:
            outcome: as what, as an index; not `ok`.
            position: where in its lease it is.
            reason: why, a text of the catalogue.
        """
        counted = self._reasons.get((outcome, reason)) or self._add_reason(outcome, position, reason)
        counted[0] += 1
        if position > counted[2]:
            counted[2] = position
        elif position < counted[1]:
            counted[1] = position
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
        counted[0] += len(positions) if requests is None else requests
        counted[1:] = min(counted[1], first), max(counted[2], last)
        if requests is None:
            failed = self._failed.get(outcome)
            if failed is None:
                failed = self._add_failed(outcome)
            failed.append(first, last + 1)

    def _add_reason(self, outcome: int, position: int, reason: str) -> list[int]:
        """The count for a reason, with its first and last position; beyond the bound, that for all others."""
        if len(self._reasons) >= MOST_REASONS:
            reason = OTHER
        return self._reasons.setdefault((outcome, reason), [0, position, position])

    def _add_failed(self, outcome: int) -> RangeSet:
        failed = self._failed[outcome] = RangeSet(self._room)
        return failed

    def build_reasons(self) -> list[ReasonCount]:
        """The counts by reason, with the first and last position of each."""
        return [ReasonCount(*key, *counted) for key, counted in self._reasons.items()]

    def build_failed(self) -> dict[Outcome, list[int]]:
        """The positions by outcome, packed."""
        return {OUTCOMES[outcome]: failed.pack() for outcome, failed in self._failed.items() if len(failed)}
