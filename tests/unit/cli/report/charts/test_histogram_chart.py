from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cli.report.conftest import Page, build_latency

from oku_cli.report.charts.chart import build_chart
from oku_cli.report.charts.histogram_chart import MOST_BARS, build_bars, build_histogram_chart

VALUES = st.lists(st.integers(0, 3_600_000_000), min_size=1, max_size=30)


@given(VALUES)
def test_bars_hold_every_latency(values: list[int]) -> None:
    """Latencies beyond the last bar are counted as well."""
    latency = build_latency(values)
    bars = build_bars(latency)
    assert sum(bars.counts) + bars.beyond == latency.total
    assert 1 <= len(bars.counts) <= MOST_BARS + 2
    assert bars.low_us <= latency.min_us


@given(VALUES)
def test_any_latencies_can_be_drawn(values: list[int]) -> None:
    """There is one number to read out for each position of the track."""
    chart, track = build_histogram_chart(build_latency(values))
    assert Page(build_chart(chart)).faults == []
    assert len(track.x) == len(track.heads) == len(chart.series[0].values)
    assert track.x == sorted(track.x)


def test_bars_are_not_narrower_than_the_resolution() -> None:
    """Latencies of a second are known to half a millisecond."""
    bars = build_bars(build_latency([1_000_000 + 300 * i for i in range(10)]))
    assert bars.step_us >= 1000


def test_outliers_are_in_the_note_but_not_drawn() -> None:
    """One that took a minute would squeeze all others into one bar."""
    chart, _ = build_histogram_chart(build_latency([1000 + i for i in range(2000)] + [60_000_000]))
    assert "Not drawn: 0.05 % above 3.1" in chart.note
    assert "up to 60.0 s" in chart.note
