"""A lease from when it was dealt to when it was closed, and the figures of its newest checkpoint."""

from dataclasses import dataclass, field

import msgspec

from oku_core.accounting.index_ranges import Range
from oku_core.accounting.lease_state import LeaseState
from oku_core.messaging.checkpoint import Checkpoint


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


class LeaseFigures(msgspec.Struct, frozen=True, array_like=True):
    """The figures of the newest checkpoint of a lease; `Checkpoint` says what each of them means."""

    end: int = 0
    started_at: float = 0.0
    ended_at: float = 0.0
    cpu_s: float = 0.0
    peak_rss_mb: float = 0.0
    max_lag_s: float = 0.0
    busy_share: float = 0.0
    saturated: int = 0
    lagged: int = 0
    clock_step_s: float = 0.0
    watched_s: float = 0.0
    underfilled_s: float = 0.0
    untouched: list[int] = []


def read_figures(checkpoint: Checkpoint) -> LeaseFigures:
    """The figures of a checkpoint."""
    return LeaseFigures(*[getattr(checkpoint, name) for name in LeaseFigures.__struct_fields__])
