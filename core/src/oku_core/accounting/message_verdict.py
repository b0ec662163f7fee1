"""The verdicts of the ledger on the messages of workers."""

from enum import StrEnum


class MessageVerdict(StrEnum):
    """What the ledger made of a message."""

    CLAIMED = "claimed"
    """A worker has begun the lease."""
    ACCOUNTED = "accounted"
    """What it covers is in the account."""
    REPEATED = "repeated"
    """The ledger has this message already."""
    LATE = "late"
    """Its lease was taken back, or its run is over."""
    STRAY = "stray"
    """It comes from a second execution of the lease; only the first one counts."""
    UNTRUE = "untrue"
    """It cannot be true."""
    UNKNOWN = "unknown"
    """There is no such lease."""
