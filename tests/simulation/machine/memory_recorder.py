"""The flight recorders of simulated workers, whose records survive their processes as files would."""

from typing import TYPE_CHECKING

from oku_core.messaging.process_ends import MOST_RECORDS, FlightRecord
from oku_workers.flight.flight_recorder import Write
from oku_workers.flight.record_file import RecordHead

if TYPE_CHECKING:
    from tests.simulation.machine.process import Process


class MemoryRecorder:
    """Keeps the record of one process.

    Args:
        incarnation: that process.
    """

    def __init__(self, incarnation: str) -> None:
        self._head = RecordHead(boot="the boot", incarnation=incarnation)
        self._reached: dict[str, int] = {}

    def open_slot(self, lease: str) -> Write | None:
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


class RecordShelf:
    """The records of one machine."""

    def __init__(self) -> None:
        self._kept: list[tuple[Process, MemoryRecorder]] = []

    def start(self, process: "Process", incarnation: str) -> MemoryRecorder:
        """A process begins to write."""
        recorder = MemoryRecorder(incarnation)
        self._kept.append((process, recorder))
        return recorder

    def remove(self, process: "Process") -> None:
        """A process ends well."""
        self._kept = [each for each in self._kept if each[0] is not process]

    def clear(self) -> None:
        """The machine is gone: another one takes its place."""
        self._kept.clear()

    def find_dead(self) -> list[FlightRecord]:
        """The newest records of processes that are dead."""
        dead = [recorder for process, recorder in self._kept if not process.is_alive]
        return [recorder.build_record() for recorder in dead[-MOST_RECORDS:]]
