"""The states of a lease, and what the ledger decides about its checkpoints."""

from enum import StrEnum


class LeaseState(StrEnum):
    """What became of a lease."""

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
