"""The states of a lease, the ledger's decisions about its checkpoints, and the rest of a lease."""

from dataclasses import dataclass, field
from enum import StrEnum

from oku_core.accounting.index_ranges import Range


class LeaseState(StrEnum):
    """The state of a lease."""

    ACTIVE = "active"
    CLOSED = "closed"
    EXPIRED = "expired"


class ExpiryReason(StrEnum):
    """Why a lease expired."""

    NOT_TAKEN = "not_taken"
    """Its worker is alive and never had it: its message was lost."""
    WORKER_LOST = "worker_lost"
    """Its worker died."""
    DROPPED = "dropped"
    """Its worker is alive and no longer has the lease, but no final checkpoint came."""
    STACK_LOST = "stack_lost"
    """The local stack was killed while the lease was out."""


class MessageVerdict(StrEnum):
    """What the ledger decided about a checkpoint."""

    ACCOUNTED = "accounted"
    """What it covers is in the account, and its lease is open."""
    CLOSED = "closed"
    """What it covers is in the account, and its lease is closed."""
    REPEATED = "repeated"
    """The ledger has this checkpoint, or a newer one, already."""
    LATE = "late"
    """The lease has expired, or the run is over."""
    FOREIGN = "foreign"
    """It comes from another process than the one that has the lease."""
    UNTRUE = "untrue"
    """It cannot be true."""
    UNKNOWN = "unknown"
    """There is no such lease."""


@dataclass(frozen=True, kw_only=True)
class LeaseSpan:
    """A lease from when it was dealt to when it was closed, None while it is open.

    `ranges` are its ranges `[start, stop)` if it has several, and `covered` is how many of its requests have
    an outcome. `reason` is why it expired.
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
