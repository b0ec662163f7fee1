from typing import Any

import msgspec
import pytest
from tests.kit.coordinators.broker_twin import BrokerTwin
from tests.kit.coordinators.dispatching import build_file_access
from tests.kit.coordinators.leases import apply_batches
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.hooks import start_attempt
from oku_coordinator.ledger.rules.leases.expiring import give_up_run
from oku_coordinator.ledger.rules.lifecycle import create_run, start_run
from oku_coordinator.ledger.tables.run_table import fetch_current_run, fetch_run
from oku_coordinator.runs.readiness import Readiness
from oku_coordinator.watches.file_preparation import FilePreparation, find_files_within_s
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.liveness import Roster
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.hook import NO_SETUP, HookAttempt, HookReport, SetupData
from oku_core.messaging.order import Fetch, UserCode
from oku_core.messaging.progress import Progress
from oku_core.spec.spec import Engine, Hook, Spec
from oku_core.spec.values.file_reference import CodeFile, FileRef

FILE = FileRef.build("1" * 64, 20_000_000, "body.json")
CODE_SPEC = Spec(engine=Engine.PYTHON, scenario=CodeFile.build("scenario.py", FILE), workers=1)
SPEC = Spec(body=str(FILE), cacert=str(FILE), workers=1)


class World:
    """The preparation of runs; it looks every 20 s, so each worker is told each time."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger, self.roster, self.broker = ledger, Roster(1000.0), BrokerTwin()
        self.assignment = Assignment(ledger=ledger, roster=self.roster)
        self.readiness = Readiness(ledger, self.roster, self.assignment)
        self.preparations: dict[str, FilePreparation] = {}
        self.now, self._sequence = 0.0, 0

    def speak(self, worker: str = "w", **changes: Any) -> None:
        """A worker speaks."""
        self._sequence += 1
        progress = Progress(
            worker=worker, incarnation=f"i{worker}", at=1.0, sequence=self._sequence, **changes
        )
        self.roster.record(progress, self.now, self.now)
        self.settle()

    def settle(self) -> None:
        """The run that has its turn gets its workers."""
        self.assignment.settle(read(self.ledger, fetch_current_run))

    def _build(self) -> FilePreparation:
        return FilePreparation(self.ledger, self.assignment, self.broker, build_file_access())

    def look(self, after_s: float = 20.0) -> list[Fetch]:
        """What workers are told after some time."""
        self.now += after_s
        self.settle()
        self.broker.fetches.clear()
        if run := read(self.ledger, fetch_current_run):
            self.preparations.setdefault(run.run, self._build()).send_needs(run, self.now)
        return list(self.broker.fetches)


@pytest.fixture
def world(ledger: Ledger) -> World:
    """There is no worker yet."""
    return World(ledger)


def test_the_workers_of_a_run_are_told_what_to_fetch(world: World, ledger: Ledger) -> None:
    """Each file once, with its ticket; workers of no run hear nothing."""
    for worker in ("w1", "w2", "w3"):
        world.speak(worker)
    assert world.look() == []
    change(ledger, create_run, "r0", Spec(), 1.0)
    assert world.look() == []
    change(ledger, start_run, "r0", 2.0)
    change(ledger, give_up_run, "r0", state=read(ledger, fetch_run, "r0").state.FAILED, now=3.0, reason="x")
    change(ledger, create_run, "r1", msgspec.structs.replace(SPEC, workers=2), 4.0)
    tickets = build_file_access().build_tickets([FILE.digest])
    assert world.look() == [
        Fetch(incarnation=incarnation, run="r1", files=[str(FILE)], tickets=tickets)
        for incarnation in ("iw1", "iw2")
    ]


def test_workers_are_told_again(world: World, ledger: Ledger) -> None:
    """Often until they have what they need, and then as often as they keep it for."""
    change(ledger, create_run, "r1", msgspec.structs.replace(SPEC, workers=2), 1.0)
    world.speak("w1")
    world.speak("w2", files=[FILE.digest])

    def list_told(after_s: float) -> list[str]:
        return [fetch.incarnation for fetch in world.look(after_s)]

    assert [list_told(1.0) for _ in range(5)] == [["iw1", "iw2"], [], ["iw1"], [], ["iw1"]]
    assert list_told(12.0) == ["iw1", "iw2"]


def test_a_worker_counts_once_it_has_the_files(world: World, ledger: Ledger) -> None:
    """Until then the run waits for it, and says for what."""
    record = change(ledger, create_run, "r1", SPEC, 1.0)
    world.speak()
    assert world.readiness.count_workers(record).missing == 1
    assert world.assignment.workers("r1") == []
    assert "waiting for files of the run: 1 of 1 workers fetch them" in world.readiness.build_notices(record)
    world.speak(files=[FILE.digest])
    assert world.readiness.count_workers(record).missing == 0
    assert world.assignment.find_preparing("r1") == []


def report_setup(ledger: Ledger, value: str) -> None:
    """A worker calls the setup of the run, and tells what it returned."""
    change(ledger, start_attempt, "r1", Hook.SETUP, "w", "iw", 3.0)
    report = HookReport(attempt=HookAttempt("r1", Hook.SETUP, 1), value=value)
    batch = CheckpointBatch(worker="w", incarnation="iw", checkpoints=[], hooks=[report])
    apply_batches(ledger, [batch], now=4.0)


def test_a_worker_counts_once_it_has_loaded_the_user_code(world: World, ledger: Ledger) -> None:
    """Until then it is told what to load, and the run waits for it, and says so."""
    record = change(ledger, create_run, "r1", CODE_SPEC, 1.0)
    world.speak(files=[FILE.digest])
    assert world.look()[-1].code == UserCode(spec=CODE_SPEC, setup=NO_SETUP)
    assert world.readiness.count_workers(record).describe() == (
        "0 of 1 workers: 1 loads the user code of the run"
    )
    assert "waiting for user code of the run: 1 of 1 workers load it" in world.readiness.build_notices(record)
    world.speak(files=[FILE.digest], loaded="r1")
    assert world.look()[-1].code is None
    assert world.readiness.count_workers(record).missing == 0


def test_user_code_with_a_setup_is_loaded_with_what_that_returned(world: World, ledger: Ledger) -> None:
    """Not before; what comes after the last iteration needs nobody who has loaded it."""
    change(
        ledger, create_run, "r1", msgspec.structs.replace(CODE_SPEC, hooks=(Hook.SETUP, Hook.TEARDOWN)), 1.0
    )
    world.speak(files=[FILE.digest])
    change(ledger, start_run, "r1", 2.0)
    assert world.look()[-1].code is None
    assert len(world.assignment.workers("r1")) == 1
    report_setup(ledger, "7")
    [fetch] = world.look(0.1)
    assert fetch.code is not None
    assert fetch.code.setup == SetupData(1, "7")
    assert world.assignment.workers("r1") == []
    world.speak(files=[FILE.digest], loaded="r1#1")
    assert len(world.assignment.workers("r1")) == 1


def test_files_take_time(ledger: Ledger) -> None:
    """A run waits a second longer for each 10 MB, whatever of them is named twice."""
    assert find_files_within_s(SPEC) == pytest.approx(2.0)
    assert find_files_within_s(Spec()) == 0
