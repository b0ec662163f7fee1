from pathlib import Path

from tests.kit.coordinators.leases import deal_lease
from tests.kit.coordinators.transactions import change

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import create_run, start_run
from oku_coordinator.workers.worker_state import FlightRecords
from oku_core.messaging.process_ends import FlightRecord
from oku_core.spec.spec import Spec
from oku_core.spec.values.url import Url


def test_a_record_tells_of_the_leases_of_its_process_alone(tmp_path: Path) -> None:
    """The first one that is heard stays: a dead process writes no more."""
    ledger = Ledger(tmp_path / "ledger.sqlite3")
    change(ledger, create_run, "r1", Spec(requests=100, urls=(Url("http://target.test/"),)), 0.0)
    change(ledger, start_run, "r1", 1.0)
    mine, other = deal_lease(ledger, "r1", 10, 2.0), deal_lease(ledger, "r1", 10, 2.0, worker="w2")
    assert mine is not None
    assert other is not None
    records = FlightRecords()
    assert records.find_reached(mine) is None
    assert records.record([FlightRecord(incarnation="b1", reached={mine.id: 3})])
    assert not records.record([FlightRecord(incarnation="b1", reached={mine.id: 2})])
    assert records.find_reached(mine) == 3
    assert records.find_reached(other) is None
    ledger.close()


def test_each_record_is_compared_once_with_the_leases_of_a_run() -> None:
    """And with those of the next one."""
    records = FlightRecords()
    records.record([FlightRecord(incarnation="b1")])
    assert records.find_unused("r1") == ["b1"]
    records.record_used("r1", ["b1"])
    records.record([FlightRecord(incarnation="b2")])
    assert records.find_unused("r1") == ["b2"]
    assert records.find_unused("r2") == ["b1", "b2"]


def test_a_bounded_number_of_records_is_kept() -> None:
    """The newest."""
    records = FlightRecords()
    records.record(FlightRecord(incarnation=f"b{number}") for number in range(10_500))
    assert len(records.find_unused("r1")) == 10_000
    assert records.find_unused("r1")[-1] == "b10499"
