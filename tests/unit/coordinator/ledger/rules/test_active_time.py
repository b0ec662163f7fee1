from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
from tests.kit.coordinators.leases import apply_batches, build_batch, build_checkpoint, deal_lease
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import active_time
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run, end_time
from oku_coordinator.ledger.rules.waves import open_period
from oku_coordinator.ledger.storage.records import LeaseRecord
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import run_table, series_table
from oku_coordinator.ledger.tables.lease_table import fetch_open_leases
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_core.accounting.outcome import OUTCOMES
from oku_core.accounting.run_state import RunState
from oku_core.spec.parser import Source, parse_spec

Begin = Callable[..., None]


@pytest.fixture
def begin(ledger: Ledger) -> Begin:
    """Begins a run, whose clock starts at 10 if it has one."""

    def begin(run: str = "r1", **keys: Any) -> None:
        spec = parse_spec(Source(None, {"url": "http://h/", **keys}))
        change(ledger, create_run, run, spec, 0.0)
        change(ledger, change_state, run, RunState.RUNNING, 1.0)
        if spec.has_clock:
            change(ledger, open_period, run, 10.0, 0.0)

    return begin


def take(ledger: Ledger, run: str = "r1") -> LeaseRecord:
    """A worker gets a lease of up to a hundred requests."""
    lease = deal_lease(ledger, run, 100, now=9.0)
    assert lease is not None
    return lease


def finish(ledger: Ledger, lease: LeaseRecord, done: int, times: tuple[float, float], now: float) -> None:
    """A lease comes back of which some are done, between two times of the worker's clock."""
    started_at, ended_at = times
    checkpoint = build_checkpoint(lease, done, end=done, started_at=started_at, ended_at=ended_at)
    apply_batches(ledger, [build_batch(lease, checkpoint)], now)


def test_a_run_without_a_time_was_active_until_its_last_request_had_ended(
    ledger: Ledger, begin: Begin
) -> None:
    """When its coordinator heard of it does not matter."""
    begin(requests=100)
    finish(ledger, take(ledger), 100, (10.0, 10.8), 12.5)
    run = read(ledger, fetch_run, "r1")
    assert (run.state, round(run.active_s, 6)) == (RunState.COMPLETED, 0.8)


def test_a_clock_of_a_worker_that_is_behind_takes_no_time_away(ledger: Ledger, begin: Begin) -> None:
    """Its requests took as long as they took; the lease was cut at 9."""
    begin(requests=100)
    finish(ledger, take(ledger), 100, (4.0, 4.8), 12.5)
    assert read(ledger, fetch_run, "r1").active_s == pytest.approx(0.8)


def test_a_run_that_runs_out_of_requests_before_its_time_ends_with_the_last(
    ledger: Ledger, begin: Begin
) -> None:
    """Its time was not used up; one whose last answers come after it was active for just its time."""
    for run, ended_at, active_s in (("r1", 12.0, 2.0), ("r2", 17.0, 5.0)):
        begin(run, requests=100, duration="5s")
        finish(ledger, take(ledger, run), 100, (10.0, ended_at), ended_at + 0.5)
        record = read(ledger, fetch_run, run)
        assert (record.state, round(record.active_s, 6)) == (RunState.COMPLETED, active_s), run


def test_a_run_whose_target_fell_silent_was_active_for_all_of_its_time(ledger: Ledger, begin: Begin) -> None:
    """Else it would look fast."""
    begin(duration="5s")
    finish(ledger, take(ledger), 10, (10.0, 11.0), 15.1)
    assert change(ledger, end_time, "r1", 15.4)
    run = read(ledger, fetch_run, "r1")
    assert (round(run.active_s, 6), run.requests) == (5.0, 10)


def test_a_run_that_is_stopped_was_active_until_its_workers_stopped(ledger: Ledger, begin: Begin) -> None:
    """Half a second after they were told to, if it has a clock, and not after its time."""
    for run, stopped_at, active_s in (("r1", 12.0, 2.5), ("r2", 14.8, 5.0)):
        begin(run, duration="5s")
        lease = take(ledger, run)
        change(ledger, change_state, run, RunState.CANCELLING, stopped_at)
        finish(ledger, lease, 50, (10.0, stopped_at + 1.0), stopped_at + 3.0)
        record = read(ledger, fetch_run, run)
        assert (record.state, round(record.active_s, 6)) == (RunState.CANCELLED, active_s), run


def test_the_time_of_a_run_with_a_rate_is_that_of_its_schedule(ledger: Ledger, begin: Begin) -> None:
    """Unless it sends late: then it is active for as long as it sends."""
    for run, sent, active_s in (("r1", {14: 20}, 5.0), ("r2", {14: 18, 17: 2}, 7.5)):
        begin(run, rate="20/s", duration="5s")
        change(ledger, partial(end, run=run, sent=sent, ended_at=17.5, now=18.0))
        assert read(ledger, fetch_run, run).active_s == pytest.approx(active_s), run


def end(transaction: Transaction, run: str, sent: Mapping[int, int], ended_at: float, now: float) -> None:
    """All requests of a run are accounted; so many were sent in these seconds."""
    counts = {second: [0] * len(OUTCOMES) + [count] for second, count in sent.items()}
    series_table.collect(transaction, run, counts)
    run_table.note_ended(transaction, run, ended_at)
    record = run_table.fetch_run(transaction, run)
    active_time.close_period(transaction, record, now, is_complete=True)


def test_a_run_that_is_paused_without_a_clock_ends_with_its_last_answer(ledger: Ledger, begin: Begin) -> None:
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
