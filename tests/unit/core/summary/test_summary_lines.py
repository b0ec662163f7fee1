from tests.kit.outcomes import make_counts
from tests.kit.runs.summaries import build_summary

from oku_core.accounting.outcome import OUTCOMES, Outcome, build_outcome_counts
from oku_core.accounting.run_state import RunState
from oku_core.results.sample import LIVE_QUANTILES
from oku_core.spec.spec import Engine
from oku_core.spec.values.threshold import FigureUnit
from oku_core.summary.latency_summary import LatencySummary, StepSummary, TimingSummary
from oku_core.summary.request_summary import (
    FailureSummary,
    InnerSummary,
    NotSentCounts,
    OutcomeCounts,
    PhaseSummary,
    TargetSummary,
)
from oku_core.summary.summary import Unit
from oku_core.summary.summary_lines import (
    build_failure_lines,
    build_inner_lines,
    build_phase_lines,
    build_summary_line,
    build_target_lines,
    build_threshold_lines,
)
from oku_core.thresholds.threshold_summary import ThresholdSummary, ThresholdVerdict

NO_OUTCOMES = OutcomeCounts(**dict.fromkeys(OUTCOMES, 0))
NO_LATENCY = LatencySummary()


def make_target(latency_ms: LatencySummary = NO_LATENCY) -> TargetSummary:
    """A target of a run without due times, of whose requests every tenth failed a check."""
    return TargetSummary(
        name="buy", weight=2, requests=100, statuses={"201": 100}, bytes_received=900, rate_rps=9.0,
        outcomes=OutcomeCounts(**build_outcome_counts(make_counts(90, failed_check=10))),
        not_sent=NotSentCounts(), latency_ms=latency_ms, response_time_ms=LatencySummary(),
        lateness_ms=LatencySummary(),
    )  # fmt: skip


def test_each_phase_and_target_of_a_run_at_rest_has_a_line() -> None:
    """It is flat, with the names that other lines have."""
    latency = LatencySummary(mean=2.0, p50=1.0, p90=1.5, p99=3.0, p99_9=4.0, max=5.0)
    phase = PhaseSummary(
        name="soak", begin_s=5.0, end_s=15.0, requests=100,
        outcomes=OutcomeCounts(**build_outcome_counts(make_counts(90, not_sent=10))),
        not_sent=NotSentCounts(late=10), statuses={"200": 90}, bytes_received=900, due=110, completed=90,
        sent_rps=9.0, completed_rps=8.5, latency_ms=latency, response_time_ms=latency,
        lateness_ms=LatencySummary(),
        timing_ms=TimingSummary(connect=StepSummary(requests=7), transfer=StepSummary(requests=90, p50=0.5)),
    )  # fmt: skip
    (line,) = build_phase_lines([phase])
    assert (line["phase"], line["begin_s"], line["end_s"], line["requests"]) == ("soak", 5.0, 15.0, 100)
    assert (line["ok"], line["not_sent"], line["not_sent_late"]) == (90, 10, 10)
    rates = ("due", "completed", "sent_rps", "completed_rps")
    assert [line[name] for name in rates] == [110, 90, 9.0, 8.5]
    assert (line["p99_9_ms"], line["response_time_max_ms"], line["lateness_p50_ms"]) == (4.0, 5.0, None)
    assert (line["connect_requests"], line["tls_p99_ms"], line["transfer_p50_ms"]) == (7, None, 0.5)
    assert set(LIVE_QUANTILES) < line.keys()
    # Each target of a run at rest has a line. It has the fields of the line of a phase, but for its time.
    (line,) = build_target_lines([make_target(latency_ms=latency)])
    assert (line["target"], line["weight"], line["requests"], line["rate_rps"]) == ("buy", 2, 100, 9.0)
    assert (line["ok"], line["failed_check"], line["not_sent_late"]) == (90, 10, 0)
    assert (line["p99_9_ms"], line["response_time_max_ms"]) == (4.0, None)
    assert set(LIVE_QUANTILES) < line.keys()


def test_each_threshold_of_a_run_at_rest_has_a_line() -> None:
    """It has the fields of the summary; why one is undecided is there if it is."""
    failed = ThresholdSummary(
        expression="ok >= 99.9%", verdict=ThresholdVerdict.FAILED, value=0.7512345678, limit=0.999,
        unit=FigureUnit.SHARE, holds=False, against=250, allowed=1,
    )  # fmt: skip
    lost = ThresholdSummary(
        expression="rate > 9/s over 9s", verdict=ThresholdVerdict.FAILED, value=0.12345678, limit=9.0,
        unit=FigureUnit.PER_SECOND, holds=False, lost_s=12.0, lost_phase="soak", lost_value=8.7654321,
    )  # fmt: skip
    undecided = ThresholdSummary(
        expression="mean < 1s", verdict=ThresholdVerdict.UNDECIDED, limit=1000.0, unit=FigureUnit.MS,
        detail="nothing was answered",
    )  # fmt: skip
    lines = list(build_threshold_lines([failed, undecided, lost]))
    assert lines[0] == {
        "expression": "ok >= 99.9%", "verdict": "failed", "value": 0.751235, "limit": 0.999, "unit": "share",
        "holds": False, "against": 250, "allowed": 1, "detail": None, "lost_s": None, "lost_phase": None,
        "lost_value": None,
    }  # fmt: skip
    assert {"lost_s": 12.0, "lost_phase": "soak", "lost_value": 8.76543}.items() <= lines[2].items()
    assert (lines[1]["value"], lines[1]["unit"], lines[1]["detail"]) == (None, "ms", "nothing was answered")


def test_the_line_of_a_summary_leaves_out_what_has_lines_of_its_own() -> None:
    """A hundred targets in each of many phases would make it too long for Loki."""
    phase = PhaseSummary(
        name="soak", begin_s=0.0, end_s=None, requests=100, outcomes=NO_OUTCOMES, not_sent=NotSentCounts(),
        statuses={}, bytes_received=0, completed=0, sent_rps=0.0, completed_rps=0.0,
        latency_ms=LatencySummary(),
        response_time_ms=LatencySummary(), lateness_ms=LatencySummary(), targets=[make_target()],
    )  # fmt: skip
    summary = build_summary(
        run="r1", name="", state=RunState.COMPLETED, engine=Engine.AIOHTTP, requests=100, accounted=100,
        resent_at_most=0, outcomes=NO_OUTCOMES, statuses={}, bytes_received=0, started_at=None, ended_at=None,
        active_s=1.0, throughput_rps=100.0, latency_ms=LatencySummary(), phases=[phase],
        targets=[make_target()], workers=[], servers=None, validity=[],
    )  # fmt: skip
    line = build_summary_line(summary)
    assert "targets" not in line
    assert [list(phase) for phase in line["phases"]] == [
        [field for field in PhaseSummary.__struct_fields__ if field != "targets"]
    ]


EXCEPTION = FailureSummary(
    outcome=Outcome.EXCEPTION, reason="ValueError: 7", requests=3, first_index=4, last_index=9,
    traceback="File x.py, line 3",
)  # fmt: skip
TIMEOUT = FailureSummary(outcome=Outcome.TIMEOUT, reason="no answer within 1s", requests=8)
LOGIN = InnerSummary(
    name="login", requests=250, outcomes=NO_OUTCOMES, statuses={"200": 250}, bytes_received=900,
    rate_rps=25.0, failures=[TIMEOUT],
    latency_ms=LatencySummary(mean=1.0, p50=1.0, p90=2.0, p99=3.0, p99_9=4.0, min=0.5, max=5.0),
)  # fmt: skip
SUMMARY = build_summary(
    run="r1", name="", state=RunState.COMPLETED, engine=Engine.PYTHON, unit=Unit.ITERATION, requests=100,
    accounted=100, resent_at_most=0, outcomes=NO_OUTCOMES, statuses={}, bytes_received=0, started_at=None,
    ended_at=None, active_s=1.0, throughput_rps=100.0, latency_ms=LatencySummary(), workers=[],
    servers=None, validity=[], failures=[EXCEPTION], inner_requests=[LOGIN],
)  # fmt: skip


def test_each_name_of_a_run_at_rest_has_a_line() -> None:
    """With its account, its rate and its quantiles."""
    (line,) = build_inner_lines([LOGIN])
    assert (line["request"], line["requests"], line["rate_rps"], line["timeout"]) == ("login", 250, 25.0, 0)
    assert (line["mean_ms"], line["p99_ms"], line["p99_9_ms"], line["max_ms"]) == (1.0, 3.0, 4.0, 5.0)
    # The line of a summary leaves out names and tracebacks.
    line = build_summary_line(SUMMARY)
    assert "inner_requests" not in line
    assert (line["unit"], line["failures"][0]["reason"]) == ("iteration", "ValueError: 7")
    assert "traceback" not in line["failures"][0]
    # Failures of inner requests have lines that name them.
    iteration, inner = build_failure_lines(SUMMARY)
    assert (iteration["reason"], iteration["traceback"]) == ("ValueError: 7", "File x.py, line 3")
    assert "request" not in iteration
    assert (inner["request"], inner["outcome"], inner["requests"]) == ("login", "timeout", 8)
    assert (inner["traceback"], inner["first_index"]) == (None, None)
