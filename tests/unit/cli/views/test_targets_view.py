from collections.abc import Callable
from typing import Any

from tests.unit.cli.conftest import make_outcomes

from oku_cli.views.summary_view import build_summary
from oku_cli.views.targets_view import build_targets
from oku_core.results.summary import NotSentCounts, Summary, TargetSummary
from oku_core.results.timing_summary import LatencySummary

Render = Callable[..., list[str]]


def make_target(**changes: Any) -> TargetSummary:
    """A target of 1,000 requests in two seconds, changed as wanted."""
    fields: dict[str, Any] = {
        "name": "item", "weight": 8, "requests": 1000,
        "outcomes": make_outcomes(ok=1000), "not_sent": NotSentCounts(), "statuses": {"200": 1000},
        "bytes_received": 13_000, "rate_rps": 500.0,
        "latency_ms": LatencySummary(p50=1.5, p95=15.0, p99=20.0, max=30.0),
        "response_time_ms": LatencySummary(), "lateness_ms": LatencySummary(),
    }  # fmt: skip
    return TargetSummary(**fields | changes)


def test_the_targets_of_a_closed_run_have_counts_rates_and_latencies(render: Render) -> None:
    """They come in the order of the spec."""
    targets = [make_target(), make_target(name="buy", outcomes=make_outcomes(ok=990, failed_check=10))]
    assert [line.split() for line in render(build_targets(targets, is_open=False))] == [
        ["target", "requests", "ok", "rate", "p50", "p95", "p99"],
        ["item", "1,000", "100", "%", "500/s", "1.50", "ms", "15.0", "ms", "20.0", "ms"],
        ["buy", "1,000", "99.00", "%", "500/s", "1.50", "ms", "15.0", "ms", "20.0", "ms"],
    ]


def test_the_targets_of_a_run_with_a_rate_have_all_three_times(render: Render) -> None:
    """The table says which quantile it shows."""
    target = make_target(response_time_ms=LatencySummary(p99=25.0), lateness_ms=LatencySummary(p99=0.25))
    head, row, note = render(build_targets([target], is_open=True))
    assert head.split()[4:] == ["latency", "response", "lateness"]
    assert row.split()[4:] == ["500/s", "20.0", "ms", "25.0", "ms", "250", "µs"]
    assert "99th percentiles" in note


def test_the_end_screen_has_the_targets_of_a_run_that_names_them(
    render: Render, make_summary: Callable[..., Summary]
) -> None:
    """Others have no such table."""
    assert not [line for line in render(build_summary(make_summary())) if line.split()[:1] == ["target"]]
    lines = render(build_summary(make_summary(targets=[make_target(), make_target(name="buy")])))
    place = next(place for place, line in enumerate(lines) if line.split()[:1] == ["target"])
    assert [line.split()[0] for line in lines[place + 1 : place + 3]] == ["item", "buy"]
