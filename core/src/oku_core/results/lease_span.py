"""What became of each lease of a run, as reports draw it."""

from dataclasses import dataclass, field

from oku_core.accounting.index_ranges import Range
from oku_core.accounting.lease_state import LeaseState


@dataclass(frozen=True, kw_only=True)
class LeaseSpan:
    """A lease from when it was dealt to when it was closed.

    Attributes:
        id: its id.
        start: its first index.
        stop: the index behind its last one.
        ranges: its ranges `[start, stop)` if it has several.
        state: what became of it.
        reason: why it expired; empty if it did not.
        worker: to which worker it was given.
        covered: how many of its requests have an outcome.
        cut_at: when it was dealt.
        closed_at: when it was closed; None while it is open.
    """

    id: str
    start: int
    stop: int
    ranges: list[Range] = field(default_factory=list)
    state: LeaseState
    reason: str
    worker: str
    covered: int = 0
    cut_at: float
    closed_at: float | None
