"""Shows the distributions of a run: its latency, and with a rate its response time and lateness as well."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from oku_cli.terminal.layout import Flow, PairGrid
from oku_cli.terminal.palette import STRONG
from oku_cli.views.histogram_view import build_histogram
from oku_core.results.summary import Summary
from oku_core.results.timing_summary import QuantileIntervals
from oku_core.spec.load import WARM_UP
from oku_core.tables.formatting import format_interval
from oku_core.tables.table import Table
from oku_core.tables.time_tables import LATENCY, TIMES, build_steps, build_times

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
