from pathlib import Path

import pytest

from oku_coordinator.clock.clock_store import ClockStore, find_median_offset_ns
from oku_core.messaging.progress import Progress
from oku_core.process.clock import SteadyClock


class Machine:
    """A machine on which one coordinator follows another."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "clock.json"
        self.wall, self.monotonic, self.kernel = 1_700_000_000.0, 50.0, "boot"

    def start(self, *, is_run_active: bool) -> tuple[SteadyClock, ClockStore]:
        """A coordinator starts."""
        clock = SteadyClock(lambda: self.wall, lambda: self.monotonic)
        store = ClockStore(clock, self.path, self.kernel)
        store.restore(is_run_active=is_run_active)
        return clock, store

    def settle(self, store: ClockStore, *heard: tuple[str, float | None, float]) -> None:
        """Let workers speak while the clock is looked for: their incarnations, what they know, and when."""
        for incarnation, coordinator_at, now in heard:
            progress = Progress(worker="w", incarnation=incarnation, at=0.0, coordinator_at=coordinator_at)
            store.record_progress([progress], now)
        store.settle()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """One that has just booted."""
    return Machine(tmp_path)


def test_the_clock_goes_on_when_a_coordinator_is_restarted_in_a_run(machine: Machine) -> None:
    """Whatever was done to the clock of the machine meanwhile."""
    before, _ = machine.start(is_run_active=False)
    machine.wall += 3600
    after, store = machine.start(is_run_active=True)
    assert after.now() == before.now() == 1_700_000_000.0
    assert store.describe().offset_ns == before.offset_ns
    assert after.find_step() == 3600


def test_a_coordinator_without_a_run_follows_the_clock_of_the_machine(machine: Machine) -> None:
    """Nothing counts by the clock from before."""
    machine.start(is_run_active=False)
    machine.wall += 3600
    clock, _ = machine.start(is_run_active=False)
    assert clock.now() == machine.wall
    again, _ = machine.start(is_run_active=True)
    assert again.now() == clock.now()


@pytest.mark.parametrize("kernel", ["another boot", ""])
def test_after_a_boot_the_clock_is_another(machine: Machine, kernel: str) -> None:
    """An offset from another monotonic clock says nothing, and neither does one from an unknown clock."""
    if not kernel:
        machine.kernel = ""
    machine.start(is_run_active=False)
    machine.kernel, machine.monotonic = kernel, 3.0
    machine.wall += 60
    clock, store = machine.start(is_run_active=True)
    assert not store.is_settled
    assert clock.now() == machine.wall
    assert store.describe().kernel == kernel


def test_a_clock_that_was_set_is_kept(machine: Machine) -> None:
    """The next coordinator goes on with the last one."""
    before, store = machine.start(is_run_active=False)
    machine.wall += 3600
    store.anchor()
    assert before.now() == machine.wall
    machine.wall -= 60
    after, _ = machine.start(is_run_active=True)
    assert after.now() == before.now()


@pytest.mark.parametrize("content", ["", "{}", '{"kernel": 1}', "\0"])
def test_a_file_that_cannot_be_read_is_no_clock(machine: Machine, content: str) -> None:
    """It is replaced."""
    machine.path.write_text(content)
    clock, store = machine.start(is_run_active=True)
    machine.settle(store)
    assert clock.now() == machine.wall
    assert "boot" in machine.path.read_text()


def test_a_full_disk_stops_nobody(machine: Machine, tmp_path: Path) -> None:
    """The clock is only lost for the next coordinator."""
    machine.path = tmp_path / "nowhere" / "clock.json"
    clock, _ = machine.start(is_run_active=True)
    assert clock.now() == machine.wall


def test_on_another_machine_workers_know_what_the_clock_was(machine: Machine) -> None:
    """Of each worker the word counts that came fastest, and of all workers the one in the middle."""
    machine.kernel = ""
    clock, store = machine.start(is_run_active=True)
    heard = [
        ("a", 5000.0, 60.30),
        ("a", 5001.0, 61.05),
        ("b", 5001.0, 61.01),
        ("c", None, 61.00),
        ("d", 9999.0, 61.00),
    ]
    machine.settle(store, *heard)
    assert store.is_settled
    machine.monotonic = 61.01
    assert clock.now() == pytest.approx(5001.0, abs=1e-6)
    assert store.describe().offset_ns == pytest.approx(4_939_990_000_000, abs=1000)


def test_a_clock_that_nobody_knows_is_that_of_the_machine(machine: Machine) -> None:
    """It is kept for the next coordinator then."""
    clock, store = machine.start(is_run_active=True)
    machine.settle(store, ("a", None, 60.0))
    assert clock.now() == machine.wall
    machine.wall += 3600
    again, _ = machine.start(is_run_active=True)
    assert again.now() == clock.now()


def test_what_workers_say_of_a_clock_that_is_known_changes_nothing(machine: Machine) -> None:
    """The coordinator tells them."""
    clock, store = machine.start(is_run_active=False)
    machine.settle(store, ("a", 5000.0, 60.0))
    assert clock.now() == machine.wall


@pytest.mark.parametrize(
    ("offsets_ns", "median_ns"), [([7], 7), ([1, 9], 1), ([5, 1, 900], 5), ([-900, 4, 6, 900], 4)]
)
def test_the_middle_of_what_workers_know_counts(offsets_ns: list[int], median_ns: int) -> None:
    """As long as most are right, those that are wrong move it no further than the others differ."""
    assert find_median_offset_ns(offsets_ns) == median_ns
