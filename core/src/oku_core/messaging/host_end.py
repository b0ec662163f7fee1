"""How a process of user code has ended that was not told to, as its worker tells of it."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

MOST_HOST_ENDS = 10
"""How many one message of progress tells of."""
LONGEST_HOST_END = 200
"""Characters of the text of one."""


class HostEndReason(StrEnum):
    """Why such a process has ended."""

    OUT_OF_MEMORY = "out_of_memory"
    """The kernel has killed it because memory ran out, of its container or of the machine."""
    MEMORY_LIMIT = "memory_limit"
    """It got no more memory, as it may hold no more, and could not go on."""
    KILLED = "killed"
    """Somebody has sent it a signal."""
    CRASHED = "crashed"
    """It has done what no process may, such as reading memory that is not there."""
    EXITED = "exited"
    """It has ended itself."""
    NO_ANSWER = "no_answer"
    """Its worker has killed it, for user code did not let it answer, or let go of an iteration."""


class HostEnd(msgspec.Struct, frozen=True, kw_only=True):
    """One process that has ended.

    Attributes:
        run: the run whose user code it ran.
        number: rises with each one of the same worker's process.
        reason: why it has ended.
        text: the same in words, in one line.
        requests: how many iterations it had in hand.
    """

    run: str
    number: int
    reason: HostEndReason
    text: str
    requests: int = 0


def find_host_ends_fault(ends: Sequence[HostEnd]) -> str | None:
    """Say what is wrong with those of one message; None if nothing is."""
    if len(ends) > MOST_HOST_ENDS:
        return f"it tells of more than {MOST_HOST_ENDS} ends of processes"
    if not all(len(end.text) <= LONGEST_HOST_END and end.text.isprintable() for end in ends):
        return "the end of a process is not told in a line"
    if any(end.requests < 0 for end in ends):
        return "a process had less than nothing in hand"
    return None
