from tests.kit.coordinators.iterations import build_inner
from tests.kit.runs.summaries import build_summary

from oku_core.accounting.lease_state import LeaseSpan, LeaseState
from oku_core.accounting.outcome import Outcome, build_no_counts, build_outcome_counts
from oku_core.accounting.run_state import RunState
from oku_core.results.inner_lines import build_inner_lines, build_inner_range_lines
from oku_core.results.latency_summary import LatencySummary
from oku_core.results.lines import build_failure_lines, build_summary_line
from oku_core.results.request_summary import FailureSummary, InnerSummary, OutcomeCounts
from oku_core.results.summary import Unit
from oku_core.spec.spec import Engine

OUTCOMES = OutcomeCounts(**build_outcome_counts(build_no_counts()))
EXCEPTION = FailureSummary(
    outcome=Outcome.EXCEPTION, reason="ValueError: 7", requests=3, first_index=4, last_index=9,
    traceback="File x.py, line 3",
)  # fmt: skip
TIMEOUT = FailureSummary(outcome=Outcome.TIMEOUT, reason="no answer within 1s", requests=8)
LOGIN = InnerSummary(
    name="login", requests=250, outcomes=OUTCOMES, statuses={"200": 250}, bytes_received=900, rate_rps=25.0,
    latency_ms=LatencySummary(mean=1.0, p50=1.0, p90=2.0, p99=3.0, p99_9=4.0, min=0.5, max=5.0),
    failures=[TIMEOUT],
)  # fmt: skip
SUMMARY = build_summary(
    run="r1", name="", state=RunState.COMPLETED, engine=Engine.PYTHON, unit=Unit.ITERATION, requests=100,
    accounted=100, resent_at_most=0, outcomes=OUTCOMES, statuses={}, bytes_received=0, started_at=None,
    ended_at=None, active_s=1.0, throughput_rps=100.0, latency_ms=LatencySummary(), workers=[],
    servers=None, validity=[], failures=[EXCEPTION], inner_requests=[LOGIN],
)  # fmt: skip


def test_each_name_of_a_closed_lease_has_a_line() -> None:
    """With its phase if it has one; `request`, for `name` is that of the run."""
    lease = LeaseSpan(
        id="l1", worker="w1", start=0, stop=8, state=LeaseState.CLOSED, reason="", cut_at=0.0, closed_at=1.0
    )
    parts = [build_inner("login", [1000, 3000]), build_inner("orders", [], phase="warm-up")]
    login, orders = build_inner_range_lines(lease, parts)
    assert (login["lease"], login["worker"], login["request"], login["phase"]) == ("l1", "w1", "login", None)
    assert (login["requests"], login["ok"], login["bytes_received"], login["max_ms"]) == (2, 2, 20, 3.0)
    assert (orders["request"], orders["phase"], orders["requests"]) == ("orders", "warm-up", 0)
    assert "name" not in login


def test_each_name_of_a_run_at_rest_has_a_line() -> None:
    """With its account, its rate and its quantiles."""
    (line,) = build_inner_lines([LOGIN])
    assert (line["request"], line["requests"], line["rate_rps"], line["timeout"]) == ("login", 250, 25.0, 0)
    assert (line["mean_ms"], line["p99_ms"], line["p99_9_ms"], line["max_ms"]) == (1.0, 3.0, 4.0, 5.0)


def test_the_line_of_a_summary_leaves_out_names_and_tracebacks() -> None:
    """They have lines of their own; together they would be too long for Loki."""
    line = build_summary_line(SUMMARY)
    assert "inner_requests" not in line
    assert (line["unit"], line["failures"][0]["reason"]) == ("iteration", "ValueError: 7")
    assert "traceback" not in line["failures"][0]


def test_failures_of_inner_requests_have_lines_that_name_them() -> None:
    """Those of iterations have a traceback, if there is one."""
    iteration, inner = build_failure_lines(SUMMARY)
    assert (iteration["reason"], iteration["traceback"]) == ("ValueError: 7", "File x.py, line 3")
    assert "request" not in iteration
    assert (inner["request"], inner["outcome"], inner["requests"]) == ("login", "timeout", 8)
    assert (inner["traceback"], inner["first_index"]) == (None, None)
