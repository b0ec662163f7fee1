import pytest
from tests.unit.cli.report.conftest import build_latency, make_sample

from oku_cli.report.charts.chart import Chart
from oku_cli.report.charts.heatmap import LEVELS, build_heatmap, choose_level, count_by_row
from oku_cli.report.charts.over_time import build_run_over_time
from oku_cli.report.charts.timeline import build_timeline
from oku_core.results.lines import BOUNDS_MS, build_latency_lines
from oku_core.results.sample import Sample


def build(samples: list[Sample]) -> Chart | None:
    """Build the heatmap of these samples."""
    timeline = build_timeline(samples, [])
    assert timeline is not None
    return build_heatmap(samples, build_run_over_time(samples, timeline, []))


def test_rows_have_the_bounds_of_the_lines_for_loki() -> None:
    """The heatmap of the dashboard and that of the report show the same."""
    latency = build_latency([5, 10, 11, 999, 1000, 12_345, 40_000, 40_100, 3_600_000_000])
    lines = {float(line["le"]): line["requests"] for line in build_latency_lines(latency)}
    assert {BOUNDS_MS[row]: count for row, count in count_by_row(latency).items()} == lines


@pytest.mark.parametrize(("density", "level"), [(1, 0), (1000, LEVELS - 1), (31.7, LEVELS // 2)])
def test_shades_are_logarithmic(density: float, level: int) -> None:
    """The lowest rate has the weakest shade, the highest the strongest."""
    assert choose_level(density, 1, 1000) == level


def test_equal_rates_have_the_strongest_shade() -> None:
    """There is nothing to compare them with."""
    assert choose_level(3, 3, 3) == LEVELS - 1


def test_requests_are_drawn_at_their_time_and_latency() -> None:
    """Rows reach from the lowest latency that occurred to the highest."""
    chart = build([make_sample(1, [1000] * 50), make_sample(2, [1000] * 50 + [100_000])])
    assert chart is not None
    assert [shape.count("M") for shape in chart.shapes] == [1, 2]
    assert "Most requests took 800 µs to 1.00 ms; the slowest up to 100 ms" in chart.description
    assert chart.y.ticks[-1].label == "100 ms"


def test_a_run_without_answers_has_no_heatmap() -> None:
    """It has no latencies."""
    assert build([make_sample(1, [])]) is None


def test_a_single_latency_makes_a_heatmap() -> None:
    """The heatmap has one row and one column."""
    chart = build([make_sample(1, [1000])])
    assert chart is not None
    assert len(chart.shapes) == 1
    assert chart.y.ticks
