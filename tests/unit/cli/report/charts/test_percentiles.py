import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cli.report.charts.distributions import make
from tests.unit.cli.report.conftest import Page

from oku_cli.report.charts.chart import build_chart
from oku_cli.report.charts.percentiles import build_percentile_chart, write_percentile

VALUES = st.lists(st.integers(0, 3_600_000_000), min_size=1, max_size=30)


@given(VALUES)
def test_any_distribution_can_be_drawn(values: list[int]) -> None:
    """There is one number to read out for each position of the track."""
    chart, track = build_percentile_chart([make(values)])
    assert Page(build_chart(chart)).faults == []
    assert len(track.x) == len(track.heads) == len(chart.series[0].values)
    assert track.x == sorted(track.x)


@given(VALUES, VALUES)
def test_several_distributions_share_a_percentile_chart(first: list[int], second: list[int]) -> None:
    """Each is read out at the percentiles of the first, and a legend tells them apart."""
    chart, track = build_percentile_chart([make(first), make(second, "response time")])
    assert Page(build_chart(chart)).faults == []
    assert [key.label for key in chart.legend] == ["latency", "response time"]
    assert [series.label for series in chart.series] == ["latency", "response time"]
    assert {len(series.values) for series in chart.series} == {len(track.x)}


def test_percentiles_reach_as_far_as_there_are_requests() -> None:
    """With 10,000 requests, 99.99 % is the last percentile that is known."""
    chart, track = build_percentile_chart([make(range(1000, 11_000))])
    assert [tick.label for tick in chart.x.ticks] == ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"]
    assert [round(tick.at, 3) for tick in chart.x.ticks] == [0, 0.25, 0.5, 0.75, 1]
    assert track.x[-1] == 1000
    assert track.heads[:2] + track.heads[-2:] == ["0 %", "10 %", "99.92188 %", "100 %"]
    assert chart.description.startswith("latency: p50 6.00 ms, p90 10.0 ms")
    # A long tail has a logarithmic scale. On a linear one, everything else would be a flat line.
    flat, _ = build_percentile_chart([make([1000, 2000])])
    steep, _ = build_percentile_chart([make([1000] * 9 + [1_000_000])])
    assert "is linear" in flat.note
    assert "is logarithmic" in steep.note
    # Distributions that are far apart have a logarithmic scale.
    chart, _ = build_percentile_chart([make([50_000] * 9), make([100] * 9, "lateness")])
    assert "The time scale is logarithmic" in chart.note
    assert chart.y.ticks[0].label == "100 µs"


@pytest.mark.parametrize(
    ("level", "text"), [(0, "0 %"), (0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (1 - 1e-8, "99.999999 %")]
)
def test_percentiles_have_all_their_nines(level: float, text: str) -> None:
    """No percentile is rounded to 100 %."""
    assert write_percentile(level) == text
