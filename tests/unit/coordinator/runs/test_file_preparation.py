import msgspec
import pytest
from tests.kit.coordinators.broker_twin import BrokerTwin
from tests.kit.coordinators.leases import apply_batches

from oku_coordinator.ledger import Ledger
from oku_coordinator.runs.file_preparation import FilePreparation, find_files_within_s
from oku_coordinator.runs.readiness import Readiness
from oku_coordinator.workers.liveness import Roster
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.hook import NO_SETUP, HookAttempt, HookReport, SetupData
from oku_core.messaging.order import Fetch, UserCode
from oku_core.messaging.progress import Progress
from oku_core.spec.spec import Engine, Hook, Spec
from oku_core.spec.values.code_file import CodeFile
from oku_core.spec.values.file_reference import FileRef

FILE = FileRef.build("1" * 64, 20_000_000, "body.json")
CODE_SPEC = Spec(engine=Engine.PYTHON, scenario=CodeFile.build("scenario.py", FILE), workers=1)
SPEC = Spec(body=str(FILE), cacert=str(FILE), workers=1)


def test_workers_are_told_what_to_fetch(ledger: Ledger) -> None:
    """Each file once, with its ticket, and as long as the run has its turn; nothing without files."""
    broker = BrokerTwin()
    preparation = FilePreparation(ledger, Roster(10.0), broker, lambda digest: f"ticket for {digest[:2]}")
    preparation.look()
    ledger.runs.create("r0", Spec(), 1.0)
    preparation.look()
    assert broker.fetches == []
    ledger.runs.begin("r0", 2.0)
    ledger.runs.give_up("r0", state=ledger.runs.fetch("r0").state.FAILED, now=3.0, reason="x")
    ledger.runs.create("r1", SPEC, 4.0)
    preparation.look()
    assert broker.fetches == [Fetch(run="r1", files=[str(FILE)], tickets={FILE.digest: "ticket for 11"})]


def test_a_worker_counts_once_it_has_the_files(ledger: Ledger) -> None:
    """Until then the run waits for it, and says for what; for other runs it counts all the while."""
    roster = Roster(10.0)
    readiness = Readiness(ledger, roster)
    record = ledger.runs.create("r1", SPEC, 1.0)
    progress = Progress(worker="w", incarnation="i", at=1.0, sequence=1)
    roster.record(progress, 1.0, 1.0)
    assert readiness.count_workers(record).missing == 1
    assert roster.workers("r1") == []
    assert len(roster.workers("r2")) == len(roster.workers()) == 1
    assert "waiting for files of the run: 1 of 1 workers fetch them" in readiness.build_notices(record)
    roster.record(msgspec.structs.replace(progress, sequence=2, files=[FILE.digest]), 2.0, 2.0)
    assert readiness.count_workers(record).missing == 0
    assert roster.find_preparing("r1") == []


def report_setup(ledger: Ledger, value: str) -> None:
    """A worker calls the setup of the run, and tells what it returned."""
    ledger.hooks.begin("r1", Hook.SETUP, "w", "i", 3.0)
    report = HookReport(attempt=HookAttempt("r1", Hook.SETUP, 1), value=value)
    batch = CheckpointBatch(worker="w", incarnation="i", checkpoints=[], hooks=[report])
    apply_batches(ledger, [batch], now=4.0)


def test_a_worker_counts_once_it_has_loaded_the_user_code(ledger: Ledger) -> None:
    """Until then it is told what to load, and the run waits for it, and says so."""
    roster, broker = Roster(10.0), BrokerTwin()
    readiness, preparation = Readiness(ledger, roster), FilePreparation(ledger, roster, broker, str)
    record = ledger.runs.create("r1", CODE_SPEC, 1.0)
    progress = Progress(worker="w", incarnation="i", at=1.0, sequence=1, files=[FILE.digest])
    roster.record(progress, 1.0, 1.0)
    preparation.look()
    assert broker.fetches[-1].code == UserCode(spec=CODE_SPEC, setup=NO_SETUP)
    assert readiness.count_workers(record).describe() == "0 of 1 workers: 1 loads the user code of the run"
    assert "waiting for user code of the run: 1 of 1 workers load it" in readiness.build_notices(record)
    roster.record(msgspec.structs.replace(progress, sequence=2, loaded="r1"), 2.0, 2.0)
    preparation.look()
    assert broker.fetches[-1].code is None
    assert readiness.count_workers(record).missing == 0


def test_user_code_with_a_setup_is_loaded_with_what_that_returned(ledger: Ledger) -> None:
    """Not before; what comes after the last iteration needs nobody who has loaded it."""
    roster, broker = Roster(10.0), BrokerTwin()
    preparation = FilePreparation(ledger, roster, broker, str)
    ledger.runs.create("r1", msgspec.structs.replace(CODE_SPEC, hooks=(Hook.SETUP, Hook.TEARDOWN)), 1.0)
    progress = Progress(worker="w", incarnation="i", at=1.0, sequence=1, files=[FILE.digest])
    roster.record(progress, 1.0, 1.0)
    ledger.runs.begin("r1", 2.0)
    preparation.look()
    assert broker.fetches[-1].code is None
    assert len(roster.workers("r1")) == 1
    report_setup(ledger, "7")
    preparation.look()
    code = broker.fetches[-1].code
    assert code is not None
    assert code.setup == SetupData(1, "7")
    assert roster.workers("r1") == []
    roster.record(msgspec.structs.replace(progress, sequence=2, loaded="r1#1"), 5.0, 5.0)
    assert len(roster.workers("r1")) == 1


def test_files_take_time(ledger: Ledger) -> None:
    """A run waits a second longer for each 10 MB, whatever of them is named twice."""
    assert find_files_within_s(SPEC) == pytest.approx(2.0)
    assert find_files_within_s(Spec()) == 0
