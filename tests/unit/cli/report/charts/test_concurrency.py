from tests.kit.outcomes import make_counts
from tests.unit.cli.report.charts.runs_over_time import build, make_plan, read
from tests.unit.cli.report.conftest import make_sample

from oku_cli.report.charts.concurrency import build_in_flight_chart
from oku_cli.report.charts.rate import build_rate_chart


def test_the_load_can_be_read_out() -> None:
    """The load is requests in flight, workers, and the worst lag of an event loop."""
    chart = build_in_flight_chart(
        build([make_sample(1, in_flight=20.0, lag_s=0.002), make_sample(2, in_flight=0.0)])
    )
    assert read(chart) == {"in flight": [20, 0], "workers": [2, 2], "worst event loop lag": [2, 0]}


def test_what_nobody_saw_is_a_gap() -> None:
    """The counts of a second are known although no coordinator was there, its load is not."""
    unseen = make_sample(2, (), outcomes=make_counts(7), in_flight=None, workers=None, lag_s=None)
    over_time = build([make_sample(1, in_flight=20.0, lag_s=0.002), unseen, make_sample(3, in_flight=4.0)])
    assert read(build_in_flight_chart(over_time)) == {
        "in flight": [20, None, 4], "workers": [2, None, 2], "worst event loop lag": [2, None, 0],
    }  # fmt: skip
    assert read(build_rate_chart(over_time))["ok"] == [1, 7, 1]
    assert read(build_in_flight_chart(build([unseen])))["in flight"] == [None]


def test_stages_of_concurrency_lie_behind() -> None:
    """They are of all workers; the rate has no plan then."""
    over_time = build(
        [make_sample(second, in_flight=10.0 * second) for second in (1, 2)], make_plan(stages=["2s:0..40"])
    )
    chart = build_in_flight_chart(over_time)
    assert read(chart)["plan"] == [10, 30]
    assert [key.label for key in chart.legend] == ["in flight", "plan"]
    assert "plan" not in read(build_rate_chart(over_time))


def test_a_constant_concurrency_has_no_plan() -> None:
    """It needs no legend either."""
    chart = build_in_flight_chart(build([make_sample(1)], make_plan(duration="10s")))
    assert list(read(chart)) == ["in flight", "workers", "worst event loop lag"]
    assert chart.legend == []


def test_the_most_that_is_allowed_is_shown_where_it_is_near() -> None:
    """A rate may have 2 s of itself in flight, over all workers; what is far below need not know."""
    plan = make_plan(rate="100/s", duration="9s")
    near = build_in_flight_chart(build([make_sample(1, in_flight=150.0), make_sample(2, workers=None)], plan))
    assert read(near)["most allowed"] == [200, None]
    assert "most allowed" not in read(build_in_flight_chart(build([make_sample(1, in_flight=50.0)], plan)))
