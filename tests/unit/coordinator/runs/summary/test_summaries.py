import base64
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from tests.kit.coordinators.iterations import USER_CODE, build_inner
from tests.kit.coordinators.parts import build_open_part
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger.rules.snapshots import Snapshot
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.storage.run_account import PartAccounts, RunAccount
from oku_coordinator.ledger.storage.schedule_records import Course, PeriodRecord
from oku_coordinator.runs.summary.summaries import build_summary
from oku_core.accounting import hdr
from oku_core.accounting.account import Account
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.interval import Lengths
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import build_no_counts
from oku_core.accounting.run_state import RunState
from oku_core.results.series import SeriesRow
from oku_core.spec.engine_choice import EngineChoice
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Engine, Spec
from oku_core.summary.latency_summary import LatencySummary
from oku_core.summary.plan_check import PlanSummary
from oku_core.summary.summary import ProcessSummary, Summary, Unit, WorkerSummary
from oku_core.summary.validity import Flag
from oku_core.thresholds.threshold_summary import ThresholdVerdict

WORKER = WorkerSummary(name="w1", requests=100, cpu_s=0.5, peak_rss_mb=80.0, lost=False)


PROCESS = ProcessSummary(name="broker", peak_mb=8.0)


def build_snapshot(*, leased: int = 0, breach: str | None = None, **changes: Any) -> Snapshot:
    """A run that is completed after 10 s, with 98 ok and two others, changed as wanted."""
    histogram = Histogram()
    for number in range(1, 100):
        histogram.record(1000 * number)
    account = Account(
        outcomes=make_counts(98, unexpected_status=1, timeout=1), statuses={"500": 1, "200": 98},
        bytes_received=1300, times={Time.LATENCY: histogram},
    )  # fmt: skip
    values: dict[str, Any] = {
        "run": "r1", "name": "soak", "requests": 100, "engine": EngineChoice(Engine.AIOHTTP), "target": "",
        "spec": Spec(requests=100), "state": RunState.COMPLETED, "reason": "",
        "created_at": 0.0, "started_at": 1_769_965_512.25, "ended_at": 1_769_965_522.25, "active_s": 10.0,
        "active_since": None, "periods": 1, "last_checkpoint_at": None, "resent_at_most": 0, "served": None,
        "outcomes": make_counts(98, unexpected_status=1, timeout=1), "is_broken": False,
        "is_published": False, "number": 1,
        "watched_s": 0.0, "underfilled_s": 0.0,
    }  # fmt: skip
    record = RunRecord(**values | changes)
    return Snapshot(
        record=record,
        lengths=Lengths(pending=record.requests - 100 - leased, leased=leased, accounted=100),
        accounts=RunAccount(PartAccounts({("", ""): account})),
        workers=[WORKER], processes=[PROCESS], flags=[(Flag.LOOP_LAG, 10, 0.2)], breach=breach,
    )  # fmt: skip


def list_imbalances(summary: Summary) -> list[str]:
    """The reasons why the account does not balance."""
    return [validity.detail for validity in summary.validity if validity.flag == Flag.UNBALANCED]


def test_a_summary_has_everything_that_is_kept() -> None:
    """It has the account, the statistics, the workers and the flags."""
    summary = build_summary(build_snapshot(), 0.0)
    assert (summary.run, summary.name, summary.state) == ("r1", "soak", RunState.COMPLETED)
    assert (summary.requests, summary.accounted, summary.resent_at_most) == (100, 100, 0)
    outcomes = msgspec.to_builtins(summary.outcomes)
    assert outcomes == {
        "ok": 98, "unexpected_status": 1, "timeout": 1, "connect_error": 0, "disconnected": 0,
        "protocol_error": 0, "not_sent": 0, "lost": 0, "failed_check": 0, "exception": 0,
    }  # fmt: skip
    assert list(summary.statuses.items()) == [("200", 98), ("500", 1)]
    assert (summary.bytes_received, summary.workers, summary.servers) == (1300, [WORKER], None)
    assert (summary.processes, summary.reason) == ([PROCESS], "")
    assert summary.started_at == "2026-02-01T17:05:12.250Z"
    assert summary.ended_at == "2026-02-01T17:05:22.250Z"
    assert (summary.active_s, summary.throughput_rps) == (10.0, 10.0)
    assert (summary.latency_ms.min, summary.latency_ms.max) == (1.0, 99.0)
    assert hdr.decode(base64.b64decode(summary.histogram)).total == 99
    assert [validity.flag for validity in summary.validity] == [
        Flag.LOOP_LAG,
        Flag.UNANSWERED,
        Flag.SERVED_UNKNOWN,
    ]


def test_a_summary_is_what_its_schema_says() -> None:
    """Scripts rely on the published JSON Schema."""
    schema = Path(__file__).parents[5] / "docs" / "summary.schema.json"
    document = json.loads(msgspec.json.encode(build_summary(build_snapshot(), 0.0, ["waiting"])))
    assert document["notices"] == ["waiting"]
    jsonschema.validate(document, json.loads(schema.read_text()))


def test_a_run_that_has_not_begun_has_no_figures() -> None:
    """It has no time, no rate and no latency, but all outcomes."""
    pending = build_snapshot(
        state=RunState.PENDING,
        started_at=None,
        ended_at=None,
        active_s=0.0,
        periods=0,
        outcomes=build_no_counts(),
    )
    lengths = Lengths(pending=100, leased=0, accounted=0)
    snapshot = replace(pending, lengths=lengths, accounts=RunAccount(), workers=[], flags=[])
    summary = build_summary(snapshot, 5.0)
    assert (summary.started_at, summary.ended_at) == (None, None)
    assert (summary.active_s, summary.throughput_rps) == (0.0, 0.0)
    assert (summary.latency_ms.min, summary.latency_ms.p50, summary.latency_ms.max) == (None, None, None)
    assert sum(msgspec.to_builtins(summary.outcomes).values()) == 0
    assert summary.validity == []


def test_the_warm_up_counts_but_is_not_measured() -> None:
    """Its outcomes are among those of the run; rate and distributions are of the rest."""
    warm_up, main = Account(), Account()
    warm_up.add(build_open_part([9_000_000] * 20, 5))
    main.add(build_open_part([2000] * 80, 0, [3, 0, 2]))
    spec = parse_spec(Source(None, {"rate": "11/s", "duration": "10s", "warm-up": "2s"}))
    snapshot = replace(
        build_snapshot(spec=spec, requests=110),
        accounts=RunAccount(PartAccounts({("warm-up", ""): warm_up, ("main", ""): main})),
        lengths=Lengths(pending=0, leased=0, accounted=110),
    )
    summary = build_summary(snapshot, 0.0)
    assert (summary.accounted, summary.outcomes.ok, summary.outcomes.timeout) == (110, 100, 5)
    assert (summary.not_sent.in_flight_cap, summary.not_sent.not_dealt, summary.outcomes.not_sent) == (
        3,
        2,
        5,
    )
    assert (summary.latency_ms.max, summary.response_time_ms.max, summary.lateness_ms.max) == (
        2.0,
        12.0,
        10.0,
    )
    assert (summary.throughput_rps, summary.planned_rps) == (10.0, 11.0)
    assert hdr.decode(base64.b64decode(summary.lateness_histogram)).total == 80
    assert hdr.decode(base64.b64decode(summary.response_time_histogram)).total == 80
    assert [phase.name for phase in summary.phases] == ["warm-up", "main"]
    assert summary.phases[0].lateness_ms.max == 10.0


def test_a_closed_run_has_one_distribution() -> None:
    """Nothing in it has a due time."""
    summary = build_summary(build_snapshot(), 0.0)
    assert (summary.response_time_ms, summary.lateness_ms) == (LatencySummary(), LatencySummary())
    assert (summary.response_time_histogram, summary.lateness_histogram, summary.phases) == ("", "", [])


def test_the_rate_of_a_run_is_over_its_activity_so_far() -> None:
    """The open period counts."""
    summary = build_summary(
        build_snapshot(state=RunState.RUNNING, active_since=100.0, ended_at=None, spec=Spec(requests=200)),
        110.0,
    )
    assert (summary.active_s, summary.throughput_rps) == (20.0, 5.0)


@pytest.mark.parametrize(
    ("served", "resent_at_most", "imbalances"),
    [
        (100, 0, []),
        (98, 0, []),
        (107, 7, []),
        (97, 0, ["98 are ok, the servers counted 97"]),
        (101, 0, ["the servers counted 101, sent are 100 and resent at most 0"]),
    ],
)
def test_what_the_servers_counted_must_agree(served: int, resent_at_most: int, imbalances: list[str]) -> None:
    """It is no less than what was ok, and no more than what is accounted or may have been resent."""
    summary = build_summary(build_snapshot(served=served, resent_at_most=resent_at_most), 0.0)
    assert summary.servers is not None
    assert summary.servers.served == served
    assert list_imbalances(summary) == imbalances


@pytest.mark.parametrize("state", [RunState.PENDING, RunState.RUNNING, RunState.PAUSING, RunState.CANCELLING])
def test_what_the_servers_counted_is_not_compared_while_requests_are_under_way(state: RunState) -> None:
    """The two counts are not of the same instant."""
    spec = Spec(requests=200)
    assert list_imbalances(build_summary(build_snapshot(state=state, served=3, spec=spec), 0.0)) == []


def test_what_is_leased_may_have_been_served() -> None:
    """A run that failed has active leases whose requests count nowhere."""
    spec = Spec(requests=200)
    snapshot = build_snapshot(state=RunState.FAILED, served=150, leased=50, spec=spec)
    assert list_imbalances(build_summary(snapshot, 0.0)) == []
    snapshot = build_snapshot(state=RunState.FAILED, served=151, leased=50, spec=spec)
    assert len(list_imbalances(build_summary(snapshot, 0.0))) == 1


def test_a_run_in_several_periods_says_so() -> None:
    """A run in which requests may have been resent says so, too."""
    summary = build_summary(build_snapshot(periods=2, resent_at_most=5), 0.0)
    flags = {validity.flag for validity in summary.validity}
    assert {Flag.INTERRUPTED, Flag.RESENT} <= flags


def build_open_snapshot(*sent: int, stop_s: float = 4.1) -> Snapshot:
    """A run at 25/s for 4 s that is completed, of which so many were sent in each second."""
    given = {"rate": "25/s", "duration": "4s", "url": "http://x/"}
    rows = [
        SeriesRow(second=1000 + place, outcomes=make_counts(count), sent=count)
        for place, count in enumerate(sent)
    ]
    course = Course(rows, [PeriodRecord(1000.0, 0.0, stop_s)], math.inf)
    spec = parse_spec(Source("the test", given))
    return replace(build_snapshot(spec=spec), course=course)


def test_a_run_with_a_rate_says_how_it_kept_to_its_plan() -> None:
    """Second by second, and in a flag if it missed it."""
    summary = build_summary(build_open_snapshot(25, 25, 24, 26), 0.0)
    assert summary.plan == PlanSummary(seconds=4, off_seconds=0, off_share=0.0, missed=0, causes=[])
    assert Flag.OFF_PLAN not in {validity.flag for validity in summary.validity}
    summary = build_summary(build_open_snapshot(25, 25, 20, 30), 0.0)
    assert summary.plan is not None
    assert (summary.plan.off_share, summary.plan.missed) == (0.5, 5)
    [flag] = [validity for validity in summary.validity if validity.flag is Flag.OFF_PLAN]
    assert (flag.requests, flag.share) == (5, 0.05)


def test_the_last_second_of_a_run_is_judged_though_its_last_request_ends_before() -> None:
    """All that is due in it is accounted; that of a run which stops earlier is cut, and is not judged."""
    completed = build_open_snapshot(25, 25, 25, 20, stop_s=3.98)
    plan = build_summary(completed, 0.0).plan
    assert plan is not None
    assert (plan.seconds, plan.off_seconds, plan.missed) == (4, 1, 5)
    long_silent = build_open_snapshot(25, stop_s=0.99)
    plan = build_summary(long_silent, 0.0).plan
    assert plan is not None
    assert plan.seconds == 1
    cut = replace(completed, lengths=Lengths(pending=5, leased=0, accounted=95))
    plan = build_summary(cut, 0.0).plan
    assert plan is not None
    assert (plan.seconds, plan.off_seconds) == (3, 0)


def test_a_run_whose_clock_has_not_begun_has_no_plan() -> None:
    """It waits for workers."""
    snapshot = replace(build_open_snapshot(), course=Course([], [], 0.0))
    assert build_summary(snapshot, 0.0).plan is None


def test_the_plan_of_a_paused_run_goes_as_far_as_its_clock() -> None:
    """The run is active a little longer than that, as its last requests finish."""
    spec = parse_spec(Source(None, {"stages": ["4s:0..40/s", "4s:40/s"]}))
    course = Course([], [PeriodRecord(1000.0, 0.0, 2.0)], 0.0)
    snapshot = replace(
        build_snapshot(spec=spec, requests=240, active_s=3.0, state=RunState.PAUSED), course=course
    )
    summary = build_summary(snapshot, 9000.0)
    assert (summary.planned_rps, summary.phases[0].planned_rps) == (10.0, 10.0)
    assert summary.phases[1].planned_rps == 0.0


def test_a_paused_run_has_no_verdict_yet() -> None:
    """Not even if a threshold is lost for certain, which stays so; one that goes on, or is over, has one."""
    spec = parse_spec(Source(None, {"requests": 200, "thresholds": ["ok >= 99.9%", "p50 < 1s", "mean < 1s"]}))
    verdicts = {}
    for state in (RunState.RUNNING, RunState.PAUSED, RunState.CANCELLED):
        summary = build_summary(build_snapshot(spec=spec, requests=200, state=state), 9000.0)
        verdicts[state] = (summary.verdict, [threshold.verdict for threshold in summary.thresholds])
    lost = [ThresholdVerdict.FAILED, ThresholdVerdict.UNDECIDED, ThresholdVerdict.UNDECIDED]
    assert verdicts == {
        RunState.RUNNING: (ThresholdVerdict.FAILED, lost),
        RunState.PAUSED: (None, lost),
        RunState.CANCELLED: (ThresholdVerdict.FAILED, lost),
    }


def test_a_run_that_was_given_up_has_no_verdict() -> None:
    """Without workers it has tested nothing; one that a user or a threshold has cancelled has one."""
    spec = parse_spec(Source(None, {"requests": 200, "thresholds": ["ok >= 99.9%", "p50 < 1s", "mean < 1s"]}))
    verdicts = {}
    for reason in ("no worker for 30 s: nobody", "threshold lost: ok >= 99.9%: abort", ""):
        snapshot = build_snapshot(spec=spec, requests=200, state=RunState.CANCELLED)
        snapshot = replace(snapshot, record=replace(snapshot.record, reason=reason))
        verdicts[reason] = build_summary(snapshot, 9000.0).verdict
    assert [*verdicts.values()] == [None, ThresholdVerdict.FAILED, ThresholdVerdict.FAILED]


def test_a_run_of_user_code_counts_iterations() -> None:
    """The requests that these have made stand beside them; other runs have none."""
    snapshot = build_snapshot()
    summary = build_summary(snapshot, 0.0)
    assert (summary.unit, summary.inner_requests) == (Unit.REQUEST, [])
    snapshot = build_snapshot(spec=USER_CODE, engine=EngineChoice(Engine.PYTHON))
    snapshot.accounts.inner.open(("", "login")).add(build_inner("login", [1000] * 250))
    summary = build_summary(snapshot, 0.0)
    assert (summary.unit, summary.accounted) == (Unit.ITERATION, 100)
    assert [(each.name, each.requests, each.rate_rps) for each in summary.inner_requests] == [
        ("login", 250, 25.0)
    ]


def test_the_time_in_the_queue_goes_on_while_a_run_is_pending() -> None:
    """Of a run at rest it is what the ledger has summed up."""
    queued_s = [
        build_summary(build_snapshot(state=state, queued_at=100.0, queued_s=2.5), now=107.0).queued_s
        for state in (RunState.PENDING, RunState.COMPLETED)
    ]
    assert queued_s == [9.5, 2.5]
