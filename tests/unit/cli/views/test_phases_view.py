from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.cli.conftest import make_outcomes

from oku_cli.views.phases_view import build_phases
from oku_core.results.summary import NotSentCounts, PhaseSummary
from oku_core.results.timing_summary import LatencySummary

Render = Callable[..., list[str]]


@pytest.fixture
def make_phase() -> Callable[..., PhaseSummary]:
    """Makes a phase of 1,000 requests in two seconds, changed as wanted."""

    def make(**changes: Any) -> PhaseSummary:
        fields: dict[str, Any] = {
            "name": "soak", "begin_s": 2.0, "end_s": 4.0, "requests": 1000,
            "outcomes": make_outcomes(ok=1000), "not_sent": NotSentCounts(), "statuses": {"200": 1000},
            "bytes_received": 13_000, "completed": 990, "sent_rps": 500.0, "completed_rps": 480.0,
            "latency_ms": LatencySummary(p50=1.5, p99=20.0, max=30.0),
            "response_time_ms": LatencySummary(), "lateness_ms": LatencySummary(),
        }  # fmt: skip
        return PhaseSummary(**fields | changes)

    return make


def test_the_phases_of_a_closed_run_have_counts_rates_and_latencies(
    render: Render, make_phase: Callable[..., PhaseSummary]
) -> None:
    """What is not ok is seen in the share; a phase that has not come yet has none."""
    phases = [
        make_phase(name="warm-up", outcomes=make_outcomes(ok=990, timeout=10)),
        make_phase(
            name="main",
            requests=0,
            completed=0,
            outcomes=make_outcomes(),
            sent_rps=0.0,
            completed_rps=0.0,
            latency_ms=LatencySummary(),
        ),
    ]
    assert [line.split() for line in render(build_phases(phases))] == [
        ["phase", "completed", "ok", "sent/s", "completed/s", "p50", "p99"],
        ["warm-up", "990", "99.00", "%", "500", "480", "1.50", "ms", "20.0", "ms"],
        ["main", "0", "-", "0", "0", "-", "-"],
    ]


def test_the_phases_of_a_run_with_a_rate_have_its_plan_and_all_three_times(
    render: Render, make_phase: Callable[..., PhaseSummary]
) -> None:
    """What was due and planned stands beside what came of it; the second table names its quantile."""
    phase = make_phase(
        due=1020,
        planned_rps=510.0,
        response_time_ms=LatencySummary(p99=25.0),
        lateness_ms=LatencySummary(p99=0.25),
    )
    head, row, _, times_head, times = (line.split() for line in render(build_phases([phase])))
    assert head == ["phase", "due", "completed", "ok", "planned/s", "sent/s", "completed/s"]
    assert row == ["soak", "1,020", "990", "100", "%", "510", "500", "480"]
    assert times_head[:3] == ["p99", "by", "phase"]
    assert times == ["soak", "20.0", "ms", "25.0", "ms", "250", "µs"]


def test_a_long_name_is_folded_before_the_figures_leave_their_columns(
    render: Render, make_phase: Callable[..., PhaseSummary]
) -> None:
    """A name may have forty characters."""
    lines = render(build_phases([make_phase(name="x" * 40, planned_rps=500.0, due=10**9)]))
    assert lines[0].split()[:2] == ["phase", "due"]
    rows = lines[1 : lines.index("")]
    assert "".join(line.split()[0] for line in rows) == "x" * 40
