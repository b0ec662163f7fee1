from pathlib import Path

import pytest
from tests.kit.coordinators.leases import BeginRun
from tests.kit.coordinators.transactions import change, read
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.history import fetch_history, keep_events, keep_second
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.measured_time import Time
from oku_core.results.event import Event, EventType
from oku_core.results.sample import Sample, merge_samples
from oku_core.results.sample import build_sample as build

MOST = 200


@pytest.fixture(autouse=True)
def _room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the number of samples that a run keeps."""
    monkeypatch.setattr("oku_coordinator.ledger.tables.history_table.MOST_SAMPLES", MOST)


def build_sample(at: float) -> Sample:
    """Build a second of a run."""
    histogram = Histogram()
    for value_us in (1000, 2000, 1000 * int(at % 97) + 1):
        histogram.record(value_us)
    return build(
        at=at, seconds=1.0, requests_total=int(at), accounted=int(at), leased=0, pending=0, done=int(at),
        resent_at_most=0, in_flight=at % 7, workers=1, outcomes=make_counts(2, unexpected_status=1),
        times={Time.LATENCY: histogram.build_latency()},
    )  # fmt: skip


def test_a_long_history_is_thinned_out_bit_by_bit(ledger: Ledger, begin_run: BeginRun) -> None:
    """Nothing that was counted is ever lost, and there are never many more samples than there may be."""
    begin_run()
    whole = [build_sample(float(at)) for at in range(1, MOST + 140)]
    for place, sample in enumerate(whole, 1):
        change(ledger, keep_second, "r1", sample)
        if place > MOST and place % 10 == 0:
            kept = read(ledger, fetch_history, "r1").samples
            assert len(kept) <= MOST + 70
            assert sum(each.requests_ended for each in kept) == 3 * place
            assert sum(each.seconds for each in kept) == place
            assert [each.at for each in kept] == sorted({each.at for each in kept})
    kept = read(ledger, fetch_history, "r1").samples
    assert merge_samples(kept).histogram(Time.LATENCY) == merge_samples(whole).histogram(Time.LATENCY)
    assert merge_samples(kept).in_flight == pytest.approx(merge_samples(whole).in_flight)
    assert {each.seconds for each in kept[1:30]} == {4.0}


def test_merging_goes_on_where_a_process_ended(ledger: Ledger, begin_run: BeginRun, path: Path) -> None:
    """The ledger knows what has been merged and what has not."""
    begin_run()
    for at in range(MOST + 3):
        change(ledger, keep_second, "r1", build_sample(float(at)))
    ledger.close()
    again = Ledger(path)
    begun = len(read(again, fetch_history, "r1").samples)
    for at in range(MOST + 3, MOST + 10):
        change(again, keep_second, "r1", build_sample(float(at)))
    kept = read(again, fetch_history, "r1").samples
    again.close()
    assert MOST / 4 + 20 < begun <= MOST + 3
    assert len(kept) < MOST / 4 + 20
    assert sum(each.seconds for each in kept) == MOST + 10


def test_a_run_keeps_so_many_events_and_no_more(
    ledger: Ledger, begin_run: BeginRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps the first ones, in their order."""
    monkeypatch.setattr("oku_coordinator.ledger.tables.history_table.MOST_EVENTS", 5)
    begin_run()
    change(
        ledger,
        keep_events,
        "r1",
        [Event(at=float(at), type=EventType.STATE, text=f"{at}") for at in range(9)],
    )
    assert [event.text for event in read(ledger, fetch_history, "r1").events][-3:] == ["0", "1", "2"]
