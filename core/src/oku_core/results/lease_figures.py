"""What a worker says of a lease beside its counts, and a closed lease with that."""

from dataclasses import dataclass

import msgspec

from oku_core.messaging.checkpoint import Checkpoint


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


@dataclass(frozen=True, kw_only=True)
class ClosedLease:
    """A lease that has ended.

    Attributes:
        id: its id.
        worker: the name of its worker.
        start: its first index.
        stop: the index behind the last one that it has accounted for.
        figures: those of its newest checkpoint.
    """

    id: str
    worker: str
    start: int
    stop: int
    figures: LeaseFigures


def read_figures(checkpoint: Checkpoint) -> LeaseFigures:
    """The figures of a checkpoint."""
    return LeaseFigures(*[getattr(checkpoint, name) for name in LeaseFigures.__struct_fields__])
