import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.kit.coordinators.iterations import build_failed_inner, build_inner, build_iterations
from tests.kit.coordinators.parts import build_closed_part, build_open_part
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger.rules.snapshots import ThresholdBasis
from oku_coordinator.ledger.storage.records import RunRecord, ThresholdRecord
from oku_coordinator.ledger.storage.run_account import RunAccount
from oku_coordinator.ledger.storage.schedule_records import Course, PeriodRecord
from oku_coordinator.runs.summary.threshold_summaries import judge_thresholds
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import Part
from oku_core.results.series import SeriesRow
from oku_core.spec.engine_choice import EngineChoice
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Engine
from oku_core.summary.validity import Flag
from oku_core.thresholds.stretches import StretchValue
from oku_core.thresholds.threshold_summary import ThresholdSummary, ThresholdVerdict

_PASSED, _FAILED, _UNDECIDED = ThresholdVerdict
_FAST, _SLOW = 1000, 900_000
TEN_ITERATIONS = build_iterations(10)
SCENARIO = f"scenario.py@sha256:{'0' * 64}:1:scenario.py"
_STAGES = ["ramp=10s:0..10/s", "steady=10s:10/s"]
_TARGETS = [{"name": "buy", "url": "/buy", "weight": 2}, {"name": "home", "url": "/", "weight": 8}]


def judge(
    threshold: str,
    parts: dict[tuple[str, str], Part] | RunAccount,
    *,
    state: RunState = RunState.RUNNING,
    clock_s: float = 20.0,
    kept: ThresholdRecord | None = None,
    flags: list[tuple[Flag, int, float]] | None = None,
    **values: Any,
) -> ThresholdSummary:
    """What becomes of a threshold of a run with such an account, and perhaps a course."""
    course: Course | None = values.pop("course", None)
    spec = parse_spec(Source("spec", {**values, "thresholds": threshold}))
    accounts = parts if isinstance(parts, RunAccount) else fold(parts)
    is_cut = spec.is_timed and state in (RunState.COMPLETED, RunState.CANCELLED)
    record = RunRecord(
        run="r1", name="", requests=accounts.accounted if is_cut else spec.requests,
        engine=EngineChoice(Engine.AIOHTTP),
        target="", spec=spec, state=state, reason="", created_at=0.0, started_at=1.0, ended_at=None,
        active_s=clock_s, active_since=None, periods=1, last_checkpoint_at=None, resent_at_most=0,
        served=None, outcomes=make_counts(), is_broken=False, is_published=False, number=1, watched_s=0.0,
        underfilled_s=0.0,
    )  # fmt: skip
    basis = ThresholdBasis(
        record=record, accounts=accounts, flags=flags or [], thresholds={} if kept is None else {0: kept},
        course=course,
    )  # fmt: skip
    return judge_thresholds(basis, clock_s)[0]


def fold(parts: dict[tuple[str, str], Part]) -> RunAccount:
    """The account of these parts."""
    accounts = RunAccount()
    for name, part in parts.items():
        accounts.parts.open(name).add(part)
    return accounts


def judge_user_code(
    threshold: str,
    iterations: Part = TEN_ITERATIONS,
    inner: Sequence[Part] = (),
    **known: Any,
) -> ThresholdSummary:
    """What becomes of a threshold of a run of user code."""
    accounts = fold({("", ""): iterations})
    for part in inner:
        accounts.inner.open((part.phase, part.name)).add(part)
    values: dict[str, Any] = {"engine": "python", "scenario": SCENARIO, "requests": 100}
    return judge(threshold, accounts, **values | known)


def test_the_warm_up_is_not_judged_unless_it_is_asked_for() -> None:
    """It is not what is measured; the rest of the run may still be any of the requests."""
    parts = {
        ("warm-up", ""): build_closed_part([_SLOW] * 40),
        ("main", ""): build_closed_part([_FAST] * 60),
    }
    known: dict[str, Any] = {"requests": 100, "warm_up": "5s", "state": RunState.COMPLETED}

    assert judge("max < 5ms", parts, **known).verdict is _PASSED
    assert judge("max < 5ms during warm-up", parts, **known).verdict is _FAILED
    assert judge("ok >= 60", parts, **known).value == 60


def test_a_phase_of_a_run_with_a_rate_is_decided_by_its_own_requests() -> None:
    """The ramp makes 50 requests, the stage after it 100."""
    parts = {("ramp", ""): build_open_part([_FAST] * 50), ("steady", ""): build_open_part([_SLOW] * 10)}

    ramp = judge("p90 < 5ms during ramp", parts, stages=_STAGES)
    assert (ramp.verdict, ramp.against, ramp.allowed) == (_PASSED, 0, 5)
    steady = judge("p90 < 5ms during steady", parts, stages=_STAGES)
    assert (steady.verdict, steady.against, steady.allowed) == (_UNDECIDED, 10, 10)
    whole = judge("p99 < 5ms", parts, stages=_STAGES)
    assert (whole.verdict, whole.against, whole.allowed) == (_FAILED, 10, 1)


def test_a_target_has_the_requests_that_its_weight_says() -> None:
    """Of 100 requests, 20 are its own, so that it is known how many may be slow."""
    parts = {("", "buy"): build_closed_part([_FAST] * 10), ("", "home"): build_closed_part([_SLOW] * 5)}
    known: dict[str, Any] = {"base_url": "http://h/", "targets": _TARGETS}

    won = judge("p50 of buy < 5ms", parts, requests=100, **known)
    assert (won.verdict, won.value, won.against, won.allowed) == (_PASSED, 1.0, 0, 10)
    assert judge("p50 of buy < 5ms", parts, requests=105, **known).verdict is _UNDECIDED
    lost = judge("p90 of home < 5ms", parts, requests=40, **known)
    assert (lost.verdict, lost.against, lost.allowed) == (_FAILED, 5, 3)


def test_nobody_knows_how_many_requests_come_in_a_run_that_is_bounded_by_time() -> None:
    """So nothing is decided before its end, but what no request can mend."""
    parts = {("", ""): build_closed_part([_FAST] * 90, unanswered=10)}

    running = judge("ok >= 95%", parts, duration="1m")
    assert (running.verdict, running.holds, running.allowed) == (_UNDECIDED, False, None)
    assert judge("timeout < 10", parts, duration="1m").verdict is _FAILED
    assert judge("ok >= 100%", parts, duration="1m").verdict is _FAILED
    assert judge("ok >= 90%", parts, duration="1m", state=RunState.COMPLETED).verdict is _PASSED
    assert judge("ok >= 90%", parts, duration="1m", state=RunState.CANCELLED).verdict is _UNDECIDED


@pytest.mark.parametrize(
    ("threshold", "value", "verdict"),
    [
        ("rate >= 5/s", 5.0, _PASSED),
        ("rate >= 5.1/s", 5.0, _FAILED),
        ("rate >= 66% of plan", 100 / 150, _PASSED),
        ("rate >= 67% of plan", 100 / 150, _FAILED),
        ("rate >= 0.5 of plan during steady", 0.5, _PASSED),
        ("rate >= 5.1/s during ramp", 5.0, _FAILED),
    ],
)
def test_a_rate_is_over_the_time_of_the_run_or_of_its_phase(
    threshold: str, value: float, verdict: ThresholdVerdict
) -> None:
    """Of the plan, it is what was sent of what the schedule makes in this time."""
    parts = {("ramp", ""): build_open_part([_FAST] * 50), ("steady", ""): build_open_part([_FAST] * 50)}
    summary = judge(threshold, parts, stages=_STAGES, state=RunState.COMPLETED)
    assert summary.value == pytest.approx(value)
    assert summary.verdict is verdict


def test_workers_that_were_short_of_processor_time_leave_a_failure_undecided_a_lost_worker_does_not() -> None:
    """What a dead worker had is sent again, and accounted once."""
    parts = {("", ""): build_closed_part([_FAST] * 90 + [_SLOW] * 10)}
    known: dict[str, Any] = {"requests": 100, "state": RunState.COMPLETED}

    for flag in (Flag.WORKER_SATURATED, Flag.LOOP_LAG):
        assert judge("p99 < 5ms", parts, flags=[(flag, 9, 1.0)], **known).verdict is _UNDECIDED
        assert judge("p99 < 5ms", parts, flags=[(flag, 8, 1.0)], **known).verdict is _FAILED
    assert judge("p99 < 5ms", parts, flags=[(Flag.WORKER_LOST, 100, 1.0)], **known).verdict is _FAILED


@pytest.mark.parametrize(
    ("state", "kept", "verdict", "detail"),
    [
        (RunState.RUNNING, ThresholdRecord(None, 4.0), _UNDECIDED, ""),
        (RunState.RUNNING, ThresholdRecord(3.0, 2.0), _FAILED, ""),
        (RunState.COMPLETED, ThresholdRecord(3.0, 2.0), _FAILED, ""),
        (RunState.COMPLETED, ThresholdRecord(None, 4.0), _PASSED, ""),
        (RunState.COMPLETED, None, _UNDECIDED, "the run had no 10 s in a row that could be judged"),
        (
            RunState.COMPLETED,
            ThresholdRecord(longest_s=7.0),
            _UNDECIDED,
            "the run had no 10 s in a row that could be judged: 7 s at most",
        ),
        (RunState.COMPLETED, ThresholdRecord(longest_s=10.0), _UNDECIDED, "there are no requests to judge"),
        (RunState.CANCELLED, ThresholdRecord(None, 4.0), _UNDECIDED, "the run was cut short"),
        (RunState.PAUSED, ThresholdRecord(None, 4.0), _UNDECIDED, ""),
        (RunState.PAUSED, None, _UNDECIDED, ""),
    ],
)
def test_some_seconds_in_a_row_are_judged_by_what_was_kept_of_them(
    state: RunState, kept: ThresholdRecord | None, verdict: ThresholdVerdict, detail: str
) -> None:
    """They are not in the account."""
    parts = {("", ""): build_closed_part([_FAST] * 100)}
    summary = judge("rate >= 3/s over 10s", parts, requests=100, state=state, kept=kept)
    assert (summary.verdict, summary.detail) == (verdict, detail)
    assert summary.value == (kept and kept.worst)


def _judge_course(
    threshold: str,
    sent: Mapping[int, int],
    *,
    stop_s: float | None,
    settled_s: float = math.inf,
    **known: Any,
) -> ThresholdSummary:
    """What becomes of a threshold of a run at rest of which so many were sent in its seconds, and ended."""
    series = [
        SeriesRow(second=1000 + second, outcomes=make_counts(count), sent=count)
        for second, count in sent.items()
    ]
    course = Course(series, [PeriodRecord(1000.0, 0.0, stop_s)], 1000 + settled_s)
    return judge(threshold, {}, course=course, **({"state": RunState.COMPLETED} | known))


def test_the_last_seconds_of_a_run_at_rest_are_judged_by_its_series() -> None:
    """Nobody looked at them before it was over; what is kept of the others counts as well."""
    rate: dict[str, Any] = {"rate": "10/s", "duration": "4s", "stop_s": 3.99}
    sent = {0: 10, 1: 10, 2: 10, 3: 7}
    summary = _judge_course("rate >= 0.99 of plan over 2s", sent, **rate)
    assert (summary.verdict, summary.value) == (_FAILED, 0.85)
    assert (summary.lost_s, summary.lost_phase, summary.lost_value) == (4.0, "", 0.85)

    kept = ThresholdRecord(3.0, 0.5, StretchValue(0.6, holds=False, clock_s=2.0))
    summary = _judge_course("rate >= 0.99 of plan over 2s", sent, kept=kept, **rate)
    assert (summary.verdict, summary.value, summary.lost_value) == (_FAILED, 0.5, 0.6)
    summary = _judge_course("rate >= 0.8 of plan over 2s", sent, **rate)
    assert (summary.verdict, summary.value, summary.lost_s) == (_PASSED, 0.85, None)
    summary = _judge_course("rate >= 0.8 of plan over 5s", sent, **rate)
    assert (summary.verdict, summary.detail) == (
        _UNDECIDED, "the run had no 5 s in a row that could be judged: 4 s at most"
    )  # fmt: skip


def test_a_paused_run_is_judged_as_far_as_its_clock_went() -> None:
    """What was lost before the pause is lost; else nothing is decided."""
    rate: dict[str, Any] = {"rate": "10/s", "duration": "9s", "stop_s": 3.5, "state": RunState.PAUSED}
    sent = {0: 10, 1: 10, 2: 10, 3: 2}
    assert _judge_course("rate >= 0.99 of plan over 1s", sent, **rate).verdict is _UNDECIDED
    assert _judge_course("rate >= 0.99 of plan over 1s", sent | {1: 6}, **rate).verdict is _FAILED


def test_the_end_of_a_run_that_has_run_out_of_requests_is_not_judged() -> None:
    """It is judged as far as some were left, if its time has not ended it."""
    sent = dict.fromkeys(range(9), 9) | {6: 0}
    judged = {
        settled_s: _judge_course("rate >= 5/s over 2s", sent, stop_s=None, requests=72, settled_s=settled_s)
        for settled_s in (-math.inf, 3.0, 6.0, 7.0)
    }
    assert [summary.verdict for summary in judged.values()] == [_UNDECIDED, _UNDECIDED, _PASSED, _FAILED]
    assert judged[3.0].detail == "the run had no 2 s in a row that could be judged: 1 s at most"
    assert (judged[6.0].value, judged[7.0].lost_s) == (9.0, 7.0)


def test_a_name_means_the_inner_requests_of_user_code() -> None:
    """A threshold without one is about iterations, whatever their requests are."""
    known: dict[str, Any] = {
        "iterations": build_iterations(8, exception=2),
        "inner": [build_inner("orders", [_FAST] * 97 + [_SLOW] * 3)],
        "state": RunState.COMPLETED,
    }
    orders = judge_user_code("p95 of orders < 5ms", **known)
    assert (orders.verdict, orders.value, orders.against, orders.allowed) == (_PASSED, 1.0, 3, 5)
    assert judge_user_code("p99 of orders < 5ms", **known).verdict is _FAILED
    assert judge_user_code("ok of orders >= 100", **known).verdict is _PASSED
    rate = judge_user_code("rate of orders >= 6/s", **known)
    assert (rate.verdict, rate.value) == (_FAILED, 5.0)
    assert judge_user_code("ok >= 80%", **known).verdict is _PASSED
    iterations = judge_user_code("exception < 2", **known)
    assert (iterations.verdict, iterations.value) == (_FAILED, 2)


def test_a_name_that_nothing_was_counted_under_is_undecided() -> None:
    """It may be misspelt: neither a share nor a number of nothing has passed, and the reason names it."""
    for text in ("p95 of oders < 5ms", "failed of oders < 10", "mean of oders < 1s", "rate of oders > 1/s"):
        judged = judge_user_code(text, inner=[build_inner("orders", [_FAST])], state=RunState.COMPLETED)
        assert (judged.verdict, judged.detail) == (_UNDECIDED, "no request was counted under the name oders")
    assert judge_user_code("p95 of orders < 5ms").detail == ""


def test_a_name_of_a_locustfile_is_that_of_all_methods_unless_one_is_named() -> None:
    """Its requests are listed by both; a scenario names its requests itself."""
    inner = [
        build_inner("GET cart", [_FAST] * 3),
        build_inner("POST cart", [_SLOW] * 2),
        build_inner("POST my cart", [_SLOW] * 9),
    ]
    known: dict[str, Any] = {"inner": inner, "state": RunState.COMPLETED}
    cases = {
        "locust": ("ok of cart >= 1", 5),
        "locust, one method": ('ok of "POST cart" >= 1', 2),
        "locust, a name with a blank": ('ok of "my cart" >= 1', 9),
        "locust, a part of a name": ("ok of my >= 1", 0),
        "python": ("ok of cart >= 1", 0),
    }
    for case, (text, value) in cases.items():
        judged = judge_user_code(text, engine=case.partition(",")[0], **known)
        assert judged.value == value, case
        assert judged.verdict is (_PASSED if value else _UNDECIDED), case


def test_nobody_knows_how_many_inner_requests_come() -> None:
    """So no share of them is certain before the end, but a number of them that is exceeded is."""
    inner = [build_inner("orders", [_FAST] * 97), build_failed_inner("orders", 3)]
    for text in ("ok of orders >= 50%", "ok of orders >= 99%", "p50 of orders < 5ms", "failed of orders < 4"):
        judged = judge_user_code(text, inner=inner)
        assert (judged.verdict, judged.allowed) == (_UNDECIDED, None)
    assert judge_user_code("failed of orders < 3", inner=inner).verdict is _FAILED
    assert judge_user_code("ok of orders >= 97", inner=inner).verdict is _PASSED


@pytest.mark.parametrize(("strained", "verdict"), [(0, _FAILED), (2, _FAILED), (3, _UNDECIDED)])
def test_iterations_that_were_measured_under_strain_put_their_requests_in_doubt(
    strained: int, verdict: ThresholdVerdict
) -> None:
    """As many of each as an iteration makes on average: here, ten."""
    judged = judge_user_code(
        "p90 of orders < 5ms",
        inner=[build_inner("orders", [_FAST] * 65 + [_SLOW] * 35)],
        flags=[(Flag.LOOP_LAG, strained, 0.5)],
        state=RunState.COMPLETED,
    )
    assert judged.verdict is verdict
