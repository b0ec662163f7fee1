import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cli.report.conftest import Page, build_latency

from oku_cli.report.charts.chart import build_chart
from oku_cli.report.charts.distribution import (
    MOST_BARS,
    build_bars,
    build_histogram_chart,
    build_percentile_chart,
    write_percentile,
)

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
    """Both charts have one number to read out for each position of their track."""
    for build in (build_histogram_chart, build_percentile_chart):
        chart, track = build(build_latency(values))
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


def test_percentiles_reach_as_far_as_there_are_requests() -> None:
    """With 10,000 requests, 99.99 % is the last percentile that is known."""
    chart, track = build_percentile_chart(build_latency(list(range(1000, 11_000))))
    assert [tick.label for tick in chart.x.ticks] == ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"]
    assert [round(tick.at, 3) for tick in chart.x.ticks] == [0, 0.25, 0.5, 0.75, 1]
    assert track.x[-1] == 1000
    assert track.heads[:2] + track.heads[-2:] == ["0 %", "10 %", "99.92188 %", "100 %"]
    assert chart.description.startswith("p50 6.00 ms, p90 10.0 ms")


def test_a_long_tail_has_a_logarithmic_scale() -> None:
    """On a linear one, everything else would be a flat line."""
    flat, _ = build_percentile_chart(build_latency([1000, 2000]))
    steep, _ = build_percentile_chart(build_latency([1000] * 9 + [1_000_000]))
    assert "is linear" in flat.note
    assert "is logarithmic" in steep.note


@pytest.mark.parametrize(
    ("level", "text"), [(0, "0 %"), (0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (1 - 1e-8, "99.999999 %")]
)
def test_percentiles_have_all_their_nines(level: float, text: str) -> None:
    """No percentile is rounded to 100 %."""
    assert write_percentile(level) == text
