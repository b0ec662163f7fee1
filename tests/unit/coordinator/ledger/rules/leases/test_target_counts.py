import tracemalloc
from collections import Counter
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.transactions import change, check_ledger, read
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.failed_requests import fetch_failed_requests
from oku_coordinator.ledger.rules.leases import waves
from oku_coordinator.ledger.rules.leases.unsent import account_not_dealt
from oku_coordinator.ledger.rules.lifecycle import begin_run, create_run
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.storage.schedule_records import Deal, Dealing
from oku_core.accounting.index_ranges import Range
from oku_core.schedule.lane import Lane
from oku_core.schedule.stage import Arrivals
from oku_core.schedule.wave import Wave, plan_wave
from oku_core.spec.load import build_schedule
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.request_template import RequestMix
from oku_core.spec.spec import Spec
from oku_core.spec.values.quantity import Rate

WAVE = Wave(0, 40, 3, 0, (10, 20, 30, 40))


def build_spec(arrivals: str) -> Spec:
    """A run of 100 requests in ten seconds to two targets, one of which gets three of four."""
    targets = [{"name": "home", "weight": 3, "url": "/"}, {"name": "cart", "url": "/cart"}]
    load = {"rate": "10/s", "duration": "10s", "arrivals": arrivals}
    return parse_spec(Source(None, {"base-url": "http://h", "targets": targets, **load}))


def count_one_by_one(spec: Spec, ranges: Sequence[Range]) -> dict[str, int]:
    """The same, by the definition of an index and of a template."""
    schedule, mix = build_schedule(spec), RequestMix(spec)
    places = {place for start, stop in ranges for place in range(start, stop)}
    names: Counter[str] = Counter()
    for number in range(WAVE.lanes):
        lane = Lane(schedule, WAVE, number)
        for place in sorted(places & set(range(lane.start, lane.stop))):
            [(index, _)] = lane.iter_dues(place, place + 1)
            names[mix.find(index).name] += 1
    names.update(mix.find(place).name for place in places if place >= WAVE.stop)
    return dict(names)


@settings(max_examples=20)
@given(
    arrivals=st.sampled_from(list(Arrivals)),
    ranges=st.lists(st.tuples(st.integers(0, 99), st.integers(1, 30)), min_size=1, max_size=4),
)
def test_what_nobody_sent_counts_for_the_target_that_its_index_asks(
    tmp_path_factory: pytest.TempPathFactory, arrivals: Arrivals, ranges: list[Range]
) -> None:
    """A place in a wave is not its index; behind all waves it is."""
    ledger = open_ledger(tmp_path_factory.mktemp("targets") / "ledger.sqlite3")
    spec = build_spec(arrivals)
    change(ledger, create_run, "r1", spec, 0.0)
    change(ledger, begin_run, "r1", 1.0)

    def cut(_: Dealing) -> Deal:
        return Deal(dropped=(), waves=(WAVE,), next_block=4, orders=())

    change(ledger, waves.deal, "r1", cut, 2.0)
    due = [(start, min(100, start + length)) for start, length in ranges]
    change(ledger, account_not_dealt, "r1", due, 9.0)
    accounts = read(ledger, fetch_snapshot, "r1").accounts.parts
    found = {name: sum(account.outcomes) for (_, name), account in accounts.items()}
    assert found == count_one_by_one(spec, due)
    assert check_ledger(ledger, "r1").accounted == sum(found.values())
    ledger.close()


def test_targets_that_nothing_is_of_get_no_account(ledger: Ledger) -> None:
    """One request is of one target."""
    change(ledger, create_run, "r1", build_spec("even"), 0.0)
    change(ledger, begin_run, "r1", 1.0)
    change(ledger, account_not_dealt, "r1", [(70, 71)], 9.0)
    accounts = read(ledger, fetch_snapshot, "r1").accounts.parts
    assert [account.outcomes for account in accounts.values()] == [make_counts(not_sent=1)]


def test_hours_that_nobody_sent_take_no_memory(ledger: Ledger) -> None:
    """A coordinator that comes back may have to account for all of them at once."""
    spec = msgspec.structs.replace(build_spec("even"), duration_s=30_000.0, requests=300_000)
    change(ledger, create_run, "r1", spec, 0.0)
    change(ledger, begin_run, "r1", 1.0)
    tracemalloc.start()
    try:
        change(ledger, account_not_dealt, "r1", [(0, 300_000)], 30_000.0)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    parts = read(ledger, fetch_snapshot, "r1").accounts.parts
    assert {name: part.accounted for (_, name), part in parts.items()} == {"home": 225_000, "cart": 75_000}
    reasons = [count for part in parts.values() for count in part.reasons.values()]
    assert (min(count.first for count in reasons), max(count.last for count in reasons)) == (0, 299_999)


@pytest.mark.parametrize("arrivals", Arrivals)
def test_billions_that_nobody_sent_are_counted_at_once(ledger: Ledger, arrivals: Arrivals) -> None:
    """Whole waves and parts of their lanes: no request of theirs is looked at by itself."""
    spec = build_spec(arrivals.value)
    spec = msgspec.structs.replace(spec, rate=Rate("1G/s"), requests=10**10)
    change(ledger, create_run, "r1", spec, 0.0)
    change(ledger, begin_run, "r1", 1.0)
    schedule = build_schedule(spec)
    wave = plan_wave(schedule, 0, 3)
    assert wave is not None
    change(ledger, waves.deal, "r1", lambda _: Deal(dropped=(), waves=(wave,), next_block=2, orders=()), 2.0)
    start, stop = wave.lane_range(1)
    due = [(start + 12_345, stop - 54_321), (wave.stop, 4 * 10**9)]
    change(ledger, account_not_dealt, "r1", due, 9.0)
    counted = sum(stop - start for start, stop in due)
    parts = read(ledger, fetch_snapshot, "r1").accounts.parts
    found = {name: part.accounted for (_, name), part in parts.items()}
    assert sum(found.values()) == counted
    assert found["home"] == pytest.approx(counted * 3 / 4, abs=1000)
    failed = read(ledger, fetch_failed_requests, "r1")
    assert failed.requests == counted
    assert 0 < len(failed.spans) <= 200_000
