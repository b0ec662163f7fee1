"""The summary of a run of user code: iterations, exceptions with tracebacks, and requests by name."""

from typing import Any

from tests.kit.runs.summaries import build_summary, make_inner, make_outcomes

from oku_core.accounting.histogram import Histogram
from oku_core.accounting.outcome import Outcome
from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import Engine
from oku_core.summary.latency_summary import LatencySummary, build_latency_summary
from oku_core.summary.request_summary import FailureSummary, NotSentCounts, PhaseSummary
from oku_core.summary.summary import Summary, Unit, WorkerSummary
from oku_core.summary.validity import Flag, Validity

TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 3, in scenario\nValueError: <no>\n'


def build_user_code_run(**changes: Any) -> Summary:
    """A completed run of 1,000 iterations, of which 10 raised, changed as wanted."""
    histogram = Histogram()
    for _ in range(990):
        histogram.record(2000)
    failed = make_outcomes(ok=995, unexpected_status=5)
    reason = FailureSummary(outcome=Outcome.UNEXPECTED_STATUS, reason="status 503", requests=5)
    fields: dict[str, Any] = {
        "run": "r1", "name": "", "state": RunState.COMPLETED, "engine": Engine.PYTHON, "unit": Unit.ITERATION,
        "target": "a.py", "load": "50 users, 1,000 iterations",
        "requests": 1000, "accounted": 1000, "resent_at_most": 0,
        "outcomes": make_outcomes(ok=990, exception=10), "statuses": {}, "bytes_received": 0,
        "started_at": "2026-02-01T17:05:12Z", "ended_at": "2026-02-01T17:05:14Z",
        "active_s": 2.0, "throughput_rps": 500.0, "latency_ms": build_latency_summary(histogram),
        "servers": None,
        "inner_requests": [
            make_inner(),
            make_inner(name="buy", outcomes=failed, statuses={"200": 995, "503": 5}, failures=[reason]),
        ],
        "failures": [
            FailureSummary(
                outcome=Outcome.EXCEPTION, reason="ValueError: <no> (a.py:3 in scenario)", requests=10,
                first_index=7, last_index=907, traceback=TRACEBACK,
            ),
        ],
        "workers": [WorkerSummary(name="worker-1", requests=1000, cpu_s=1.0, peak_rss_mb=61.4, lost=False)],
        "validity": [
            Validity(
                flag=Flag.UNANSWERED, requests=10, share=0.01,
                detail="requests without a complete response are in no latency figure",
            )
        ],
    }  # fmt: skip
    return build_summary(**fields | changes)


def make_phase(name: str) -> PhaseSummary:
    """A stage of such a run."""
    return PhaseSummary(
        name=name, begin_s=0.0, end_s=1.0, requests=500, outcomes=make_outcomes(ok=500), statuses={},
        not_sent=NotSentCounts(), bytes_received=0, completed=500, sent_rps=500.0, completed_rps=500.0,
        latency_ms=LatencySummary(), response_time_ms=LatencySummary(), lateness_ms=LatencySummary(),
    )  # fmt: skip
