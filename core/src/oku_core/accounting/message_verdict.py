"""The verdicts of the ledger on the checkpoints of workers."""

from enum import StrEnum


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
