from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.coordinators.ticks import build_tick
from tests.kit.outcomes import make_counts
from tests.kit.runs.summaries import build_summary

from oku_core.accounting.outcome import build_outcome_counts
from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import Engine
from oku_core.spec.values.threshold import FigureUnit
from oku_core.summary.judgement import Judgement, judge_counts, judge_run, judge_tick
from oku_core.summary.latency_summary import LatencySummary
from oku_core.summary.request_summary import OutcomeCounts
from oku_core.summary.summary import Summary
from oku_core.summary.validity import Flag, Validity
from oku_core.thresholds.threshold_summary import ThresholdSummary, ThresholdVerdict


def make_summary(ok: int = 10, timeout: int = 0, **changes: Any) -> Summary:
    """A completed run."""
    summary = build_summary(
        run="r1", name="", state=RunState.COMPLETED, engine=Engine.AIOHTTP, requests=ok + timeout,
        accounted=ok + timeout, resent_at_most=0, statuses={}, bytes_received=0, started_at=None,
        ended_at=None, active_s=1.0, throughput_rps=1.0, latency_ms=LatencySummary(),
        outcomes=OutcomeCounts(**build_outcome_counts(make_counts(ok, timeout=timeout))),
        workers=[], servers=None, validity=[],
    )  # fmt: skip
    return msgspec.structs.replace(summary, **changes)


@pytest.mark.parametrize(
    ("state", "ok", "ended", "judgement"),
    [
        (RunState.COMPLETED, 1_000_000, 1_000_000, Judgement.GOOD),
        (RunState.COMPLETED, 999_999, 1_000_000, Judgement.CAUTION),
        (RunState.COMPLETED, 0, 1_000_000, Judgement.BAD),
        (RunState.COMPLETED, 0, 0, Judgement.BAD),
        (RunState.RUNNING, 0, 0, Judgement.NEUTRAL),
        (RunState.RUNNING, 10, 10, Judgement.NEUTRAL),
        (RunState.RUNNING, 9, 10, Judgement.CAUTION),
        (RunState.RUNNING, 0, 10, Judgement.BAD),
        (RunState.PENDING, 0, 0, Judgement.CAUTION),
        (RunState.PAUSED, 10, 10, Judgement.CAUTION),
        (RunState.CANCELLED, 10, 10, Judgement.CAUTION),
        (RunState.FAILED, 10, 10, Judgement.BAD),
    ],
)
def test_a_run_is_judged_by_its_state_and_by_what_was_ok(
    state: RunState, ok: int, ended: int, judgement: Judgement
) -> None:
    """A complete run in which nothing was ok is bad, also one that has made no request at all."""
    assert judge_counts(state, ok=ok, ended=ended) is judgement


@given(st.sampled_from(RunState), st.integers(0, 5), st.integers(0, 5))
def test_a_run_is_good_only_if_it_is_complete_and_all_was_ok(state: RunState, ok: int, others: int) -> None:
    """Nothing else is."""
    is_good = judge_counts(state, ok=ok, ended=ok + others) is Judgement.GOOD
    assert is_good == (state is RunState.COMPLETED and ok > 0 and not others)


def test_a_second_and_a_wrong_account_are_judged_like_the_run() -> None:
    """Even if every request was ok."""
    assert judge_run(make_summary()) is Judgement.GOOD
    assert judge_run(make_summary(timeout=1)) is Judgement.CAUTION
    unbalanced = Validity(flag=Flag.UNBALANCED, detail="the servers counted 9", requests=1)
    assert judge_run(make_summary(validity=[unbalanced])) is Judgement.BAD
    cases: list[tuple[ThresholdVerdict, Judgement]] = [
        (ThresholdVerdict.PASSED, Judgement.GOOD),
        (ThresholdVerdict.UNDECIDED, Judgement.CAUTION),
        (ThresholdVerdict.FAILED, Judgement.BAD),
    ]
    for verdict, judgement in cases:
        # Thresholds have a say.
        assert judge_run(make_summary(verdict=verdict)) is judgement
        assert judge_run(make_summary(timeout=1, verdict=ThresholdVerdict.PASSED)) is Judgement.CAUTION
    # A second is judged like the run so far. A threshold that is lost already shows at once.
    tick = build_tick(1.0, {"outcomes_so_far": make_counts(10)})
    assert judge_tick(tick) is Judgement.NEUTRAL
    lost = ThresholdSummary(
        expression="ok >= 99%", verdict=ThresholdVerdict.FAILED, limit=0.99, unit=FigureUnit.SHARE
    )
    assert judge_tick(msgspec.structs.replace(tick, thresholds=[lost])) is Judgement.BAD
