"""The flight recorder of a simulated worker, whose record survives its process as a file would."""

from oku_core.messaging.flight_record import FlightRecord
from oku_workers.flight.flight_recorder import Write
from oku_workers.flight.record_file import RecordHead


class MemoryRecorder:
    """Keeps the record of one process.

    Args:
        incarnation: that process.
    """

    def __init__(self, incarnation: str) -> None:
        self._head = RecordHead(boot="the boot", incarnation=incarnation)
        self._reached: dict[str, int] = {}

    def begin(self, lease: str) -> Write | None:
        """Begin with a lease."""
        self._reached[lease] = 0
        return lambda reached: self._reached.update({lease: reached})

    def forget(self, lease: str) -> None:
        """A lease is over."""
        if self._reached.pop(lease, None) is not None:
            self._head = self._head.forget(lease)

    def find_dead(self) -> list[FlightRecord]:
        """The world says who is dead."""
        return []

    def build_record(self) -> FlightRecord:
        """What is found of it once its process is dead."""
        return FlightRecord(
            incarnation=self._head.incarnation,
            reached=dict(self._reached),
            forgotten_run=self._head.forgotten_run,
            forgotten_number=self._head.forgotten_number,
        )
