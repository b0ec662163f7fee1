import json
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.leases import apply_batches, deal_lease
from tests.kit.coordinators.transactions import change, check_ledger, read
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.failed_requests import fetch_failed_requests
from oku_coordinator.ledger.rules.history import fetch_history
from oku_coordinator.ledger.rules.leases import waves
from oku_coordinator.ledger.rules.leases.unsent import account_not_dealt
from oku_coordinator.ledger.rules.lifecycle import create_run, start_run
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.storage.schedule_records import Deal, Dealing
from oku_coordinator.ledger.tables.outbox_table import fetch_batch
from oku_coordinator.ledger.tables.slice_table import fetch_slices
from oku_core.accounting.index_ranges import Range
from oku_core.accounting.interval import Slice, SliceState
from oku_core.messaging.checkpoint import CheckpointBatch, Part
from oku_core.results.lines import LineKind
from oku_core.schedule.lane import Lane
from oku_core.schedule.stage import Arrivals
from oku_core.schedule.wave import Wave, plan_wave
from oku_core.spec.load import build_schedule
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.request_template import RequestMix
from oku_core.spec.spec import Spec
from oku_core.spec.values.quantity import Rate

PENDING, LEASED, ACCOUNTED = SliceState.PENDING, SliceState.LEASED, SliceState.ACCOUNTED


def build_spec(**keys: object) -> Spec:
    """A run of 100 requests in ten seconds, in two phases of 40 and 60."""
    return parse_spec(Source(None, {"stages": ["4s:10..10/s", "6s:10/s"], **keys}))


@pytest.fixture
def run(ledger: Ledger) -> str:
    """An open run that has begun."""
    change(ledger, create_run, "r1", build_spec(), 0.0)
    return change(ledger, start_run, "r1", 1.0).run


def deal(ledger: Ledger, size: int = 10) -> LeaseRecord:
    """Deal the first pending indices."""
    return deal_lease(ledger, "r1", size, 2.0)


def test_what_the_coordinator_accounts_for_is_in_lines_and_seconds(path: Path) -> None:
    """The lines of a run sum to its account, and the seconds, too."""
    ledger = Ledger(path, publishes=True)
    change(ledger, create_run, "r1", build_spec(), 0.0)
    change(ledger, start_run, "r1", 1.0)
    change(ledger, account_not_dealt, "r1", [(30, 50)], 7.9)
    lines = [
        json.loads(line.text)
        for line in change(ledger, fetch_batch, 100, 10**6, 9.0)
        if line.kind == LineKind.RANGE
    ]
    assert [(line["phase"], line["requests"], line["not_sent"]) for line in lines] == [
        ("stage-1", 10, 10), ("stage-2", 10, 10),
    ]  # fmt: skip
    (sample,) = read(ledger, fetch_history, "r1").samples
    assert (sample.at, sample.outcomes) == (8.0, make_counts(not_sent=20))
    ledger.close()


def test_thousands_of_slices_are_accounted_page_by_page(ledger: Ledger) -> None:
    """Leases that lie between stay, and neighbours are joined over the borders of pages."""
    change(ledger, create_run, "r1", parse_spec(Source(None, {"rate": "1000/s", "duration": "10s"})), 0.0)
    change(ledger, start_run, "r1", 1.0)
    change(ledger, account_not_dealt, "r1", [(start, start + 1) for start in range(0, 3000, 5)], 2.0)
    assert change(ledger, account_not_dealt, "r1", [(3, 9_999)], 3.0) == 9996 - 599
    assert read(ledger, fetch_slices, "r1") == [
        Slice(0, 1, ACCOUNTED), Slice(1, 3, PENDING), Slice(3, 9_999, ACCOUNTED),
        Slice(9_999, 10_000, PENDING),
    ]  # fmt: skip
    assert check_ledger(ledger, "r1").accounted == 9997


@pytest.mark.parametrize(
    "part",
    [
        Part(phase="stage-1", outcomes=make_counts(lost=10), per_second={3: make_counts(lost=10)}),
        Part(
            phase="stage-1", outcomes=make_counts(not_sent=10), not_sent=[0, 0, 10],
            per_second={3: make_counts(not_sent=10)},
        ),
    ],
    ids=["lost", "not dealt"],
)  # fmt: skip
def test_workers_cannot_say_what_only_the_coordinator_knows(
    ledger: Ledger, run: str, make_batch: Callable[..., CheckpointBatch], part: Part
) -> None:
    """A checkpoint with lost requests, or with such that no worker had, is untrue."""
    lease = deal(ledger)
    assert apply_batches(ledger, [make_batch(lease, parts=[part])], 4.0) == ["untrue"]
    assert check_ledger(ledger, run).accounted == 0


WAVE = Wave(0, 40, 3, 0, (10, 20, 30, 40))


def build_spec_of_targets(arrivals: str) -> Spec:
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
    spec = build_spec_of_targets(arrivals)
    change(ledger, create_run, "r1", spec, 0.0)
    change(ledger, start_run, "r1", 1.0)

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


def test_hours_that_nobody_sent_take_no_memory(ledger: Ledger) -> None:
    """A coordinator that comes back may have to account for all of them at once."""
    spec = msgspec.structs.replace(build_spec_of_targets("even"), duration_s=30_000.0, requests=300_000)
    change(ledger, create_run, "r1", spec, 0.0)
    change(ledger, start_run, "r1", 1.0)
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


@pytest.mark.heavy
@pytest.mark.parametrize("arrivals", Arrivals)
def test_billions_that_nobody_sent_are_counted_at_once(ledger: Ledger, arrivals: Arrivals) -> None:
    """Whole waves and parts of their lanes: no request of theirs is looked at by itself."""
    spec = build_spec_of_targets(arrivals.value)
    spec = msgspec.structs.replace(spec, rate=Rate("1G/s"), requests=10**10)
    change(ledger, create_run, "r1", spec, 0.0)
    change(ledger, start_run, "r1", 1.0)
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
