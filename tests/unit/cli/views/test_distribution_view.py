from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Group
from tests.kit.runs.compared import MakeRun
from tests.kit.runs.summaries import make_outcomes

from oku_cli.views.distribution_view import (
    BAR_COLUMNS,
    MOST_BARS,
    build_bars,
    build_histogram,
    list_distributions,
)
from oku_core.accounting import hdr
from oku_core.accounting.histogram import HIGHEST_US, Histogram, HistogramSnapshot
from oku_core.results.latency_summary import LatencySummary, build_latency_summary
from oku_core.results.request_summary import NotSentCounts, PhaseSummary
from oku_core.results.summary import Summary

MakeSummary = Callable[..., Summary]
Render = Callable[..., list[str]]


def make_histogram(*values_us: int) -> Histogram:
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
    times = make_histogram(7_000, 9_000_300)
    summary = make_summary(
        planned_rps=10.0,
        response_time_ms=build_latency_summary(times),
        response_time_histogram=hdr.encode_base64(times),
        lateness_ms=build_latency_summary(make_histogram(40)),
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
        Histogram(), planned_rps=10.0, lateness_ms=build_latency_summary(make_histogram(40))
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


def build_latency(latencies_us: Iterable[int]) -> HistogramSnapshot:
    """Build the histogram of these latencies."""
    histogram = Histogram()
    for latency_us in latencies_us:
        histogram.record(latency_us)
    return histogram.build_latency()


@given(st.lists(st.integers(0, HIGHEST_US), min_size=1, max_size=50))
def test_the_bars_hold_every_latency_once(latencies_us: list[int]) -> None:
    """They sum to the total, join without a gap, reach from the minimum to the maximum, and are few."""
    bars = build_bars(build_latency(latencies_us))
    assert sum(bar.count for bar in bars) == len(latencies_us)
    assert [bar.high_us for bar in bars[:-1]] == [bar.low_us for bar in bars[1:]]
    assert (bars[0].low_us, bars[-1].high_us) == (min(latencies_us), max(latencies_us))
    assert len(bars) <= MOST_BARS


@given(st.lists(st.integers(0, 2047), min_size=1, max_size=50))
def test_each_latency_is_in_its_bar(latencies_us: list[int]) -> None:
    """Where buckets are one microsecond wide, the counts of the bars are exact."""
    bars = build_bars(build_latency(latencies_us))
    for bar in bars[:-1]:
        assert bar.count == sum(bar.low_us <= latency_us < bar.high_us for latency_us in latencies_us)


@pytest.mark.parametrize(
    ("low_us", "high_us"), [(500, 1000), (900, 70_000), (1_000_000, 1_012_000), (10, 10**9)]
)
def test_any_spread_is_shown_in_several_bars(low_us: int, high_us: int) -> None:
    """Latencies within a percent are resolved as well as latencies over eight decades."""
    ratio = high_us / low_us
    bars = build_bars(build_latency(round(low_us * ratio ** (i / 1000)) for i in range(1001)))
    assert 6 <= len(bars) <= MOST_BARS


@pytest.mark.parametrize(
    "latencies_us", [[2880, 4390, 4390, 4530, 4530], [3110, 3160, 3170, 3300, 5290], [200, 9_000_000]]
)
def test_a_few_latencies_have_a_few_bars(latencies_us: list[int]) -> None:
    """Many would be empty."""
    assert len(build_bars(build_latency(latencies_us))) <= 5


def test_a_straggler_does_not_press_the_rest_into_one_bar() -> None:
    """The middle 99 % keep their bars, the last bar reaches to the maximum."""
    body = [1000 + 2 * i for i in range(1000)]
    bars = build_bars(build_latency([*body, 10_000_000]))
    assert len(bars) >= 8
    assert bars[-1].high_us == 10_000_000


def test_equal_latencies_are_one_bar() -> None:
    """There is no spread to show."""
    (bar,) = build_bars(build_latency([1000] * 5))
    assert (bar.low_us, bar.high_us, bar.count) == (1000, 1000, 5)


def test_an_empty_histogram_has_no_bars(render: Callable[..., list[str]]) -> None:
    """Nothing is drawn if nothing was answered."""
    assert build_bars(HistogramSnapshot()) == []
    assert "".join(render(build_histogram(HistogramSnapshot()))).strip() == ""


def test_each_bar_has_bounds_count_and_share(render: Callable[..., list[str]]) -> None:
    """The longest bar is full, and a count too small for its length is visible all the same."""
    lines = render(build_histogram(build_latency([1000] * 99_999 + [9000])))
    full = "█" * BAR_COLUMNS
    assert [" ".join(line.split()) for line in lines] == [
        f"1.000 ms to 1.001 ms {full} 99,999 > 99.99 %",
        "1.001 ms to 9.000 ms ▏ 1 < 0.01 %",
    ]


def test_close_bounds_are_told_apart(render: Callable[..., list[str]]) -> None:
    """Around one second, three digits would name every bound alike."""
    lines = render(build_histogram(build_latency(range(1_000_000, 1_009_000, 10))))
    bounds = [line.split()[0] for line in lines]
    assert len(set(bounds)) == len(bounds) > 3
