"""How far dead processes of workers have gone, as far as others have found their flight records."""

from collections.abc import Iterable

from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_core.messaging.process_ends import FlightRecord

_MOST_KEPT = 10_000
"""Records of so many processes are kept, the newest."""


class FlightRecords:
    """The records that workers have told of; they are told of for a while, so a restart loses none."""

    def __init__(self) -> None:
        self._records: dict[str, FlightRecord] = {}
        self._used: dict[str, str] = {}
        """By process, the run whose leases were compared with its record."""

    def record(self, found: Iterable[FlightRecord]) -> bool:
        """Take in records; whether one of them is new. The dead write no more, so the first one counts."""
        fresh = [record for record in found if record.incarnation not in self._records]
        for record in fresh:
            self._records[record.incarnation] = record
        while len(self._records) > _MOST_KEPT:
            oldest = next(iter(self._records))
            del self._records[oldest]
            self._used.pop(oldest, None)
        return bool(fresh)

    def find_reached(self, lease: LeaseRecord) -> int | None:
        """The first position of a lease that its process, which is dead, has certainly not taken."""
        record = self._records.get(lease.incarnation)
        return None if record is None else record.find_reached(lease.id)

    def find_unused(self, run: str) -> list[str]:
        """The dead processes whose records were not compared with the leases of a run before."""
        return [incarnation for incarnation in self._records if self._used.get(incarnation) != run]

    def record_used(self, run: str, incarnations: Iterable[str]) -> None:
        """The records of these were compared with the leases of a run."""
        self._used.update(dict.fromkeys(incarnations, run))
