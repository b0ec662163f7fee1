from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cli.report.charts.distributions import make
from tests.unit.cli.report.conftest import Page

from oku_cli.report.charts.chart import build_chart
from oku_cli.report.charts.overlay import build_overlay_chart

VALUES = st.lists(st.integers(0, 3_600_000_000), min_size=1, max_size=30)


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
