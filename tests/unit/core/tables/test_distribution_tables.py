from hypothesis import given
from hypothesis import strategies as st
from tests.kit.histograms import make_latency
from tests.kit.runs.summaries import list_texts

from oku_core.accounting.histogram import HIGHEST_US, HistogramSnapshot
from oku_core.tables.distribution_tables import MOST_BARS, build_bars, build_distribution


@given(st.lists(st.integers(0, HIGHEST_US), min_size=1, max_size=50))
def test_the_bars_hold_every_latency_once(latencies_us: list[int]) -> None:
    """They sum to the total, join without a gap, reach from the minimum to the maximum, and are few."""
    bars = build_bars(make_latency(latencies_us))
    assert sum(bar.count for bar in bars) == len(latencies_us)
    assert [bar.high_us for bar in bars[:-1]] == [bar.low_us for bar in bars[1:]]
    assert (bars[0].low_us, bars[-1].high_us) == (min(latencies_us), max(latencies_us))
    assert len(bars) <= MOST_BARS


@given(st.lists(st.integers(0, 2047), min_size=1, max_size=50))
def test_each_latency_is_in_its_bar(latencies_us: list[int]) -> None:
    """Where buckets are one microsecond wide, the counts of the bars are exact."""
    bars = build_bars(make_latency(latencies_us))
    for bar in bars[:-1]:
        assert bar.count == sum(bar.low_us <= latency_us < bar.high_us for latency_us in latencies_us)


def test_any_spread_is_shown_in_a_few_bars() -> None:
    """Latencies within a percent are resolved as well as latencies over eight decades."""
    for low_us, high_us in [(500, 1000), (900, 70_000), (1_000_000, 1_012_000), (10, 10**9)]:
        ratio = high_us / low_us
        bars = build_bars(make_latency(round(low_us * ratio ** (i / 1000)) for i in range(1001)))
        assert 6 <= len(bars) <= MOST_BARS
    cases: list[list[int]] = [
        [2880, 4390, 4390, 4530, 4530],
        [3110, 3160, 3170, 3300, 5290],
        [200, 9_000_000],
    ]
    for latencies_us in cases:
        # A few latencies have a few bars. Many would be empty.
        assert len(build_bars(make_latency(latencies_us))) <= 5


def test_stragglers_and_equal_latencies_have_their_bars() -> None:
    """The middle 99 % keep their bars, the last bar reaches to the maximum."""
    body = [1000 + 2 * i for i in range(1000)]
    bars = build_bars(make_latency([*body, 10_000_000]))
    assert len(bars) >= 8
    assert bars[-1].high_us == 10_000_000
    # Equal latencies are one bar. There is no spread to show.
    (bar,) = build_bars(make_latency([1000] * 5))
    assert (bar.low_us, bar.high_us, bar.count) == (1000, 1000, 5)
    # An empty histogram has no bars. Nothing is drawn if nothing was answered.
    assert build_bars(HistogramSnapshot()) == []
    assert build_distribution(HistogramSnapshot()).rows == []
    # Each bar has bounds count and share. The longest bar is full; no part of the whole is all of it.
    table = build_distribution(make_latency([1000] * 99_999 + [9000]))
    assert list_texts(table)[1:] == [
        ["1.000 ms to 1.001 ms", "99,999", "> 99.99 %"],
        ["1.001 ms to 9.000 ms", "1", "< 0.01 %"],
    ]
    assert [row.cells[1].parts[0].share for row in table.rows] == [1.0, 1 / 99_999]
    # Close bounds are told apart. Around one second, three digits would name every bound alike.
    table = build_distribution(make_latency(range(1_000_000, 1_009_000, 10)))
    bounds = [row.cells[0].text.split()[0] for row in table.rows]
    assert len(set(bounds)) == len(bounds) > 3
