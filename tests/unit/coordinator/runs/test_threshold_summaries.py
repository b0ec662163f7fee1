from typing import Any

import pytest
from tests.kit.coordinators.parts import build_closed_part, build_open_part
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger.storage.records import RunRecord, ThresholdBasis, ThresholdRecord
from oku_coordinator.ledger.storage.run_account import RunAccount
from oku_coordinator.runs.threshold_summaries import judge_thresholds
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import Part
from oku_core.results.summary import Flag
from oku_core.spec.parser import Source, parse_spec
from oku_core.thresholds.threshold_summary import ThresholdSummary, ThresholdVerdict

_PASSED, _FAILED, _UNDECIDED = ThresholdVerdict
_FAST, _SLOW = 1000, 900_000
_STAGES = ["ramp=10s:0..10/s", "steady=10s:10/s"]
_TARGETS = [{"name": "buy", "url": "/buy", "weight": 2}, {"name": "home", "url": "/", "weight": 8}]


def judge(
    threshold: str,
    parts: dict[tuple[str, str], Part],
    *,
    state: RunState = RunState.RUNNING,
    clock_s: float = 20.0,
    kept: ThresholdRecord | None = None,
    flags: list[tuple[Flag, int, float]] | None = None,
    **values: Any,
) -> ThresholdSummary:
    """What becomes of a threshold of a run with such an account."""
    spec = parse_spec(Source("spec", {**values, "thresholds": threshold}))
    accounts = RunAccount()
    for name, part in parts.items():
        accounts.open(name).add(part)
    is_cut = spec.is_timed and state in (RunState.COMPLETED, RunState.CANCELLED)
    record = RunRecord(
        run="r1", name="", requests=accounts.accounted if is_cut else spec.requests, engine="aiohttp",
        target="", spec=spec, state=state, reason="", created_at=0.0, started_at=1.0, ended_at=None,
        active_s=clock_s, active_since=None, periods=1, last_checkpoint_at=None, resent_at_most=0,
        served=None, outcomes=make_counts(), is_broken=False, is_published=False, number=1, watched_s=0.0,
        underfilled_s=0.0,
    )  # fmt: skip
    basis = ThresholdBasis(
        record=record, accounts=accounts, flags=flags or [], thresholds={} if kept is None else {0: kept}
    )
    return judge_thresholds(basis, clock_s)[0]


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


def test_a_target_has_its_requests_of_each_phase() -> None:
    """Of the 50 requests of the ramp, 10 are its own, and 20 of the 100 after it."""
    parts = {("ramp", "buy"): build_open_part([_FAST] * 10), ("steady", "buy"): build_open_part([_SLOW])}
    known: dict[str, Any] = {"base_url": "http://h/", "targets": _TARGETS, "stages": _STAGES}

    ramp = judge("p90 of buy < 5ms during ramp", parts, **known)
    assert (ramp.verdict, ramp.against, ramp.allowed) == (_PASSED, 0, 1)
    steady = judge("p90 of buy < 5ms during steady", parts, **known)
    assert (steady.verdict, steady.against, steady.allowed) == (_UNDECIDED, 1, 2)


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
        (RunState.COMPLETED, None, _UNDECIDED, "no 10 s in a row were seen live"),
        (RunState.CANCELLED, ThresholdRecord(None, 4.0), _UNDECIDED, "the run was cut short"),
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
