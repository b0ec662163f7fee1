from tests.unit.cli.report.charts.runs_over_time import build, read
from tests.unit.cli.report.conftest import build_latency, make_sample

from oku_cli.report.charts.chart import build_chart
from oku_cli.report.charts.quantiles import build_due_chart, build_quantile_chart
from oku_core.accounting.measured_time import Time


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


def test_a_run_with_a_rate_compares_three_distributions() -> None:
    """The pointer reads out more of each than the line that is drawn."""
    sample = make_sample(
        1, [2000], {Time.RESPONSE_TIME: build_latency([3000]), Time.LATENESS: build_latency([1000])}
    )
    chart = build_due_chart(build([sample, make_sample(2, [])]))
    assert chart is not None
    assert build_chart(chart)
    values = read(chart)
    assert [values[f"{name} p99"] for name in ("latency", "response time", "lateness")] == [
        [2, None], [3, None], [1, None],
    ]  # fmt: skip
    assert len(values) == 9
    assert [key.label for key in chart.legend] == ["latency", "response time", "lateness"]


def test_a_closed_run_has_nothing_to_compare() -> None:
    """Its requests have no due times."""
    assert build_due_chart(build([make_sample(1)])) is None
