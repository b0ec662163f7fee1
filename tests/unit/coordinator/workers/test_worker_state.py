from pathlib import Path

import pytest
from tests.kit.coordinators.leases import deal_lease
from tests.kit.coordinators.transactions import change

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import create_run, start_run
from oku_coordinator.workers.worker_state import FlightRecords, RunRate
from oku_core.messaging.process_ends import FlightRecord
from oku_core.spec.spec import Spec
from oku_core.spec.values.url import Url


def test_the_first_interval_does_not_count() -> None:
    """The worker may have begun at its very end."""
    rate = RunRate("r1")
    rate.record_interval(10, 1.0, 100)
    assert rate.rate_rps is None
    rate.record_interval(1000, 1.0, 100)
    assert rate.rate_rps == 1000


def test_a_worker_that_waits_for_a_schedule_has_not_begun() -> None:
    """It has leases before anything is due; the interval in which it begins may be idle for the most part."""
    rate = RunRate("r1")
    for ended, in_flight in ((0, 0), (0, 0), (5, 100), (1000, 100)):
        rate.record_interval(ended, 1.0, in_flight)
    assert (rate.rate_rps, rate.mean_in_flight) == (1000, 100)


def test_a_rate_follows_a_change_within_seconds() -> None:
    """It is a mean over about ten of them."""
    rate = RunRate("r1")
    for _ in range(60):
        rate.record_interval(1000, 1.0, 100)
    for _ in range(20):
        rate.record_interval(100, 1.0, 100)
    assert rate.rate_rps is not None
    assert 100 < rate.rate_rps < 250


def test_how_many_are_in_flight_is_a_mean_over_the_same_time() -> None:
    """By Little's law, that divided by the rate is how long a request takes."""
    rate = RunRate("r1")
    assert rate.mean_in_flight == 0
    for in_flight in (1000, *(90, 110) * 30):
        rate.record_interval(1000, 1.0, in_flight)
    assert rate.mean_in_flight == pytest.approx(100, rel=0.02)


def test_answers_in_bursts_do_not_look_like_a_high_rate() -> None:
    """A hundred requests in step take thirty seconds: that is 3.3/s at every moment, or less at first."""
    rate = RunRate("r1")
    rates = []
    for second in range(300):
        rate.record_interval(100 if second and second % 30 == 0 else 0, 1.0, 100)
        rates.append(rate.rate_rps)
    assert rates[29] is None
    assert all(known is not None and 1.5 < known < 5 for known in rates[30:])
    assert rates[-1] == pytest.approx(3.3, rel=0.35)


def test_a_silence_bounds_the_rate() -> None:
    """A window that was not answered for ten seconds cannot be worth more than a tenth of it each second."""
    rate = RunRate("r1")
    bounds = []
    for _ in range(11):
        rate.record_interval(0, 1.0, 100)
        bounds.append(rate.bound(100))
    assert bounds[:3] == [float("inf")] * 3
    assert bounds[10] == pytest.approx(10)
    rate.record_interval(50, 1.0, 50)
    assert rate.bound(100) == rate.rate_rps


def test_a_worker_with_nothing_to_do_is_not_slow() -> None:
    """Seconds without a request in flight say nothing."""
    rate = RunRate("r1")
    for ended, in_flight in ((0, 100), (1000, 100), (0, 0), (0, 0)):
        rate.record_interval(ended, 1.0, in_flight)
    assert rate.rate_rps == 1000


def test_what_was_taken_never_falls() -> None:
    """Checkpoints may come out of order."""
    rate = RunRate("r1")
    for taken in (10, 30, 20):
        rate.record_taken(taken, rate_rps=5.0)
    assert (rate.taken, rate.early_rps) == (30, 5.0)


def test_a_record_tells_of_the_leases_of_its_process_alone(tmp_path: Path) -> None:
    """The first one that is heard stays: a dead process writes no more."""
    ledger = Ledger(tmp_path / "ledger.sqlite3")
    change(ledger, create_run, "r1", Spec(requests=100, urls=(Url("http://target.test/"),)), 0.0)
    change(ledger, start_run, "r1", 1.0)
    mine, other = deal_lease(ledger, "r1", 10, 2.0), deal_lease(ledger, "r1", 10, 2.0, worker="w2")
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
    assert records.find_unapplied("r1") == ["b1"]
    records.record_applied("r1", ["b1"])
    records.record([FlightRecord(incarnation="b2")])
    assert records.find_unapplied("r1") == ["b2"]
    assert records.find_unapplied("r2") == ["b1", "b2"]


def test_a_bounded_number_of_records_is_kept() -> None:
    """The newest."""
    records = FlightRecords()
    records.record(FlightRecord(incarnation=f"b{number}") for number in range(10_500))
    assert len(records.find_unapplied("r1")) == 10_000
    assert records.find_unapplied("r1")[-1] == "b10499"
