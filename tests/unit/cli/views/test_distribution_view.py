from collections.abc import Callable

from rich.console import Group
from tests.kit.runs.compared import MakeRun
from tests.kit.runs.summaries import make_outcomes

from oku_cli.views.distribution_view import list_distributions
from oku_core.accounting import hdr
from oku_core.accounting.histogram import Histogram
from oku_core.results.summary import NotSentCounts, PhaseSummary, Summary
from oku_core.results.timing_summary import LatencySummary, build_latency_summary

MakeSummary = Callable[..., Summary]
Render = Callable[..., list[str]]


def build_histogram(*values_us: int) -> Histogram:
    """A histogram of these times."""
    histogram = Histogram()
    for value_us in values_us:
        histogram.record(value_us)
    return histogram


def test_a_closed_run_has_its_latencies_and_their_bars(make_summary: MakeSummary, render: Render) -> None:
    """Nothing in it has a due time."""
    rows = [(str(label), render(content)) for label, content in list_distributions(make_summary())]
    assert [label for label, _ in rows] == ["latency", "", ""]
    assert " to " in rows[-1][1][0]


def test_a_run_with_a_rate_has_three_distributions_and_the_bars_of_its_response_times(
    make_summary: MakeSummary, render: Render
) -> None:
    """The quantiles of all three stand in the same columns."""
    times = build_histogram(7_000, 9_000_300)
    summary = make_summary(
        planned_rps=10.0,
        response_time_ms=build_latency_summary(times),
        response_time_histogram=hdr.encode_base64(times),
        lateness_ms=build_latency_summary(build_histogram(40)),
    )
    rows = [(str(label), render(content)) for label, content in list_distributions(summary)]
    assert [label for label, _ in rows] == ["latency", "response time", "lateness", "", "response time"]
    assert len({lines[0].index("p50") for _, lines in rows[:3]}) == 1
    assert "9.00 s" in rows[-1][1][-1]


def test_a_run_that_sent_something_but_heard_nothing_has_latenesses_alone(
    make_summary: MakeSummary, render: Render
) -> None:
    """Requests that failed were sent, too."""
    summary = make_summary(
        Histogram(), planned_rps=10.0, lateness_ms=build_latency_summary(build_histogram(40))
    )
    rows = [(str(label), render(content)) for label, content in list_distributions(summary)]
    assert [label for label, _ in rows] == ["latency", "lateness"]
    assert rows[0][1][0].strip() == "nothing was answered"


def test_a_run_that_ended_within_its_warm_up_says_so(make_summary: MakeSummary, render: Render) -> None:
    """All of its requests were answered, but none after the warm-up."""
    none = LatencySummary()
    phase = PhaseSummary(
        name="warm-up", begin_s=0.0, end_s=5.0, requests=1000, outcomes=make_outcomes(ok=1000),
        not_sent=NotSentCounts(), statuses={"200": 1000}, bytes_received=0, completed=1000, sent_rps=900.0,
        completed_rps=900.0,
        latency_ms=none, response_time_ms=none, lateness_ms=none,
    )  # fmt: skip
    [(_, content)] = list_distributions(make_summary(Histogram(), phases=[phase]))
    assert render(content)[0].strip() == "nothing was answered after the warm-up"


def test_a_long_run_shows_intervals_once(make_run: MakeRun, render: Render) -> None:
    """Those of the median and of the 99th percentile; the JSON has the rest."""
    summary = make_run().build_intervals()
    lines = render(
        Group(*(content for label, content in list_distributions(summary) if label == "intervals"))
    )
    (line,) = (line for line in lines if line.strip())
    assert [word for word in line.split() if word in {"p50", "p99", "(95", "%)"}] == [
        "p50",
        "p99",
        "(95",
        "%)",
    ]
    assert "intervals" not in dict(list_distributions(make_run(seconds=20).build_intervals()))
