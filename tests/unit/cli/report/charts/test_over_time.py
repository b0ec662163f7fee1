from tests.unit.cli.report.charts.runs_over_time import build, make_plan
from tests.unit.cli.report.conftest import make_sample

from oku_cli.report.charts.load_chart import build_rate_chart
from oku_cli.report.charts.over_time import build_track


def test_a_run_over_time_has_a_track_and_phases() -> None:
    """A line through one point is as wide as its second."""
    over_time = build([make_sample(1)])
    assert build_track(over_time).x == [500]
    assert 'd="M0 ' in build_rate_chart(over_time).shapes[-1]
    # The track has the time of each column. It is the middle of the column, counted from the start.
    track = build_track(build([make_sample(second) for second in range(1, 101)]))
    assert (track.x[0], track.x[-1], track.heads[-1]) == (5, 995, "1:40 min")
    # Phases are known if the plan is. Without a plan there are none.
    samples = [make_sample(second) for second in range(1, 5)]
    assert build(samples).phases == []
    phases = build(samples, make_plan(rate="10/s", duration="4s", **{"warm-up": "1s"})).phases
    assert [(phase.name, phase.left, phase.right) for phase in phases] == [
        ("warm-up", 0.0, 0.25), ("main", 0.25, 1.0),
    ]  # fmt: skip
