from tests.kit.histograms import make_latency
from tests.unit.cli.report.charts.runs_over_time import build, read
from tests.unit.cli.report.conftest import make_sample

from oku_cli.report.charts.chart import Chart, build_chart
from oku_cli.report.charts.latency_chart import (
    LEVELS,
    build_due_chart,
    build_heatmap,
    build_quantile_chart,
    choose_level,
    count_by_row,
)
from oku_cli.report.charts.over_time import build_run_over_time
from oku_cli.report.charts.timeline import build_timeline
from oku_core.accounting.measured_time import Time
from oku_core.results.lines import BOUNDS_MS, build_latency_lines
from oku_core.results.sample import Sample


def test_quantiles_are_those_of_the_samples() -> None:
    """Each line has a label at its end, and a gap for a second without answers."""
    chart = build_quantile_chart(
        build([make_sample(1, [1000, 3000]), make_sample(2, []), make_sample(3, [2000])])
    )
    assert chart is not None
    assert read(chart)["p50"] == [1, None, 2]
    assert read(chart)["max"] == [3, None, 2]
    assert [key.label for key in chart.ends] == ["p50", "p90", "p99", "p99.9", "max"]
    assert len(chart.shapes) == 10
    # Without answers there is no chart of latencies. Every connection may have been refused.
    assert build_quantile_chart(build([make_sample(1, [])])) is None
    # Latencies of zero can be drawn. A logarithmic scale has no zero.
    chart = build_quantile_chart(build([make_sample(1, [0]), make_sample(2, [0])]))
    assert chart is not None
    assert build_chart(chart)


def test_a_run_with_a_rate_compares_three_distributions() -> None:
    """The pointer reads out more of each than the line that is drawn."""
    sample = make_sample(
        1, [2000], {Time.RESPONSE_TIME: make_latency([3000]), Time.LATENESS: make_latency([1000])}
    )
    chart = build_due_chart(build([sample, make_sample(2, [])]))
    assert chart is not None
    assert build_chart(chart)
    values = read(chart)
    assert [values[f"{name} p99"] for name in ("latency", "response time", "lateness")] == [
        [2, None], [3, None], [1, None],
    ]  # fmt: skip
    assert len(values) == 9
    assert [key.label for key in chart.legend] == ["latency", "response time", "lateness"]
    # A closed run has nothing to compare. Its requests have no due times.
    assert build_due_chart(build([make_sample(1)])) is None


def build_map(samples: list[Sample]) -> Chart | None:
    """Build the heatmap of these samples."""
    timeline = build_timeline(samples, [])
    assert timeline is not None
    return build_heatmap(samples, build_run_over_time(samples, timeline, []))


def test_requests_are_drawn_at_their_time_and_latency() -> None:
    """The heatmap of the dashboard and that of the report show the same."""
    latency = make_latency([5, 10, 11, 999, 1000, 12_345, 40_000, 40_100, 3_600_000_000])
    lines = {float(line["le"]): line["requests"] for line in build_latency_lines(latency)}
    assert {BOUNDS_MS[row]: count for row, count in count_by_row(latency).items()} == lines
    # Shades are logarithmic. The lowest rate has the weakest shade, the highest the strongest.
    for density, level in [(1, 0), (1000, LEVELS - 1), (31.7, LEVELS // 2)]:
        assert choose_level(density, 1, 1000) == level
    # Equal rates have the strongest shade. There is nothing to compare them with.
    assert choose_level(3, 3, 3) == LEVELS - 1
    # Requests are drawn at their time and latency.
    chart = build_map([make_sample(1, [1000] * 50), make_sample(2, [1000] * 50 + [100_000])])
    assert chart is not None
    assert [shape.count("M") for shape in chart.shapes] == [1, 2]
    assert "Most requests took 800 µs to 1.00 ms; the slowest up to 100 ms" in chart.description
    assert chart.y.ticks[-1].label == "100 ms"
    # A run without answers has no heatmap. It has no latencies.
    assert build_map([make_sample(1, [])]) is None
    # A single latency makes a heatmap. The heatmap has one row and one column.
    chart = build_map([make_sample(1, [1000])])
    assert chart is not None
    assert len(chart.shapes) == 1
    assert chart.y.ticks
