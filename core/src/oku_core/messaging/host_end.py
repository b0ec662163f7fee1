"""Why a process of user code ended unexpectedly, as its worker reports it."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

MOST_HOST_ENDS = 10
"""In one progress message."""
LONGEST_HOST_END = 200
"""The longest text, in characters."""


class HostEndReason(StrEnum):
    """Why such a process ended."""

    OUT_OF_MEMORY = "out_of_memory"
    """The kernel killed it because its container or the machine ran out of memory."""
    MEMORY_LIMIT = "memory_limit"
    """It reached its own memory limit and could not go on."""
    KILLED = "killed"
    """A signal killed it."""
    CRASHED = "crashed"
    """It caused a fault, such as an access to invalid memory."""
    EXITED = "exited"
    """It ended itself."""
    NO_ANSWER = "no_answer"
    """Its worker killed it because user code blocked it, or did not end an iteration that was cut off."""


class HostEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of one process.

    Attributes:
        run: the run whose user code it ran.
        number: rises with each end that one process of a worker reports.
        reason: why it ended.
        text: the same in words, in one line.
        requests: how many iterations it had in hand.
    """

    run: str
    number: int
    reason: HostEndReason
    text: str
    requests: int = 0


def find_host_ends_fault(ends: Sequence[HostEnd]) -> str | None:
    """Say what is wrong with the ends in one message; None if nothing is."""
    if len(ends) > MOST_HOST_ENDS:
        return f"it reports the ends of more than {MOST_HOST_ENDS} processes"
    if not all(len(end.text) <= LONGEST_HOST_END and end.text.isprintable() for end in ends):
        return "the end of a process is not described in one line"
    if any(end.requests < 0 for end in ends):
        return "a process had a negative number of iterations in hand"
    return None
