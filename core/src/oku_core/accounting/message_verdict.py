"""The verdicts of the ledger on the messages of workers."""

from enum import StrEnum


class MessageVerdict(StrEnum):
    """What the ledger decided about a message."""

    CLAIMED = "claimed"
    """A worker has begun the lease."""
    ACCOUNTED = "accounted"
    """What the message covers is in the account."""
    REPEATED = "repeated"
    """The ledger has this message already."""
    LATE = "late"
    """The lease was taken back, or the run is over."""
    STRAY = "stray"
    """The message comes from a second execution of the lease; only the first one counts."""
    UNTRUE = "untrue"
    """The message cannot be true."""
    UNKNOWN = "unknown"
    """There is no such lease."""
