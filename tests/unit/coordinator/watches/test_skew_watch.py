import pytest
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.tables.run_table import fetch_current_run
from oku_coordinator.watches.worker_watch import SkewWatch
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.run_state import RunState
from oku_core.messaging.progress import Progress
from oku_core.spec.spec import Spec
from oku_core.spec.values.quantity import Rate
from oku_core.summary.validity import Flag

OPEN = Spec(requests=100, rate=Rate("10/s"), duration_s=10.0)


class World:
    """A watch, with a ledger and workers."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger, self.roster = ledger, Roster(10.0)
        self.assignment = Assignment(ledger=ledger, roster=self.roster)
        self.watches: dict[str, SkewWatch] = {}

    def begin(self, run: str, spec: Spec) -> None:
        """A run begins."""
        change(self.ledger, create_run, run, spec, 0.0)
        change(self.ledger, change_state, run, RunState.RUNNING, 1.0)

    def look(self, *bounds_s: float | None, run: str = "r1") -> list[float]:
        """The worst bound that a run is flagged with when workers know the clock like that."""
        for number, bound_s in enumerate(bounds_s):
            name = f"w{number}"
            self.roster.record(
                Progress(worker=name, incarnation=name, at=0.0, clock_bound_s=bound_s), 0.0, 0.0
            )
        self.assignment.settle(read(self.ledger, fetch_current_run))
        if current := read(self.ledger, fetch_current_run):
            watch = self.watches.setdefault(current.run, SkewWatch(self.ledger, self.assignment))
            watch.check(current)
        flags = read(self.ledger, fetch_snapshot, run).flags
        assert all(flag == Flag.CLOCK_SKEW for flag, _, _ in flags)
        return [worst for _, _, worst in flags]


@pytest.fixture
def world(ledger: Ledger) -> World:
    """A world without a run."""
    return World(ledger)


def test_a_run_is_flagged_when_a_worker_does_not_know_its_clock_well(world: World) -> None:
    """By more than 5 ms; the worst counts."""
    world.begin("r1", OPEN)
    assert world.look(0.0, None, 0.005) == []
    assert world.look(0.0, None, 0.006) == [0.006]
    assert world.look(0.0, 0.02, 0.006) == [0.02]
    assert world.look(0.0, 0.0, 0.006) == [0.02]


def test_a_bound_that_hardly_grows_is_not_written_each_time(world: World) -> None:
    """A clock that nobody tells any more drifts all the time."""
    world.begin("r1", OPEN)
    assert [world.look(bound_s) for bound_s in (0.0100, 0.0102, 0.0104, 0.0120)] == [
        [0.0100], [0.0100], [0.0100], [0.0120],
    ]  # fmt: skip


def test_a_run_without_a_schedule_is_not_flagged(world: World) -> None:
    """Its requests are due at no time."""
    world.begin("r1", Spec(requests=100))
    assert world.look(1.0) == []
