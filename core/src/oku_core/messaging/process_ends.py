"""How processes of a worker ended: why a host of user code did, and how far a dead process had come.

A worker writes beside its requests how far it may go (`oku_workers.flight`). The record survives its process,
and another worker of the same machine reports it in its progress. A record bounds how much a dead process may
have sent; it never proves that something was sent.
"""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from oku_core.messaging.lease import read_lease_number, read_lease_run

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
    """Return the fault of the ends in one message; None if they are valid."""
    if len(ends) > MOST_HOST_ENDS:
        return f"it reports the ends of more than {MOST_HOST_ENDS} processes"
    if not all(len(end.text) <= LONGEST_HOST_END and end.text.isprintable() for end in ends):
        return "the end of a process is not described in one line"
    if any(end.requests < 0 for end in ends):
        return "a process had a negative number of iterations in hand"
    return None


MOST_RECORDED_LEASES = 2_000
"""How many leases a record covers; a longer one is not read."""
MOST_RECORDS = 16
"""How many records one message of progress has."""


class FlightRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a process that has certainly died.

    Attributes:
        incarnation: that process.
        reached: by lease, the first position that it has certainly not taken.
        forgotten_run: the run of the last lease that is in the record no longer; empty if all are there.
        forgotten_number: the highest number of a lease of that run that is there no longer.
    """

    incarnation: str
    reached: dict[str, int] = {}
    forgotten_run: str = ""
    forgotten_number: int = -1

    def find_reached(self, lease: str) -> int | None:
        """The first position of a lease that was certainly not taken; None if the record does not show it.

        A lease that is not in it was never begun, unless it may have been forgotten.
        """
        reached = self.reached.get(lease)
        if reached is not None or not self.forgotten_run:
            return reached or 0
        is_newer = (
            read_lease_run(lease) == self.forgotten_run and read_lease_number(lease) > self.forgotten_number
        )
        return 0 if is_newer else None

    def find_fault(self) -> str | None:
        """Return the fault of a received record; None if it is valid."""
        if len(self.reached) > MOST_RECORDED_LEASES:
            return f"a record tells of more than {MOST_RECORDED_LEASES} leases"
        if any(reached < 0 for reached in self.reached.values()):
            return "a record has reached less than nothing"
        return None


def find_records_fault(records: Sequence[FlightRecord]) -> str | None:
    """Return the fault of the records in one message; None if they are valid."""
    if len(records) > MOST_RECORDS:
        return f"it has found more than {MOST_RECORDS} records"
    return next((fault for record in records if (fault := record.find_fault())), None)
