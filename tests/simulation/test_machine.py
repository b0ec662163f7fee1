"""Processes, clocks, disks and the broker of the simulation behave as the real ones do."""

import asyncio
import random
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kombu.exceptions import OperationalError
from tests.simulation.machine.clocks import MachineClock
from tests.simulation.machine.disk import Disk, DiskFault, find_synced
from tests.simulation.machine.interposition import interpose
from tests.simulation.machine.process import KilledError, Process
from tests.simulation.machine.scheduler import Scheduler
from tests.simulation.outside.broker import Broker, Connection, Delivery, Trouble
from tests.simulation.story import Story


class _Machine:
    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.errors: list[BaseException | None] = []
        self.story = Story(lambda: self.scheduler.now)

    def start(self, name: str = "p", rate: float = 1.0) -> Process:
        clock = MachineClock(lambda: self.scheduler.now, rate)
        return Process(name, self.scheduler, clock, lambda _, error, __: self.errors.append(error))

    def run(self, seconds: float) -> None:
        is_over: list[bool] = []
        self.scheduler.after(seconds, lambda: is_over.append(True))
        self.scheduler.run_until(lambda: bool(is_over))


@pytest.fixture
def machine() -> Iterator[_Machine]:
    """A machine whose clocks all code sees."""
    machine = _Machine()
    with interpose(random.Random(1), lambda: machine.scheduler.now, sqlite3.connect):
        yield machine


async def _count(seen: list[float], pause_s: float = 1.0) -> None:
    while True:
        seen.append(time.monotonic())
        await asyncio.sleep(pause_s)


def test_a_clock_that_drifts_makes_timers_late(machine: _Machine) -> None:
    """Timers follow the monotonic clock of their process."""
    slow: list[float] = []
    process = machine.start(rate=0.5)
    process.enter(lambda: process.start(_count(slow)))
    machine.run(10.5)
    assert len(slow) == 6


def test_a_frozen_process_goes_on_where_it_was(machine: _Machine) -> None:
    """What was due meanwhile happens when it is continued, and its clock has gone on."""
    seen: list[float] = []
    process = machine.start()
    process.enter(lambda: process.start(_count(seen)))
    machine.run(1.5)
    process.freeze()
    machine.run(10.0)
    process.thaw()
    machine.run(0.1)
    assert seen == pytest.approx([1000.0, 1001.0, 1011.5])


def _listen(broker: Broker, process: Process, seen: list[str], *, acknowledges: bool = False) -> Connection:
    connection = Connection(broker, process)

    def take(delivery: Delivery) -> None:
        seen.append(delivery.payload)
        if acknowledges and len(seen) > 1:
            broker.acknowledge(delivery)

    connection.subscribe("leases.x", take, acknowledges=acknowledges)
    return connection


def test_messages_are_lost_doubled_and_held_back(machine: _Machine) -> None:
    """Each with its share."""
    broker = Broker(machine.scheduler, random.Random(1), machine.story)
    broker.trouble = Trouble(lost=0.2, doubled=0.2, held=0.2)
    seen: list[str] = []
    _listen(broker, machine.start("b"), seen)
    sender = Connection(broker, machine.start("a"))
    for number in range(300):
        sender.publish("leases.x", str(number))
    machine.run(200.0)
    assert 180 < len(set(seen)) < 290
    assert len(seen) > len(set(seen))
    assert seen != sorted(seen, key=int)


def test_a_broker_that_is_killed_takes_nothing_and_keeps_what_it_saved(machine: _Machine) -> None:
    """With its data, what waits is lost; without, it is there when the broker is back."""
    broker = Broker(machine.scheduler, random.Random(1), machine.story)
    sender = Connection(broker, machine.start("a"))
    seen: list[str] = []
    for with_data in (False, True):
        sender.publish("leases.x", f"{with_data}")
        machine.run(0.1)
        broker.go_away(with_data=with_data)
        with pytest.raises(OperationalError):
            sender.publish("leases.x", "unheard")
        broker.come_back()
        machine.run(3.0)
    _listen(broker, machine.start("b"), seen)
    machine.run(1.0)
    assert seen == []
    sender.publish("leases.y", "kept")
    machine.run(0.1)
    broker.go_away(with_data=False)
    broker.come_back()
    machine.run(3.0)
    assert broker.waiting == 1


class _Rows:
    """A table on a simulated disk, written by one process after the other."""

    def __init__(self, machine: _Machine, folder: Path, seed: int = 1) -> None:
        (folder / "0").mkdir()
        self.machine = machine
        self.disk = Disk(folder, random.Random(seed), machine.story.note)
        self.boot()

    def boot(self) -> list[int]:
        """Start another process; returns the rows that it finds."""
        self.process = self.machine.start()
        path = self.disk.mount(self.process)
        self.database = self.disk.connect(path, isolation_level=None)
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.execute("PRAGMA synchronous = FULL")
        self.database.execute("CREATE TABLE IF NOT EXISTS t (n INTEGER)")
        return [row[0] for row in self.database.execute("SELECT n FROM t ORDER BY n")]

    def add(self, number: int) -> None:
        """Commit a row."""
        self.database.execute("BEGIN IMMEDIATE")
        self.database.execute("INSERT INTO t VALUES (?)", (number,))
        self.database.execute("COMMIT")


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (DiskFault.KILLED, [[1]]),
        (DiskFault.KILLED_BEFORE_COMMIT, [[1]]),
        (DiskFault.KILLED_AFTER_COMMIT, [[1, 2]]),
        (DiskFault.TORN_COMMIT, [[1], [1, 2]]),
    ],
)
def test_a_kill_leaves_what_was_committed(
    machine: _Machine, tmp_path: Path, fault: DiskFault, expected: list[list[int]]
) -> None:
    """A commit that was cut off by a power cut is there or not there, never in part."""
    for seed in range(5):
        folder = tmp_path / str(seed)
        folder.mkdir()
        rows = _Rows(machine, folder, seed)
        rows.add(1)
        rows.disk.arm(fault, 1)
        with pytest.raises(KilledError):
            rows.add(2)
        assert not rows.process.is_alive
        assert rows.boot() in expected
        rows.disk.release()


def test_an_error_of_the_disk_leaves_the_transaction_undone(machine: _Machine, tmp_path: Path) -> None:
    """Except for one whose commit was written although fsync has failed."""
    rows = _Rows(machine, tmp_path)
    for fault, found in (
        (DiskFault.FULL, []),
        (DiskFault.SYNC_FAILED, []),
        (DiskFault.SYNC_FAILED_WRITTEN, [9]),
    ):
        rows.disk.arm(fault, 1)
        with pytest.raises(sqlite3.OperationalError):
            rows.add(9)
        if rows.database.in_transaction:
            rows.database.execute("ROLLBACK")
        assert [row[0] for row in rows.database.execute("SELECT n FROM t")] == found
    rows.disk.release()


def test_a_power_cut_spares_what_was_synced(machine: _Machine, tmp_path: Path) -> None:
    """Whatever garbage stands behind it in the log."""
    for seed in range(10):
        folder = tmp_path / str(seed)
        folder.mkdir()
        rows = _Rows(machine, folder, seed)
        for number in range(5):
            rows.add(number)
        log = rows.disk.path.with_name("ledger.sqlite3-wal").read_bytes()
        assert find_synced(log) == len(log)
        rows.process.kill()
        rows.disk.lose_power()
        assert rows.boot() == list(range(5))
        rows.disk.release()
