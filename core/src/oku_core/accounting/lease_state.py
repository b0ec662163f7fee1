"""The states of a lease, and why one is taken back."""

from enum import StrEnum


class LeaseState(StrEnum):
    """What became of a lease."""

    ACTIVE = "active"
    REPORTED = "reported"
    EXPIRED = "expired"


class ExpiryReason(StrEnum):
    """Why a lease was taken back."""

    NOT_SENT = "not_sent"
    """The broker did not take it, as far as is known; nobody should have it."""
    NOT_CLAIMED = "not_claimed"
    """No worker began with it in time: its message was lost."""
    WORKER_LOST = "worker_lost"
    """Its worker is dead."""
    REPORT_LOST = "report_lost"
    """Its worker lives and does not have it any more, yet no report came."""
    STACK_LOST = "stack_lost"
    """All processes of the local stack ended with it in hand."""
