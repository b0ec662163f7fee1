import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.kit.coordinators.leases import (
    Apply,
    BeginRun,
    Deal,
    MakeBatch,
    apply_batches,
    build_batch,
    build_checkpoint,
    deal_lease,
    expire,
)
from tests.kit.coordinators.transactions import change, check_ledger, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import lifecycle
from oku_coordinator.ledger.rules.leases.closing import measure_extent
from oku_coordinator.ledger.rules.leases.expiring import give_up_run
from oku_coordinator.ledger.rules.leases.waves import start_clock
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run, end_time, fail
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.storage.records import BreachError
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import run_table
from oku_coordinator.ledger.tables.accounts import series_table
from oku_coordinator.ledger.tables.lease_table import fetch_open_leases
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_coordinator.ledger.tables.slice_table import fetch_slices
from oku_core.accounting.interval import Lengths, Slice, SliceState
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.outcome import OUTCOMES
from oku_core.accounting.run_state import FINAL_STATES, RunState, TransitionError
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import OPEN_END, Engine, Hook, Spec


def test_a_run_takes_only_the_ways_that_the_table_has(ledger: Ledger) -> None:
    """Any other transition is refused by name, and changes nothing."""
    change(ledger, create_run, "r1", Spec(requests=10), 0.0)
    with pytest.raises(TransitionError, match="run r1 is pending, it cannot become pausing"):
        change(ledger, change_state, "r1", RunState.PAUSING, 1.0)
    assert read(ledger, fetch_run, "r1").state == RunState.PENDING


def test_a_reason_is_kept_until_the_next_state(ledger: Ledger) -> None:
    """The reason says why a run is in its state."""
    change(ledger, create_run, "r1", Spec(requests=10), 0.0)
    assert change(ledger, change_state, "r1", RunState.PAUSED, 1.0, "a reason").reason == "a reason"
    assert change(ledger, change_state, "r1", RunState.PENDING, 2.0).reason == ""


@pytest.mark.parametrize(
    ("closing", "closed"),
    [(RunState.PAUSING, RunState.PAUSED), (RunState.CANCELLING, RunState.CANCELLED)],
)
def test_a_run_with_nothing_out_rests_at_once(
    ledger: Ledger, begin_run: BeginRun, closing: RunState, closed: RunState
) -> None:
    """There is no worker to wait for."""
    begin_run()
    assert change(ledger, change_state, "r1", closing, 2.0).state == closed


@pytest.mark.parametrize(
    ("closing", "closed"),
    [(RunState.PAUSING, RunState.PAUSED), (RunState.CANCELLING, RunState.CANCELLED)],
)
def test_a_run_rests_when_its_last_lease_is_closed(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply, closing: RunState, closed: RunState
) -> None:
    """What was in flight is accounted first, and the rest of the lease is given back."""
    first, second = deal(), deal()
    assert change(ledger, change_state, "r1", closing, 4.0).state == closing
    apply([make_batch(first, done=4)], 5.0)
    assert read(ledger, fetch_run, "r1").state == closing
    apply([make_batch(second, done=3)], 6.0)
    record = read(ledger, fetch_run, "r1")
    assert (record.state, record.accounted) == (closed, 7)
    assert record.ended_at == (6.0 if closed in FINAL_STATES else None)


@pytest.mark.parametrize("closing", [RunState.PAUSING, RunState.CANCELLING])
def test_a_run_that_is_stopped_right_at_its_end_is_completed(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply, closing: RunState
) -> None:
    """Nothing was left to stop, and it cannot be stopped after that."""
    lease = deal(100)
    change(ledger, change_state, "r1", closing, 4.0)
    apply([make_batch(lease)], 5.0)
    record = read(ledger, fetch_run, "r1")
    assert (record.state, record.ended_at) == (RunState.COMPLETED, 5.0)
    with pytest.raises(TransitionError, match="run r1 is completed"):
        change(ledger, change_state, "r1", closing, 6.0)


def test_a_run_that_is_over_does_not_fail_any_more(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """It stays as it is, whatever is found out about it later."""
    apply([make_batch(deal(100))], 5.0)
    before = read(ledger, fetch_run, "r1")
    change(ledger, lambda transaction: fail(transaction, "r1", "a reason", 9.0))
    assert read(ledger, fetch_run, "r1") == before
    assert before.state == RunState.COMPLETED


def test_only_the_time_between_first_request_and_rest_is_activity(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """The waits for workers, for the end of a pause and for the next turn do not count."""
    lease = deal()
    assert read(ledger, fetch_run, "r1").measure_active_s(3.0) == 0.0
    apply([make_batch(lease, done=1, started_at=4.0, is_final=False)], 4.0)
    assert read(ledger, fetch_run, "r1").measure_active_s(9.0) == 5.0
    change(ledger, change_state, "r1", RunState.PAUSING, 10.0)
    apply([make_batch(lease, sequence=2)], 14.0)
    assert read(ledger, fetch_run, "r1").measure_active_s(99.0) == 10.0
    change(ledger, change_state, "r1", RunState.PENDING, 100.0)
    change(ledger, change_state, "r1", RunState.RUNNING, 200.0)
    assert read(ledger, fetch_run, "r1").measure_active_s(250.0) == 10.0
    lease = deal(90, now=300.0)
    apply([make_batch(lease, started_at=300.0)], 305.0)
    record = read(ledger, fetch_run, "r1")
    assert (record.state, record.active_s, record.active_since) == (RunState.COMPLETED, 15.0, None)
    assert (record.started_at, record.periods) == (4.0, 2)


def test_all_leases_of_a_period_open_it_once(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """Two workers that begin open one period."""
    first, second = deal(), deal()
    batches = [
        make_batch(first, is_final=False),
        make_batch(second, started_at=2.5, is_final=False),
    ]
    apply(batches, 5.0)
    record = read(ledger, fetch_run, "r1")
    assert (record.active_since, record.periods) == (3.0, 1)


def test_a_clock_that_was_set_back_does_not_take_activity_away(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """The period is empty then, not negative."""
    lease = deal()
    apply([make_batch(lease, is_final=False)], 5.0)
    assert read(ledger, fetch_run, "r1").measure_active_s(1.0) == 0.0
    change(ledger, change_state, "r1", RunState.PAUSING, 1.0)
    expire(ledger, [lease.id], ExpiryReason.DROPPED, 1.0)
    assert read(ledger, fetch_run, "r1").active_s == 0.0


def test_the_time_in_the_queue_is_summed_over_all_turns(ledger: Ledger) -> None:
    """It ends with the turn, however the run leaves the queue, and begins anew when it is resumed."""

    def measure(now: float) -> float:
        return read(ledger, fetch_run, "r1").measure_queued_s(now)

    change(ledger, create_run, "r1", Spec(requests=10), 0.0)
    assert (measure(3.0), measure(-1.0)) == (3.0, 0.0)
    change(ledger, lifecycle.requeue, "r1", 4.0, "a reason")
    assert measure(6.0) == 6.0
    change(ledger, lifecycle.start_run, "r1", 7.0)
    assert measure(50.0) == 7.0
    change(ledger, change_state, "r1", RunState.PAUSING, 51.0)
    change(ledger, change_state, "r1", RunState.PENDING, 60.0)
    assert measure(62.0) == 9.0
    change(ledger, change_state, "r1", RunState.CANCELLED, 63.0)
    assert measure(99.0) == 10.0


def test_a_wait_that_a_breach_or_a_teardown_ends_is_counted(
    ledger: Ledger, begin_run: BeginRun, deal: Deal
) -> None:
    """The first takes none of the ways of the table, and the second puts the run behind others."""
    change(ledger, create_run, "r1", Spec(requests=10), 0.0)
    change(ledger, lambda transaction: fail(transaction, "r1", "a reason", 5.0))
    begin_run("r2", engine=Engine.PYTHON, hooks=(Hook.TEARDOWN,))
    deal(run="r2")
    change(ledger, give_up_run, "r2", RunState.PAUSED, 4.0, "a reason")
    change(ledger, change_state, "r2", RunState.PENDING, 10.0)
    change(ledger, change_state, "r2", RunState.CANCELLED, 14.0)
    assert read(ledger, fetch_run, "r2").state == RunState.TEARING_DOWN
    assert [read(ledger, fetch_run, run).measure_queued_s(99.0) for run in ("r1", "r2")] == [5.0, 5.0]


Enter = Callable[..., None]


@pytest.fixture
def begin(ledger: Ledger) -> Enter:
    """Begins a run, whose clock starts at 10 if it has one."""

    def begin(run: str = "r1", **keys: Any) -> None:
        spec = parse_spec(Source(None, {"url": "http://h/", **keys}))
        change(ledger, create_run, run, spec, 0.0)
        change(ledger, change_state, run, RunState.RUNNING, 1.0)
        if spec.has_clock:
            change(ledger, start_clock, run, 10.0, 0.0)

    return begin


def take(ledger: Ledger, run: str = "r1") -> LeaseRecord:
    """A worker gets a lease of up to a hundred requests."""
    return deal_lease(ledger, run, 100, now=9.0)


def finish(ledger: Ledger, lease: LeaseRecord, done: int, times: tuple[float, float], now: float) -> None:
    """A lease comes back of which some are done, between two times of the worker's clock."""
    started_at, ended_at = times
    checkpoint = build_checkpoint(lease, done, end=done, started_at=started_at, ended_at=ended_at)
    apply_batches(ledger, [build_batch(lease, checkpoint)], now)


def test_a_run_without_a_time_was_active_until_its_last_request_had_ended(
    ledger: Ledger, begin: Enter
) -> None:
    """When its coordinator heard of it does not matter."""
    begin(requests=100)
    finish(ledger, take(ledger), 100, (10.0, 10.8), 12.5)
    run = read(ledger, fetch_run, "r1")
    assert (run.state, round(run.active_s, 6)) == (RunState.COMPLETED, 0.8)


def test_a_clock_of_a_worker_that_is_behind_takes_no_time_away(ledger: Ledger, begin: Enter) -> None:
    """Its requests took as long as they took; the lease was cut at 9."""
    begin(requests=100)
    finish(ledger, take(ledger), 100, (4.0, 4.8), 12.5)
    assert read(ledger, fetch_run, "r1").active_s == pytest.approx(0.8)


def test_a_run_that_runs_out_of_requests_before_its_time_ends_with_the_last(
    ledger: Ledger, begin: Enter
) -> None:
    """Its time was not used up; one whose last answers come after it was active for just its time."""
    for run, ended_at, active_s in (("r1", 12.0, 2.0), ("r2", 17.0, 5.0)):
        begin(run, requests=100, duration="5s")
        finish(ledger, take(ledger, run), 100, (10.0, ended_at), ended_at + 0.5)
        record = read(ledger, fetch_run, run)
        assert (record.state, round(record.active_s, 6)) == (RunState.COMPLETED, active_s), run


def test_a_run_whose_target_fell_silent_was_active_for_all_of_its_time(ledger: Ledger, begin: Enter) -> None:
    """Else it would look fast."""
    begin(duration="5s")
    finish(ledger, take(ledger), 10, (10.0, 11.0), 15.1)
    assert change(ledger, end_time, "r1", 15.4)
    run = read(ledger, fetch_run, "r1")
    assert (round(run.active_s, 6), run.requests) == (5.0, 10)


def test_a_run_that_is_stopped_was_active_until_its_workers_stopped(ledger: Ledger, begin: Enter) -> None:
    """Half a second after they were told to, if it has a clock, and not after its time."""
    for run, stopped_at, active_s in (("r1", 12.0, 2.5), ("r2", 14.8, 5.0)):
        begin(run, duration="5s")
        lease = take(ledger, run)
        change(ledger, change_state, run, RunState.CANCELLING, stopped_at)
        finish(ledger, lease, 50, (10.0, stopped_at + 1.0), stopped_at + 3.0)
        record = read(ledger, fetch_run, run)
        assert (record.state, round(record.active_s, 6)) == (RunState.CANCELLED, active_s), run


def test_the_time_of_a_run_with_a_rate_is_that_of_its_schedule(ledger: Ledger, begin: Enter) -> None:
    """Unless it sends late: then it is active for as long as it sends."""
    for run, sent, active_s in (("r1", {14: 20}, 5.0), ("r2", {14: 18, 17: 2}, 7.5)):
        begin(run, rate="20/s", duration="5s")
        change(ledger, partial(end, run=run, sent=sent, ended_at=17.5, now=18.0))
        assert read(ledger, fetch_run, run).active_s == pytest.approx(active_s), run


def end(transaction: Transaction, run: str, sent: Mapping[int, int], ended_at: float, now: float) -> None:
    """All requests of a run are accounted; so many were sent in these seconds."""
    counts = {second: [0] * len(OUTCOMES) + [count] for second, count in sent.items()}
    series_table.add_seconds(transaction, run, counts)
    run_table.record_last_end(transaction, run, ended_at)
    record = run_table.fetch_run(transaction, run)
    lifecycle.end_active_period(transaction, record, now, is_complete=True)


def test_a_run_that_is_paused_without_a_clock_ends_with_its_last_answer(ledger: Ledger, begin: Enter) -> None:
    """If that was told of soon; a longer silence was part of its time."""
    for run, now, active_s in (("r1", 11.3, 0.8), ("r2", 13.0, 3.0)):
        begin(run, requests=1000)
        lease = take(ledger, run)
        finish_some(ledger, lease, now=10.4)
        change(ledger, change_state, run, RunState.PAUSING, 10.5)
        finish(ledger, read(ledger, fetch_open_leases, run)[0], 50, (10.0, 10.8), now)
        record = read(ledger, fetch_run, run)
        assert (record.state, round(record.active_s, 6)) == (RunState.PAUSED, active_s), run


def finish_some(ledger: Ledger, lease: LeaseRecord, now: float) -> None:
    """A worker tells of its first requests."""
    checkpoint = build_checkpoint(lease, 10, is_final=False, started_at=10.0, ended_at=now)
    apply_batches(ledger, [build_batch(lease, checkpoint)], now)


@pytest.fixture
def raw(path: Path, ledger: Ledger) -> Iterator[sqlite3.Connection]:  # it is there first
    """Change the file directly, past the ledger."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def begin_timed(ledger: Ledger, **keys: object) -> None:
    """Begin a closed run that is bounded by time."""
    change(
        ledger,
        create_run,
        "r1",
        parse_spec(Source(None, {"url": "http://shop.test/", "duration": "10s", **keys})),
        0.0,
    )
    change(ledger, lifecycle.start_run, "r1", 1.0)


@pytest.mark.parametrize(("keys", "space"), [({}, OPEN_END), ({"requests": 50}, 50)])
def test_when_the_time_is_over_the_rest_is_unused(
    ledger: Ledger, make_batch: MakeBatch, keys: dict[str, object], space: int
) -> None:
    """The run is completed with what is accounted, be it bounded by a number, too, or not."""
    begin_timed(ledger, **keys)
    first, second = deal_lease(ledger, "r1", 10, 2.0), deal_lease(ledger, "r1", 10, 2.0)
    apply_batches(ledger, [make_batch(first, done=10, in_flight=[4])], 10.0)
    assert not change(ledger, end_time, "r1", 11.0)
    assert check_ledger(ledger, "r1") == Lengths(pending=space - 19, leased=10, accounted=9)
    apply_batches(ledger, [make_batch(second, done=6)], 11.5)
    assert change(ledger, end_time, "r1", 12.0)
    snapshot = read(ledger, fetch_snapshot, "r1")
    assert (snapshot.record.state, snapshot.record.requests, snapshot.breach) == (
        RunState.COMPLETED,
        15,
        None,
    )
    assert snapshot.lengths == Lengths(pending=0, leased=0, accounted=15, unused=space - 15)
    assert read(ledger, fetch_slices, "r1") == [
        Slice(0, 4, SliceState.ACCOUNTED), Slice(4, 5, SliceState.UNUSED), Slice(5, 16, SliceState.ACCOUNTED),
        Slice(16, space, SliceState.UNUSED),
    ]  # fmt: skip
    assert change(ledger, end_time, "r1", 13.0)


def test_of_a_run_that_is_bounded_by_time_only_what_was_dealt_is_worth_showing(
    ledger: Ledger, make_batch: MakeBatch, begin_run: Callable[..., object]
) -> None:
    """Of any other run all of the space is."""
    begin_timed(ledger)
    assert read(ledger, measure_extent, "r1") == 0
    lease = deal_lease(ledger, "r1", 10, 2.0)
    assert read(ledger, measure_extent, "r1") == 10
    apply_batches(ledger, [make_batch(lease, done=6)], 11.0)
    change(ledger, end_time, "r1", 12.0)
    assert read(ledger, measure_extent, "r1") == 6
    begin_run("r2", 100)
    assert read(ledger, measure_extent, "r2") == 100


def test_a_run_that_is_being_paused_when_its_time_ends_is_paused(
    ledger: Ledger, make_batch: MakeBatch
) -> None:
    """It is completed once it is resumed and its clock says that its time is over."""
    begin_timed(ledger)
    lease = deal_lease(ledger, "r1", 10, 2.0)
    change(ledger, change_state, "r1", RunState.PAUSING, 9.0)
    assert not change(ledger, end_time, "r1", 11.0)
    assert read(ledger, fetch_run, "r1").state == RunState.PAUSING
    apply_batches(ledger, [make_batch(lease, done=6)], 11.5)
    assert not change(ledger, end_time, "r1", 12.0)
    assert read(ledger, fetch_run, "r1").state == RunState.PAUSED
    for state in (RunState.PENDING, RunState.RUNNING):
        change(ledger, change_state, "r1", state, 13.0)
    assert change(ledger, end_time, "r1", 14.0)
    record = read(ledger, fetch_run, "r1")
    assert (record.state, record.requests) == (RunState.COMPLETED, 6)


def test_only_the_time_of_an_active_run_that_is_bounded_by_it_can_end(
    ledger: Ledger, begin_run: Callable[..., object]
) -> None:
    """Others keep what is pending."""
    begin_run("r2", 100)
    assert not change(ledger, end_time, "r2", 11.0)
    assert check_ledger(ledger, "r2").pending == 100
    change(
        ledger,
        create_run,
        "r1",
        parse_spec(Source(None, {"url": "http://shop.test/", "duration": "10s"})),
        0.0,
    )
    assert not change(ledger, end_time, "r1", 11.0)
    assert check_ledger(ledger, "r1").pending == OPEN_END


def test_what_is_unused_and_the_requests_of_a_run_make_up_its_space(
    ledger: Ledger, raw: sqlite3.Connection
) -> None:
    """A run that says otherwise does not balance."""
    begin_timed(ledger)
    change(ledger, end_time, "r1", 11.0)
    raw.execute("UPDATE runs SET requests = 7")
    with pytest.raises(BreachError, match=rf"{OPEN_END} are unused, but the run has 7 of {OPEN_END}"):
        check_ledger(ledger, "r1")
