"""The states of a lease, and the reasons for which one expires."""

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
