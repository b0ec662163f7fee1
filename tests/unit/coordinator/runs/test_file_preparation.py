import msgspec
import pytest
from tests.kit.coordinators.broker_twin import BrokerTwin

from oku_coordinator.ledger import Ledger
from oku_coordinator.runs.file_preparation import FilePreparation, find_files_within_s
from oku_coordinator.runs.readiness import Readiness
from oku_coordinator.workers.liveness import Roster
from oku_core.messaging.order import Fetch
from oku_core.messaging.progress import Progress
from oku_core.spec.spec import Spec
from oku_core.spec.values.file_reference import FileRef

FILE = FileRef.build("1" * 64, 20_000_000, "body.json")
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
    assert roster.find_fetching("r1") == []


def test_files_take_time(ledger: Ledger) -> None:
    """A run waits a second longer for each 10 MB, whatever of them is named twice."""
    assert find_files_within_s(SPEC) == pytest.approx(2.0)
    assert find_files_within_s(Spec()) == 0
