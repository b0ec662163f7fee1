"""How far a process of a worker had come in its leases when it died, as another process has found it.

A worker writes beside its requests how far it may go (`oku_workers.flight`). What it has written survives its
process, and a worker of the same machine tells of it in its progress. A record bounds what a dead process may
have sent; it never says that something was sent.
"""

from collections.abc import Sequence

import msgspec

from oku_core.messaging.lease import read_lease_number, read_lease_run

MOST_RECORDED_LEASES = 2_000
"""How many leases a record tells of; one with more is not read."""
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
        """The first position of a lease that was certainly not taken; None if the record cannot say.

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
        """Say what is wrong with a received record; None if nothing is."""
        if len(self.reached) > MOST_RECORDED_LEASES:
            return f"a record tells of more than {MOST_RECORDED_LEASES} leases"
        if any(reached < 0 for reached in self.reached.values()):
            return "a record has reached less than nothing"
        return None


def find_records_fault(records: Sequence[FlightRecord]) -> str | None:
    """Say what is wrong with the records of one message; None if nothing is."""
    if len(records) > MOST_RECORDS:
        return f"it has found more than {MOST_RECORDS} records"
    return next((fault for record in records if (fault := record.find_fault())), None)
