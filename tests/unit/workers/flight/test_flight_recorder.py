import fcntl
import os
from pathlib import Path

import pytest

from oku_core.messaging.lease import build_lease_id
from oku_core.messaging.process_ends import MOST_RECORDED_LEASES, FlightRecord
from oku_workers.flight.flight_recorder import FileRecorder
from oku_workers.flight.record_file import TOLD_S, RecordFolder

BOOT = "b00t"


class Machine:
    """A folder with records, some of whose writers may die."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 0.0
        self.reader = self.build_reader()

    def build_reader(self, boot: str = BOOT) -> RecordFolder:
        """A worker that looks."""
        return RecordFolder(self.folder, boot, lambda: self.now)

    def start(self, incarnation: str = "b1", boot: str = BOOT) -> FileRecorder:
        """A worker that writes."""
        return FileRecorder(self.folder, incarnation, boot)

    def kill(self, incarnation: str = "b1") -> None:
        """The kernel lets go of the lock of a process that was killed."""
        path = self.folder / f"{incarnation}.flight"
        for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
            try:
                if os.path.samestat(os.fstat(int(name)), path.stat()):
                    fcntl.flock(int(name), fcntl.LOCK_UN)
            except OSError:
                continue


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Nobody has written yet."""
    return Machine(tmp_path / "cache" / "flight")


def test_what_a_worker_wrote_is_found_once_it_is_dead(tmp_path: Path) -> None:
    """As long as its process exists, frozen or not, nobody reads it."""
    machine = Machine(tmp_path / "0" / "flight")
    recorder = machine.start()
    write = recorder.open_slot("lease 1")
    assert write is not None
    recorder.open_slot("lease 2")
    write(3)
    write(40)
    assert machine.reader.scan() == []
    machine.kill()
    found = [FlightRecord(incarnation="b1", reached={"lease 1": 40, "lease 2": 0})]
    assert machine.reader.scan() == found
    assert machine.build_reader().scan() == found
    # A lease that is over is forgotten by number. Its slot is for the next one.
    machine = Machine(tmp_path / "1" / "flight")
    recorder = machine.start()
    leases = [build_lease_id("r1", number) for number in range(4)]
    for lease in leases[:3]:
        recorder.open_slot(lease)
    recorder.forget(leases[2])
    recorder.forget(leases[1])
    recorder.forget("unknown")
    write = recorder.open_slot(leases[3])
    assert write is not None
    write(5)
    machine.kill()
    [record] = machine.reader.scan()
    assert record.reached == {leases[0]: 0, leases[3]: 5}
    assert (record.forgotten_run, record.forgotten_number) == ("r1", 2)


def test_a_record_that_cannot_be_written_any_more_is_emptied(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker goes on, and nobody takes what is there for all that it did."""
    recorder = machine.start()
    write = recorder.open_slot("lease")
    assert write is not None

    def fail(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fail)
        write(1)
    write(2)
    recorder.forget("lease")
    assert recorder.open_slot("another") is None
    assert machine.reader.scan() == []


def test_a_record_that_stays_wrong_ends_its_worker(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a disk that can be read only, what is there would be taken for all that was sent."""
    recorder = machine.start()
    write = recorder.open_slot("lease")
    assert write is not None

    def fail(*_: object, **__: object) -> int:
        raise OSError(30, "Read-only file system")

    ended: list[int] = []
    for place in (os, os):
        monkeypatch.setattr(place, "pwrite", fail)
    monkeypatch.setattr(os, "ftruncate", fail)
    monkeypatch.setattr(Path, "unlink", fail)
    monkeypatch.setattr(os, "_exit", ended.append)
    write(1)
    assert ended == [5]


def test_a_folder_that_cannot_be_used_costs_the_record_alone(tmp_path: Path) -> None:
    """The worker runs without."""
    (tmp_path / "file").write_text("")
    assert FileRecorder(tmp_path / "file" / "flight", "b1", BOOT).open_slot("lease") is None


def test_a_record_has_a_bounded_number_of_leases(tmp_path: Path) -> None:
    """A worker with more has none."""
    machine = Machine(tmp_path / "0" / "flight")
    recorder = machine.start()
    begun = [recorder.open_slot(f"lease {number}") for number in range(MOST_RECORDED_LEASES + 1)]
    assert begun[-1] is None
    assert begun[-2] is not None
    machine.kill()
    assert machine.reader.scan() == []
    # A record is told of for a while. Then it is removed.
    machine = Machine(tmp_path / "1" / "flight")
    machine.start().open_slot("lease")
    machine.kill()
    assert machine.reader.scan()
    machine.now = TOLD_S
    assert machine.reader.scan()
    machine.now += 0.1
    assert machine.reader.scan() == []
    assert list(machine.folder.iterdir()) == []
    # Many records come some at a time.
    machine = Machine(tmp_path / "2" / "flight")
    for number in range(20):
        machine.start(f"b{number}").open_slot("lease")
        machine.kill(f"b{number}")
    first = {record.incarnation for record in machine.reader.scan()}
    machine.now = TOLD_S + 1
    machine.reader.scan()
    rest = {record.incarnation for record in machine.reader.scan()}
    assert len(first) == 16
    assert first | rest == {f"b{number}" for number in range(20)}


def test_a_record_that_is_not_of_use_is_removed(tmp_path: Path) -> None:
    """Its last checkpoints say all."""
    machine = Machine(tmp_path / "0" / "flight")
    recorder = machine.start()
    recorder.open_slot("lease")
    recorder.close()
    recorder.close()
    assert machine.reader.scan() == []
    assert list(machine.folder.iterdir()) == []
    # A record of another boot is worth nothing. What was not on the disk when the power went is not in it.
    machine = Machine(tmp_path / "1" / "flight")
    machine.start(boot="before").open_slot("lease")
    machine.kill()
    assert machine.reader.scan() == []
    assert list(machine.folder.iterdir()) == []
    # Where the boot is not known nothing is written. A record could not be told from one of another boot.
    machine = Machine(tmp_path / "2" / "flight")
    assert machine.start(boot="").open_slot("lease") is None
    assert not machine.folder.exists()
    # Other files are left alone. And what cannot be read is removed.
    machine = Machine(tmp_path / "3" / "flight")
    machine.folder.mkdir(parents=True, mode=0o700)
    (machine.folder / "other").write_text("x")
    (machine.folder / "b1.new").write_text("")
    (machine.folder / "b2.flight").write_text("no record")
    old = machine.folder / "b3.new"
    old.write_text("")
    os.utime(old, (1, 1))
    assert machine.reader.scan() == []
    assert {path.name for path in machine.folder.iterdir()} == {"other", "b1.new"}
