from collections.abc import Sequence

from tests.unit.cli.report.conftest import make_sample

from oku_cli.report.charts.chart import Chart, build_chart
from oku_cli.report.charts.over_time import (
    RunOverTime,
    build_load_chart,
    build_quantile_chart,
    build_rate_chart,
    build_run_over_time,
    build_track,
    build_trouble_chart,
)
from oku_cli.report.charts.timeline import build_timeline
from oku_core.results.sample import Sample


def build(samples: Sequence[Sample]) -> RunOverTime:
    """Build the run over time from these samples."""
    timeline = build_timeline(samples, [])
    assert timeline is not None
    return build_run_over_time(samples, timeline, [])


def read(chart: Chart) -> dict[str, Sequence[float | None]]:
    """Return the numbers that can be read out of a chart, by label."""
    return {series.label: series.values for series in chart.series}


def test_the_rate_is_shown_by_outcome() -> None:
    """Only `ok` and the outcomes that occurred are shown, per second however long a sample was."""
    samples = [
        make_sample(1, outcomes=[100, 0, 3, 0, 0, 0]),
        make_sample(3, outcomes=[50, 0, 0, 0, 0, 0], seconds=2.0),
    ]
    chart = build_rate_chart(build(samples))
    assert read(chart) == {"ok": [100, 25], "timeout": [3, 0]}
    assert [key.label for key in chart.legend] == ["ok", "timeout"]
    assert "from 25/s to 103/s" in chart.description


def test_requests_that_were_not_ok_have_a_scale_of_their_own() -> None:
    """If all were `ok`, there is no such chart."""
    assert build_trouble_chart(build([make_sample(1)])) is None
    chart = build_trouble_chart(build([make_sample(1, outcomes=[9000, 0, 3, 0, 1, 0]), make_sample(2)]))
    assert chart is not None
    assert read(chart) == {"timeout": [3, 0], "disconnected": [1, 0]}
    assert chart.y.ticks[-1].label in ("4", "5")


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


def test_without_answers_there_is_no_chart_of_latencies() -> None:
    """Every connection may have been refused."""
    assert build_quantile_chart(build([make_sample(1, [])])) is None


def test_latencies_of_zero_can_be_drawn() -> None:
    """A logarithmic scale has no zero."""
    chart = build_quantile_chart(build([make_sample(1, [0]), make_sample(2, [0])]))
    assert chart is not None
    assert build_chart(chart)


def test_the_note_says_how_long_most_steps_are() -> None:
    """A single late sample does not change that."""
    seconds = [make_sample(at) for at in (1, 2, 3)]
    assert build_rate_chart(build(seconds)).note.endswith("; second by second.")
    assert build_rate_chart(build([*seconds, make_sample(8, seconds=5.0)])).note.endswith(
        "; second by second."
    )
    long = [make_sample(at, seconds=4.0) for at in (4, 8, 12)]
    assert build_rate_chart(build(long)).note.endswith("; in steps of 4 s.")


def test_the_load_can_be_read_out() -> None:
    """The load is requests in flight, workers, and the worst lag of an event loop."""
    chart = build_load_chart(
        build([make_sample(1, in_flight=20.0, lag_s=0.002), make_sample(2, in_flight=0.0)])
    )
    assert read(chart) == {"in flight": [20, 0], "workers": [2, 2], "worst event loop lag": [2, 0]}


def test_what_nobody_saw_is_a_gap() -> None:
    """The counts of a second are known although no coordinator was there, its load is not."""
    unseen = make_sample(2, (), outcomes=[7, 0, 0, 0, 0, 0], in_flight=None, workers=None, lag_s=None)
    over_time = build([make_sample(1, in_flight=20.0, lag_s=0.002), unseen, make_sample(3, in_flight=4.0)])
    assert read(build_load_chart(over_time)) == {
        "in flight": [20, None, 4], "workers": [2, None, 2], "worst event loop lag": [2, None, 0],
    }  # fmt: skip
    assert read(build_rate_chart(over_time))["ok"] == [1, 7, 1]
    assert read(build_load_chart(build([unseen])))["in flight"] == [None]


def test_a_run_of_one_second_can_be_drawn() -> None:
    """A line through one point is as wide as its second."""
    over_time = build([make_sample(1)])
    assert build_track(over_time).x == [500]
    assert 'd="M0 ' in build_rate_chart(over_time).shapes[-1]


def test_the_track_has_the_time_of_each_column() -> None:
    """It is the middle of the column, counted from the start."""
    track = build_track(build([make_sample(second) for second in range(1, 101)]))
    assert (track.x[0], track.x[-1], track.heads[-1]) == (5, 995, "1:40 min")
