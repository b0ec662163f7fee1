"""Which requests failed, and a run over exactly these."""

from collections.abc import Sequence

import msgspec
import pytest
from tests.kit.coordinators.leases import (
    apply_batches,
    build_batch,
    build_checkpoint,
    build_part,
    deal_lease,
)
from tests.kit.coordinators.transactions import change, read
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.failed_requests import FailedSpan, fetch_failed_requests
from oku_coordinator.ledger.rules.hooks import start_attempt
from oku_coordinator.ledger.rules.leases import waves
from oku_coordinator.ledger.rules.leases.unsent import account_not_dealt
from oku_coordinator.ledger.rules.lifecycle import create_run, start_run
from oku_coordinator.ledger.rules.retried_run import build_retry_spec, create_retry
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.storage.records import RetryRecord
from oku_coordinator.ledger.storage.schedule_records import Deal
from oku_coordinator.ledger.tables.deletion_table import begin_deletion, delete_some
from oku_coordinator.ledger.tables.hook_table import fetch_setup_data
from oku_coordinator.ledger.tables.run_table import fetch_run, fetch_runs
from oku_coordinator.ledger.tables.slice_table import fetch_slices
from oku_core.accounting.index_ranges import Room, merge_ranges, pack_ranges
from oku_core.accounting.interval import Slice, SliceState
from oku_core.accounting.lease_state import MessageVerdict
from oku_core.accounting.outcome import OTHER, OUTCOMES, Outcome, ReasonCount
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError
from oku_core.messaging.checkpoint import MOST_FAILED_RANGES, MOST_REASON_RANGES, CheckpointBatch, Part
from oku_core.messaging.hook import NO_SETUP, HookAttempt, HookReport, SetupData
from oku_core.results.failure_filter import FailureFilter
from oku_core.schedule.wave import Wave
from oku_core.spec.description import describe_load
from oku_core.spec.parser import Source, build_mapping, parse_spec
from oku_core.spec.spec import Hook, Spec
from oku_workers.executions.failure_counts import Failures

TIMEOUT = OUTCOMES.index(Outcome.TIMEOUT)


def build_failing_part(covered: int, failed: Sequence[int]) -> Part:
    """What came of so many requests, of which those at some positions had no answer in time."""
    ok = build_part(covered - len(failed))
    if not failed:
        return ok
    outcomes = make_counts(covered - len(failed), timeout=len(failed))
    return msgspec.structs.replace(
        ok,
        outcomes=outcomes,
        per_second={3: outcomes},
        reasons=[ReasonCount(TIMEOUT, "no answer within 10s", len(failed), min(failed), max(failed))],
        failed={Outcome.TIMEOUT: pack_ranges(merge_ranges((p, p + 1) for p in failed))},
    )


def run_all(ledger: Ledger, run: str, part: Part) -> None:
    """Make a run in one lease, of which this comes."""
    change(ledger, start_run, run, 1.0)
    lease = deal_lease(ledger, run, 1000, 2.0)
    verdicts = apply_batches(ledger, [build_batch(lease, build_checkpoint(lease, parts=[part]))], 5.0)
    assert verdicts == [MessageVerdict.CLOSED]
    assert read(ledger, fetch_run, run).state == RunState.COMPLETED


def test_a_retry_has_exactly_the_failed_indices(ledger: Ledger) -> None:
    """All others are unused, so index i is the request that it was; both together say what is ok."""
    change(ledger, create_run, "r1", Spec(requests=100), 0.0)
    run_all(ledger, "r1", build_failing_part(100, [3, 4, 5, 99]))
    assert read(ledger, fetch_failed_requests, "r1").spans == [
        FailedSpan(3, 6, Outcome.TIMEOUT, "", OTHER),
        FailedSpan(99, 100, Outcome.TIMEOUT, "", OTHER),
    ]
    record = change(ledger, create_retry, "r2", "r1", 6.0)
    assert (record.requests, record.spec.requests, record.state) == (4, 100, RunState.PENDING)
    assert read(ledger, fetch_slices, "r2") == [
        Slice(0, 3, SliceState.UNUSED),
        Slice(3, 6, SliceState.PENDING),
        Slice(6, 99, SliceState.UNUSED),
        Slice(99, 100, SliceState.PENDING),
    ]
    run_all(ledger, "r2", build_failing_part(4, [3]))  # the fourth position of its lease is index 99
    assert read(ledger, fetch_failed_requests, "r2").spans == [
        FailedSpan(99, 100, Outcome.TIMEOUT, "", OTHER)
    ]
    assert read(ledger, fetch_snapshot, "r2").retry == RetryRecord("r1", "r1", 100, 96, 0)
    [count] = read(ledger, fetch_snapshot, "r2").account.reasons.values()
    assert (count.first, count.last) == (99, 99)
    change(ledger, create_retry, "r3", "r2", 7.0)
    run_all(ledger, "r3", build_failing_part(1, []))
    snapshot = read(ledger, fetch_snapshot, "r3")
    assert (snapshot.breach, snapshot.retry) == (None, RetryRecord("r2", "r1", 100, 99, 0))
    assert snapshot.account.outcomes[0] + 99 == 100


def test_a_retry_has_a_setup_of_its_own(ledger: Ledger) -> None:
    """What the setup of the other run returned was torn down with it."""
    change(ledger, create_run, "r1", Spec(requests=100, hooks=(Hook.SETUP,)), 0.0)
    change(ledger, start_run, "r1", 1.0)
    change(ledger, start_attempt, "r1", Hook.SETUP, "w1", "b1", 1.0)
    report = HookReport(attempt=HookAttempt("r1", Hook.SETUP, 1), value="7")
    apply_batches(
        ledger, [CheckpointBatch(worker="w1", incarnation="b1", checkpoints=[], hooks=[report])], 2.0
    )
    lease = deal_lease(ledger, "r1", 1000, 2.0)
    checkpoint = build_checkpoint(lease, parts=[build_failing_part(100, [3])])
    apply_batches(ledger, [build_batch(lease, checkpoint)], 5.0)
    assert change(ledger, create_retry, "r2", "r1", 6.0).spec.hooks == (Hook.SETUP,)
    assert read(ledger, fetch_setup_data, "r1") == SetupData(1, "7")
    assert read(ledger, fetch_setup_data, "r2") == NO_SETUP


def test_only_a_run_at_rest_with_failures_can_be_retried(ledger: Ledger) -> None:
    """What cannot be retried is said in one line, and no run is made."""
    change(ledger, create_run, "r1", Spec(requests=10), 0.0)
    with pytest.raises(UserError, match="run r1 is pending; it can be retried once it is paused or over"):
        change(ledger, create_retry, "r2", "r1", 1.0)
    run_all(ledger, "r1", build_failing_part(10, []))
    with pytest.raises(UserError, match="run r1 has no failed request to retry"):
        change(ledger, create_retry, "r2", "r1", 6.0)
    assert [row.run for row in read(ledger, fetch_runs)] == ["r1"]


def test_what_failed_beyond_the_ranges_of_a_checkpoint_is_counted(ledger: Ledger) -> None:
    """The list says how many are missing, and so does the retry."""
    change(ledger, create_run, "r1", Spec(requests=10), 0.0)
    part = msgspec.structs.replace(build_failing_part(10, [2, 4, 6]), failed={Outcome.TIMEOUT: [2, 1]})
    run_all(ledger, "r1", part)
    failed = read(ledger, fetch_failed_requests, "r1")
    assert (failed.requests, failed.unlisted) == (3, 2)
    change(ledger, create_retry, "r2", "r1", 6.0)
    assert read(ledger, fetch_snapshot, "r2").retry == RetryRecord("r1", "r1", 10, 7, 2)


def test_a_run_with_a_rate_is_retried_without_it(ledger: Ledger) -> None:
    """What nobody had in time is among what failed; the retry has as many in flight as the run might."""
    spec = parse_spec(Source(None, {"url": "http://h/{i}", "rate": "10/s", "requests": 100}))
    change(ledger, create_run, "r1", spec, 0.0)
    change(ledger, start_run, "r1", 1.0)
    change(ledger, account_not_dealt, "r1", [(0, 100)], 20.0)
    [span] = read(ledger, fetch_failed_requests, "r1").spans
    assert span == FailedSpan(0, 100, Outcome.NOT_SENT, "", "not dealt")
    created = change(ledger, create_retry, "r2", "r1", 21.0)
    retry = created.spec
    assert created.load == "20 in flight, 100 requests"
    assert (retry.is_open, retry.requests, retry.concurrency) == (False, 100, spec.concurrency)
    run_all(ledger, "r2", build_failing_part(100, [7]))
    assert read(ledger, fetch_snapshot, "r2").breach is None


def test_a_retry_says_how_many_are_in_flight_and_for_whom() -> None:
    """What a rate or stages ask for is of all workers together, what the user asks for is of each."""
    cases: list[tuple[dict[str, object], str]] = [
        ({"rate": "200/s", "duration": "10s"}, "400 in flight, 1 request"),
        ({"rate": "200/s", "duration": "10s", "concurrency": 7}, "7 in flight, 1 request"),
        ({"stages": ["5s:0..50/s"]}, "100 in flight, 1 request"),
        ({"stages": ["5s:0..20", "5s:20"]}, "20 in flight, 1 request"),
        ({"duration": "10s", "concurrency": 7}, "7 in flight, 1 request"),
        ({"requests": 10}, "100 in flight, 1 request"),
    ]
    for keys, words in cases:
        spec = parse_spec(Source(None, {"url": "http://h/{i}", **keys}))
        retry_spec = build_retry_spec(spec, 1)
        assert describe_load(msgspec.structs.replace(retry_spec, requests=1)) == words, keys
        assert build_mapping(retry_spec)["concurrency"] == spec.concurrency, keys


def test_what_failed_in_more_ranges_of_indices_than_are_listed_is_counted(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The indices of a lane are not in a row: one range of it is as many ranges of the run as it is long."""
    monkeypatch.setattr("oku_coordinator.ledger.rules.failed_requests.MOST_RANGES", 5)
    change(
        ledger,
        create_run,
        "r1",
        parse_spec(Source(None, {"url": "http://h", "rate": "10/s", "requests": 40})),
        0.0,
    )
    change(ledger, start_run, "r1", 1.0)
    wave = Wave(0, 40, 4, 0, (10, 20, 30, 40))
    deal = Deal(dropped=(), waves=(wave,), next_block=4, orders=())
    change(ledger, waves.deal, "r1", lambda _: deal, 2.0)
    change(ledger, account_not_dealt, "r1", [wave.lane_range(1)], 20.0)
    failed = read(ledger, fetch_failed_requests, "r1")
    assert [(span.start, span.stop) for span in failed.spans] == [(i, i + 1) for i in (1, 5, 9, 13, 17)]
    assert (failed.requests, failed.unlisted) == (10, 5)


def test_a_deleted_run_leaves_no_failed_request(ledger: Ledger) -> None:
    """A retry of it still says what it completes."""
    change(ledger, create_run, "r1", Spec(requests=100), 0.0)
    run_all(ledger, "r1", build_failing_part(100, [5]))
    change(ledger, create_retry, "r2", "r1", 6.0)
    change(ledger, begin_deletion, "r1")
    while change(ledger, delete_some, "r1"):
        pass
    rows = read(
        ledger,
        lambda transaction: [
            *transaction.select("SELECT 1 FROM failed WHERE run = 'r1'"),
            *transaction.select("SELECT 1 FROM failed_sizes WHERE run = 'r1'"),
        ],
    )
    assert rows == []
    assert read(ledger, fetch_snapshot, "r2").retry is not None


def build_mixed_part(failed: int) -> Part:
    """Requests that have all failed, with a reason that changes at every position."""
    failures = Failures(Room(MOST_FAILED_RANGES))
    for position in range(failed):
        failures.record(TIMEOUT, position, f"status {500 + position % 2}")
    return msgspec.structs.replace(
        build_failing_part(failed, range(failed)),
        reasons=failures.build_reasons(),
        failed=failures.build_failed(),
        failed_reasons=failures.build_failed_reasons(),
    )


def test_indices_stay_exact_however_often_reasons_change(ledger: Ledger) -> None:
    """Of 200,000 failures each index is listed; a retry by reason says how many it could not judge."""
    change(ledger, create_run, "r1", Spec(requests=200_000), 0.0)
    change(ledger, start_run, "r1", 1.0)
    lease = deal_lease(ledger, "r1", 200_000, 2.0)
    part = build_mixed_part(200_000)
    apply_batches(ledger, [build_batch(lease, build_checkpoint(lease, parts=[part]))], 5.0)
    failed = read(ledger, fetch_failed_requests, "r1")
    assert failed.unlisted == 0
    assert [span.start for span in failed.spans[1:]] == [span.stop for span in failed.spans[:-1]]
    assert len(failed.spans) == MOST_REASON_RANGES + 1
    assert failed.spans[-1] == FailedSpan(MOST_REASON_RANGES, 200_000, Outcome.TIMEOUT, "", OTHER)
    record = change(ledger, create_retry, "r2", "r1", 6.0, FailureFilter(reasons=["status 500"]))
    assert record.requests == MOST_REASON_RANGES // 2
    unjudged = 200_000 - MOST_REASON_RANGES
    assert read(ledger, fetch_snapshot, "r2").retry == RetryRecord("r1", "r1", 200_000, 0, 0, unjudged)
    wrong = FailureFilter(reasons=["status 404"])
    with pytest.raises(UserError, match=f"no failed request of these to retry: of {unjudged} the ledger"):
        change(ledger, create_retry, "r3", "r1", 6.0, wrong)
    with pytest.raises(UserError, match="--target: a is not in run r1, which has no target with a name"):
        change(ledger, create_retry, "r3", "r1", 6.0, FailureFilter(target="a"))


def test_reasons_beyond_the_bound_of_a_run_are_others(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds for those that are stored and those that are read; no index is missing."""
    for module, bound, spans in (("rules.failed_requests", 4, 5), ("tables.accounts.failure_table", 5, 1)):
        monkeypatch.setattr(f"oku_coordinator.ledger.{module}.MOST_REASON_RUNS", bound)
        run = f"r{bound}"
        change(ledger, create_run, run, Spec(requests=10), 0.0)
        run_all(ledger, run, build_mixed_part(10))
        failed = read(ledger, fetch_failed_requests, run)
        assert (len(failed.spans), failed.unlisted) == (spans, 0)
        assert failed.spans[-1].reason == OTHER
        monkeypatch.undo()


def test_a_retry_by_target_has_its_share_of_what_no_worker_had(ledger: Ledger) -> None:
    """Ranges of several targets are split: the spec says which target each index asks."""
    targets = [{"name": name, "url": f"http://h/{name}"} for name in ("a", "b")]
    spec = parse_spec(Source(None, {"targets": targets, "rate": "10/s", "requests": 100}))
    change(ledger, create_run, "r1", spec, 0.0)
    change(ledger, start_run, "r1", 1.0)
    change(ledger, account_not_dealt, "r1", [(0, 100)], 20.0)
    only = FailureFilter(outcome=Outcome.NOT_SENT, target="b", reasons=["not dealt"])
    assert change(ledger, create_retry, "r2", "r1", 21.0, only).requests == 50
    with pytest.raises(UserError, match="--target: c is not in run r1, which has a, b"):
        change(ledger, create_retry, "r3", "r1", 21.0, FailureFilter(target="c"))
