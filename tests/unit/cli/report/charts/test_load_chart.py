from tests.kit.outcomes import make_counts
from tests.unit.cli.report.charts.runs_over_time import build, make_plan, read
from tests.unit.cli.report.conftest import START, make_sample

from oku_cli.report.charts.chart import build_chart
from oku_cli.report.charts.load_chart import build_in_flight_chart, build_rate_chart, build_trouble_chart
from oku_core.results.run_api import RunPeriod


def test_the_rate_is_shown_by_outcome() -> None:
    """Only `ok` and the outcomes that occurred are shown, per second however long a sample was."""
    samples = [
        make_sample(1, outcomes=make_counts(100, timeout=3)),
        make_sample(3, outcomes=make_counts(50), seconds=2.0),
    ]
    chart = build_rate_chart(build(samples))
    assert read(chart) == {"ok": [100, 25], "timeout": [3, 0]}
    assert [key.label for key in chart.legend] == ["ok", "timeout"]
    assert "from 25/s to 103/s" in chart.description
    # Requests that were not ok have a scale of their own. If all were `ok`, there is no such chart.
    assert build_trouble_chart(build([make_sample(1)])) is None
    trouble = build_trouble_chart(
        build([make_sample(1, outcomes=make_counts(9000, timeout=3, disconnected=1)), make_sample(2)])
    )
    assert trouble is not None
    assert read(trouble) == {"timeout": [3, 0], "disconnected": [1, 0]}
    assert trouble.y.ticks[-1].label in ("4", "5")
    # The note says how long most steps are. A single late sample does not change that.
    seconds = [make_sample(at) for at in (1, 2, 3)]
    assert build_rate_chart(build(seconds)).note.endswith("; second by second.")
    assert build_rate_chart(build([*seconds, make_sample(8, seconds=5.0)])).note.endswith(
        "; second by second."
    )
    long = [make_sample(at, seconds=4.0) for at in (4, 8, 12)]
    assert build_rate_chart(build(long)).note.endswith("; in steps of 4 s.")


def test_what_was_sent_is_a_rate_of_the_time_in_which_requests_were_due() -> None:
    """A second in which the schedule began or ended is not off the plan because of that."""
    samples = [
        make_sample(second, requests_sent=sent) for second, sent in ((1, 50), (2, 100), (3, 25), (4, 0))
    ]
    plan = make_plan(RunPeriod(START + 0.5, 0.0), rate="100/s", duration="1750ms")
    assert read(build_rate_chart(build(samples, plan)))["sent"] == [100, 100, 100, None]
    # Late requests are sent after the end.
    samples = [make_sample(second, requests_sent=50) for second in (1, 2)]
    plan = make_plan(rate="100/s", duration="1s", late="send")
    assert read(build_rate_chart(build(samples, plan))) == {
        "ok": [1, 1], "sent": [50, 50], "plan": [100, None],
    }  # fmt: skip


def test_the_plan_lies_behind_the_rate() -> None:
    """What was sent is drawn, too: it follows the plan, however slow the target is."""
    samples = [
        make_sample(second, (), outcomes=make_counts(ok), requests_sent=100)
        for second, ok in enumerate((90, 10, 200), start=1)
    ]
    chart = build_rate_chart(build(samples, make_plan(rate="100/s", duration="3s")))
    assert read(chart) == {"ok": [90, 10, 200], "sent": [100, 100, 100], "plan": [100, 100, 100]}
    assert [key.label for key in chart.legend] == ["ok", "sent", "plan"]
    classes = [shape.partition('class="')[2].partition('"')[0] for shape in chart.shapes]
    assert classes == ["area plan", "area ok", "line total", "line plan", "line sent"]
    # The plan fits into the chart.
    over_time = build([make_sample(1, outcomes=make_counts(1))], make_plan(rate="900/s", duration="1s"))
    chart = build_rate_chart(over_time)
    assert chart.y.ticks[-1].label == "1k"
    assert build_chart(chart)
    # A closed run may have a limit. It has neither a plan of its rate nor a line of what was sent.
    chart = build_rate_chart(build([make_sample(1)], make_plan(requests=10, **{"max-rate": "5/s"})))
    assert read(chart) == {"ok": [1], "most allowed": [5]}


def test_the_load_can_be_read_out() -> None:
    """The load is requests in flight, workers, and the worst lag of an event loop."""
    chart = build_in_flight_chart(
        build([make_sample(1, in_flight=20.0, lag_s=0.002), make_sample(2, in_flight=0.0)])
    )
    assert read(chart) == {"in flight": [20, 0], "workers": [2, 2], "worst event loop lag": [2, 0]}
    # What nobody saw is a gap.
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
    # A constant concurrency has no plan. It needs no legend either.
    chart = build_in_flight_chart(build([make_sample(1)], make_plan(duration="10s")))
    assert list(read(chart)) == ["in flight", "workers", "worst event loop lag"]
    assert chart.legend == []
    # The most that is allowed is shown where it is near.
    plan = make_plan(rate="100/s", duration="9s")
    near = build_in_flight_chart(build([make_sample(1, in_flight=150.0), make_sample(2, workers=None)], plan))
    assert read(near)["most allowed"] == [200, None]
    assert "most allowed" not in read(build_in_flight_chart(build([make_sample(1, in_flight=50.0)], plan)))
