"""Shows the distributions of a run, and draws what a user of the target waits for as a dozen bars or so.

The bars have round bounds and equal widths on a logarithmic scale, or on a linear one when all latencies are
close together. They cover the middle 99 %; the first and the last reach to the minimum and the maximum, so
that one straggler does not squeeze the rest into a single bar.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.bar import Bar
from rich.console import ConsoleOptions, RenderableType, RenderResult
from rich.table import Table as Grid
from rich.text import Text

from oku_cli.terminal.layout import Flow, PairGrid
from oku_cli.terminal.palette import ACCENT, STRONG
from oku_cli.terminal.table_view import TableView
from oku_core.accounting.histogram import Histogram, HistogramSnapshot, bucket_bounds_us, bucket_index
from oku_core.results.latency_summary import QuantileIntervals
from oku_core.results.summary import Summary
from oku_core.spec.load import WARM_UP
from oku_core.tables.formatting import (
    choose_digits,
    format_count,
    format_interval,
    format_latency,
    format_share,
)
from oku_core.tables.table import Column, Quantity, Role, Table, Value, build_table
from oku_core.tables.time_tables import LATENCY, TIMES, build_steps, build_times

MOST_BARS = 14
"""More bars are no easier to read, and the end screen has to fit on one screen."""
_ENOUGH_BARS = 5
"""A few requests in many bars would leave most of them empty."""
BAR_COLUMNS = 22
"""Width of the longest bar where there is room for it."""
_FEWEST_BAR_COLUMNS = 4
_BODY = 0.005, 0.995
_DECADES = 10
_LADDERS = (
    (1, 1.12, 1.25, 1.4, 1.6, 1.8, 2, 2.24, 2.5, 2.8, 3.15, 3.55, 4, 4.5, 5, 5.6, 6.3, 7.1, 8, 9),
    (1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8),
    (1, 1.6, 2.5, 4, 6.3),
    (1, 2, 5),
    (1, 3),
    (1,),
)
"""Round numbers of a decade in even ratios, finest first: R20, R10 and R5 of ISO 3, then coarser ones."""
_NUMBER_COLUMNS = (
    Column(key="bounds", head="", role=Role.TEXT),
    Column(key="requests", head="requests", quantity=Quantity.COUNT),
    Column(key="share", head="share", quantity=Quantity.SHARE),
)
_CLOSE = 2
"""Latencies within this factor of each other are shown on a linear scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramBar:
    """Counts the latencies between two bounds in µs; the last bar includes its upper bound."""

    low_us: int
    high_us: int
    count: int


def build_bars(latency: HistogramSnapshot) -> list[HistogramBar]:
    """Build at most `MOST_BARS` bars, ascending, that hold every latency; none at the ends is empty.

    A bucket that contains a bound counts as a whole below it: an error of 1 part in 1024 of the bound, as
    everywhere in this histogram.
    """
    if not latency.total:
        return []
    edges = build_edges(latency)
    counts = [0] * (len(edges) + 1)
    for index, count in zip(latency.buckets[0::2], latency.buckets[1::2], strict=True):
        counts[bisect_right(edges, max(bucket_bounds_us(index)[0], latency.min_us))] += count
    filled = [position for position, count in enumerate(counts) if count]
    counts = counts[filled[0] : filled[-1] + 1]
    bounds = [latency.min_us, *edges[filled[0] : filled[-1]], latency.max_us]
    return [
        HistogramBar(low_us=low, high_us=high, count=count)
        for (low, high), count in zip(pairwise(bounds), counts, strict=True)
    ]


def build_edges(latency: HistogramSnapshot) -> list[int]:
    """Choose the round bounds in µs between the bars: ascending, at least one, as many as fit."""
    histogram = Histogram()
    histogram.add(latency)
    low, high = (max(1, histogram.quantile_us(quantile)) for quantile in _BODY)
    most_bars = min(MOST_BARS, max(_ENOUGH_BARS, latency.total))
    edges: list[int] = []
    for edges in _propose_edges(low, high):
        if len(edges) < most_bars:
            break
    return edges


class LatencyBars:
    """Draws bars with bounds, counts and shares; where there is little room, the numbers without the bars."""

    def __init__(self, latency: HistogramSnapshot) -> None:
        bars = build_bars(latency)
        bounds_ms = [*(bar.low_us / 1000 for bar in bars), *(bar.high_us / 1000 for bar in bars[-1:])]
        digits = choose_digits(bounds_ms)
        labels = [format_latency(bound_ms, digits) for bound_ms in bounds_ms]
        self._counts = [bar.count for bar in bars]
        self._bounds = list(pairwise(labels))
        self._numbers = [(format_count(bar.count), format_share(bar.count, latency.total)) for bar in bars]

    def __rich_console__(self, _: object, options: ConsoleOptions) -> RenderResult:
        """Draw the bars as long as there is room for."""
        columns_of_text = (*zip(*self._bounds, strict=True), *zip(*self._numbers, strict=True))
        widths = [max(map(len, column)) for column in columns_of_text]
        columns = min(BAR_COLUMNS, options.max_width - sum(widths) - len("to") - 5)
        if columns < _FEWEST_BAR_COLUMNS:
            yield self._build_numbers()
            return
        top = max(self._counts)
        table = Grid.grid(padding=(0, 1))
        for justify in ("right", "left", "right", "left", "right", "right"):
            table.add_column(justify=justify, no_wrap=True)
        for count, (low, high), numbers in zip(self._counts, self._bounds, self._numbers, strict=True):
            shown = max(count, top / columns / 8) if count else 0  # a small count stays visible
            table.add_row(low, "to", high, Bar(top, 0, shown, width=columns, color=ACCENT), *numbers)
        yield table

    def _build_numbers(self) -> TableView:
        low_columns, high_columns = (max(map(len, column)) for column in zip(*self._bounds, strict=True))
        rows: list[list[Value]] = [
            [f"{low.rjust(low_columns)} to {high.rjust(high_columns)}", count, count / sum(self._counts)]
            for (low, high), count in zip(self._bounds, self._counts, strict=True)
        ]
        return TableView(build_table("bars", "", _NUMBER_COLUMNS, rows), has_heads=False)


def build_histogram(latency: HistogramSnapshot) -> RenderableType:
    """Draw a histogram with bounds, counts and shares; draw nothing if it is empty."""
    return LatencyBars(latency) if latency.total else ""


def _propose_edges(low: int, high: int) -> Iterator[list[int]]:
    """Yield lists of bounds, finest first, from the last one at or below `low` to the first above `high`."""
    if high < low * _CLOSE:
        first, last = bucket_bounds_us(bucket_index(low))
        for step in _climb((1, 2, 5)):
            if step >= 2 * (last - first):  # a finer step would show the buckets instead of the latencies
                yield list(range(low // step * step, high + step + 1, step))
    for ladder in _LADDERS:
        yield _cut(_climb(ladder), low, high)


def _climb(ladder: Sequence[float]) -> list[int]:
    return sorted({round(step * 10**decade) for decade in range(_DECADES) for step in ladder})


def _cut(rungs: Sequence[int], low: int, high: int) -> list[int]:
    return list(rungs[bisect_right(rungs, low) - 1 : bisect_right(rungs, high) + 1])


RESPONSE_TIME = TIMES[1].label
"""The label of response times, the longest one."""
_FEW_CONNECTIONS = 0.01
_CONNECTING, _ANSWERING = ("connect", "TLS"), ("first byte", "transfer")


def list_distributions(summary: Summary) -> Iterator[tuple[str, RenderableType]]:
    """The figures of each distribution with its label, and the bars of what a user of the target waits for.

    With a rate these are response times, as they count from when requests were due.
    """
    table = build_times(summary)
    if LATENCY.pick(summary).max is None:
        has_warm_up = any(phase.name == WARM_UP for phase in summary.phases)
        yield LATENCY.label, f"nothing was answered{' after the warm-up' if has_warm_up else ''}"
    yield from _list_figures(table)
    shown = next((time for time in reversed(TIMES[:2]) if time.pick(summary).max is not None), LATENCY)
    if intervals_ms := shown.pick_intervals(summary):
        yield "intervals", _build_intervals(intervals_ms)
    if steps := list(_list_steps(summary)):
        yield "timing", Flow(*steps, gap=3)
    if shown.pick(summary).max is not None:
        yield "", ""
        yield shown.label if shown is not LATENCY else "", build_histogram(shown.decode(summary))


def _list_figures(table: Table) -> Iterator[tuple[str, RenderableType]]:
    """A grid for each column of the table of figures, from top to bottom and then to the right."""
    texts = [[cell.text for cell in row.cells] for row in table.rows]
    width = max((len(text) for row in texts for text in row[1:]), default=0)
    for place, column in enumerate(table.columns[1:], 1):
        pairs = ((row[0], Text(row[place].rjust(width), style=STRONG)) for row in texts)
        yield column.head, PairGrid(pairs, 4)


def _list_steps(summary: Summary) -> Iterator[Text]:
    """The median and the 99th percentile of each step of requests that tells more than the latency does.

    Making connections does where one was made for more than a hundredth of the requests, or with TLS; first
    byte and transfer do where more than a hundredth of the answers came in several pieces.
    """
    timing, table = summary.timing_ms, build_steps(summary)
    has_connections = timing.tls.requests or timing.connect.requests > _FEW_CONNECTIONS * summary.accounted
    notable = [*(_CONNECTING if has_connections else []), *(_ANSWERING if timing.transfer.p99 else [])]
    for row in table.rows:
        texts = {column.key: cell.text for column, cell in zip(table.columns, row.cells, strict=True)}
        if (name := texts["step"]) in notable:
            phrase = Text.assemble(f"{name} p50 ", (texts["p50"], STRONG), " p99 ", (texts["p99"], STRONG))
            yield phrase.append(f" ({texts['requests']})") if name in _CONNECTING else phrase


def _build_intervals(intervals_ms: QuantileIntervals) -> Flow:
    """Show between which values the median and the 99th percentile lie; the rest is in the JSON."""
    shown = (("p50", intervals_ms.p50), ("p99", intervals_ms.p99))
    phrases = [f"{name} {format_interval(interval)}" for name, interval in shown if interval]
    return Flow(*phrases, "(95 %)", gap=3)
