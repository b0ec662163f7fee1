"""What became of each lease of a run, as reports draw it."""

from dataclasses import dataclass

from oku_core.accounting.lease_state import LeaseState


@dataclass(frozen=True, kw_only=True)
class LeaseSpan:
    """A lease from when it was cut to when it was closed.

    `worker` is None if no worker began with it, and `closed_at` is None while it is out; `reason` says why it
    expired.
    """

    id: str
    start: int
    stop: int
    state: LeaseState
    reason: str
    worker: str | None
    cut_at: float
    closed_at: float | None
