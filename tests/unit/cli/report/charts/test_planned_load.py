import pytest
from tests.unit.cli.report.charts.runs_over_time import make_plan
from tests.unit.cli.report.conftest import START, make_sample

from oku_cli.report.charts.planned_load import build_plan, read_periods
from oku_cli.report.charts.timeline import Timeline
from oku_cli.report.history_reader import read_load
from oku_core.results.run_api import RunPeriod

TEN_SECONDS = Timeline(((START, START + 10),))
PAUSED = Timeline(((START, START + 4), (START + 1000, START + 1006)))
TWO_PERIODS = RunPeriod(START, 0.0, 4.0), RunPeriod(START + 1000, 4.0, 10.0)


def trace(timeline: Timeline, *periods: RunPeriod, **load: object) -> list[list[tuple[float, float]]]:
    """Trace the plan of a load."""
    return make_plan(*periods, **load).trace_levels(timeline)


def test_the_plan_is_a_line_that_follows_the_clock() -> None:
    """A step is drawn as one, and nothing is planned behind the end."""
    assert trace(TEN_SECONDS, stages=["5s:0..100/s", "2s:50..50/s"]) == [
        [(0.0, 0.0), (0.5, 100.0), (0.5, 50.0), (0.7, 50.0)]
    ]
    # A pause shifts the plan. It goes on behind the pause with what the clock said before.
    before, after = trace(PAUSED, *TWO_PERIODS, stages=["10s:0..100/s"])
    assert [level for _, level in before] == [0.0, 40.0]
    assert [level for _, level in after] == [40.0, 100.0]
    assert after[0][0] == pytest.approx(PAUSED.place(START + 1000))
    # What is due again is not planned twice.
    periods = RunPeriod(START, 0.0, 4.0), RunPeriod(START + 1000, 3.0, 10.0)
    _, after = trace(PAUSED, *periods, stages=["10s:0..100/s"])
    assert after[0] == pytest.approx((PAUSED.place(START + 1001), 40.0))


def test_levels_bands_and_due_time_follow_the_clock() -> None:
    """A run that goes on has a plan for its future, which is not drawn."""
    plan = make_plan(RunPeriod(START + 5, 0.0), rate="100/s", duration="20s")
    assert plan.trace_levels(TEN_SECONDS) == [[(0.5, 100.0), (1.0, 100.0)]]
    assert plan.find_level(TEN_SECONDS, START + 4) is None
    assert plan.find_level(TEN_SECONDS, START + 6) == 100.0
    # A phase is a band. A pause cuts it in two, and a phase that has not begun is not there.
    plan = make_plan(*TWO_PERIODS, stages=["up=3s:0..30", "hold=6s:30", "down=6s:0"])
    bands = plan.list_bands(PAUSED)
    assert [band.name for band in bands] == ["up", "hold", "hold", "down"]
    assert bands[2].left == pytest.approx(PAUSED.place(START + 1000))
    assert bands[-1].right == pytest.approx(1.0)
    # The warm up is told apart. What comes behind it in a run without stages ends with the run.
    plan = make_plan(requests=1000, **{"warm-up": "2s"})
    assert [(band.name, band.is_warm_up, band.right) for band in plan.list_bands(TEN_SECONDS)] == [
        ("warm-up", True, 0.2), ("main", False, 1.0),
    ]  # fmt: skip
    # A run without stages has no phases. Its only phase has no name.
    assert make_plan(rate="100/s", duration="10s").list_bands(TEN_SECONDS) == []
    # The time in which requests are due is that of the clock.
    plan = make_plan(*TWO_PERIODS, rate="100/s", duration="9s")
    ends = [(-1, 1), (3, 5), (500, 999), (1003, 1006)]
    assert [plan.measure_due_s(PAUSED, START + since, START + until) for since, until in ends] == [1, 1, 0, 2]


def test_a_plan_needs_a_load_and_a_clock() -> None:
    """A run that has not begun has no clock yet."""
    assert build_plan(None, TWO_PERIODS, []) is None
    assert build_plan(read_load({"requests": 10}), [], [make_sample(1)]) is None
    # Samples tell when a run was active. Of a run that has no schedule, nothing else does.
    samples = [
        make_sample(1),
        make_sample(2, active_s=0.5),
        make_sample(3, active_s=1.5),
        make_sample(50, active_s=2.0),
        make_sample(51, active_s=3.0),
    ]
    assert read_periods(samples) == [
        RunPeriod(START + 1.5, 0.0, 1.5), RunPeriod(START + 49.5, 1.5, 3.0),
    ]  # fmt: skip
