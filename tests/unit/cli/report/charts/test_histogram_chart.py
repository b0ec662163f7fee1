from hypothesis import given
from hypothesis import strategies as st
from tests.kit.histograms import make_latency
from tests.unit.cli.report.charts.distributions import make
from tests.unit.cli.report.conftest import Page

from oku_cli.report.charts.chart import build_chart
from oku_cli.report.charts.histogram_chart import (
    MOST_BARS,
    build_chart_bars,
    build_histogram_chart,
    build_overlay_chart,
)

VALUES = st.lists(st.integers(0, 3_600_000_000), min_size=1, max_size=30)


@given(VALUES)
def test_bars_hold_every_latency(values: list[int]) -> None:
    """Latencies beyond the last bar are counted as well."""
    latency = make_latency(values)
    bars = build_chart_bars(latency)
    assert sum(bars.counts) + bars.beyond == latency.total
    assert 1 <= len(bars.counts) <= MOST_BARS + 2
    assert bars.low_us <= latency.min_us


@given(VALUES)
def test_any_latencies_can_be_drawn(values: list[int]) -> None:
    """There is one number to read out for each position of the track."""
    chart, track = build_histogram_chart(make_latency(values))
    assert Page(build_chart(chart)).faults == []
    assert len(track.x) == len(track.heads) == len(chart.series[0].values)
    assert track.x == sorted(track.x)


def test_bars_are_as_wide_as_the_resolution() -> None:
    """Latencies of a second are known to half a millisecond."""
    bars = build_chart_bars(make_latency([1_000_000 + 300 * i for i in range(10)]))
    assert bars.step_us >= 1000
    # Outliers are in the note but not drawn. One that took a minute would squeeze all others into one bar.
    chart, _ = build_histogram_chart(make_latency([1000 + i for i in range(2000)] + [60_000_000]))
    assert "Not drawn: 0.05 % above 3.1" in chart.note
    assert "up to 60.0 s" in chart.note


@given(VALUES, VALUES)
def test_histograms_share_an_axis(first: list[int], second: list[int]) -> None:
    """Every value is in one of the steps, which are the same for all."""
    chart, track = build_overlay_chart([make(first), make(second, "lateness")])
    assert Page(build_chart(chart)).faults == []
    assert [sum(value or 0 for value in series.values) for series in chart.series] == [
        len(first),
        len(second),
    ]
    assert {len(series.values) for series in chart.series} == {len(track.x)} == {len(track.heads)}


def test_an_overlay_has_round_numbers_on_its_axis() -> None:
    """Of few decades more than of many."""
    chart, track = build_overlay_chart([make([20_000, 90_000]), make([5000], "lateness")])
    assert [tick.label for tick in chart.x.ticks] == ["5 ms", "10 ms", "20 ms", "50 ms", "100 ms"]
    assert (track.heads[0], track.heads[12]) == ("4.47 ms to 5.01 ms", "17.8 ms to 20.0 ms")
    wide, _ = build_overlay_chart([make([1_000_000]), make([9], "lateness")])
    assert [tick.label for tick in wide.x.ticks] == ["10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s"]
    # Its id can be a css class. A name may have a space.
    assert make([1], "response time").id == "response-time"
