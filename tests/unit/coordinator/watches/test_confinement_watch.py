import pytest
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables.history_table import fetch_events
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_coordinator.runs.notices import fetch_unconfined_notice
from oku_coordinator.watches.worker_watch import ConfinementWatch
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.liveness import Roster
from oku_core.messaging.progress import Progress
from oku_core.results.event import EventType
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.file_reference import CodeFile, FileRef

_CODE = Spec(
    requests=9, engine=Engine.PYTHON, scenario=CodeFile.build("s.py", FileRef.build("0" * 64, 1, "s.py"))
)


class World:
    """A ledger with a run, and workers that belong to it."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.roster = Roster(10.0)
        self.assignment = Assignment(ledger=ledger, roster=self.roster)
        self.watch = ConfinementWatch(ledger, self.assignment, lambda: 1.0)

    def look(self, spec: Spec, names: str, unconfinable: str = "") -> RunRecord:
        """A run of this spec has its turn, and all these workers; some cannot confine user code."""
        change(self.ledger, create_run, "r1", spec, 0.0)
        for name in names:
            told = Progress(worker=name, incarnation=name, at=0.0, is_unconfinable=name in unconfinable)
            self.roster.record(told, 0.0, 0.0)
        run = read(self.ledger, fetch_run, "r1")
        self.assignment.settle(run)
        for _ in range(2):
            self.watch.check(run)
        return run

    def list_events(self) -> list[str]:
        """What was noted."""
        events = read(self.ledger, fetch_events, "r1")
        return [event.text for event in events if event.type == EventType.WORKER_UNCONFINED]


@pytest.fixture
def world(ledger: Ledger) -> World:
    """A world without a run."""
    return World(ledger)


def test_a_worker_that_cannot_confine_user_code_is_noted_once(world: World) -> None:
    """Its run has a notice, also when it is over and no worker belongs to it."""
    run = world.look(_CODE, "abc", "ac")
    assert world.list_events() == [
        f"worker {name} cannot confine user code: its kernel has no Landlock" for name in "ac"
    ]
    world.assignment.settle(None)
    assert fetch_unconfined_notice(world.ledger, run) == [
        "worker a cannot confine user code: its kernel has no Landlock (and 1 more)"
    ]


def test_runs_without_user_code_have_nothing_to_confine(world: World) -> None:
    """Nothing is noted of their workers."""
    run = world.look(Spec(requests=9), "a", "a")
    assert world.list_events() == fetch_unconfined_notice(world.ledger, run) == []
