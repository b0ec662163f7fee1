"""The newest tick of a run and its trend go in, one picture of the live area comes out."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.columns import Columns
from rich.console import ConsoleOptions, Group, RenderableType, RenderResult
from rich.constrain import Constrain
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from oku_cli.figures import (
    format_count,
    format_elapsed,
    format_latency,
    format_left,
    format_outcome,
    format_progress,
    format_rate,
)
from oku_cli.pace import Trend
from oku_cli.palette import ACCENT, BAD, CAUTION, GOOD, MOST_COLUMNS, STATE_STYLES, STRONG
from oku_core.outcome import OUTCOMES, Outcome
from oku_core.progress import Tick

SILENT_AFTER_S = 5.0
"""Without a tick for so long, the frame says that its numbers are old."""
_LABEL_COLUMNS = len("last minute")
_LEVELS = "▁▂▃▄▅▆"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A tick, what it adds up to, and when it came by the clock of the view."""

    tick: Tick
    trend: Trend
    seen_at_s: float


class ProgressBar:
    """A bar over all requests: solid what is accounted, hatched what has ended and is not yet accounted."""

    def __init__(self, accounted: int, ended: int, requests: int) -> None:
        self._counts = accounted, ended, max(1, requests)

    def __rich_console__(self, _: object, options: ConsoleOptions) -> RenderResult:
        """Cells are rounded down: a full bar is a full account."""
        accounted, ended, requests = self._counts
        width = options.max_width
        solid = min(width, width * accounted // requests)
        hatched = min(width, width * (accounted + ended) // requests) - solid
        bar = Text("━" * solid, style=GOOD, no_wrap=True, end="")
        bar.append("╍" * hatched, style=GOOD)
        yield bar.append("─" * (width - solid - hatched), style="default")


def build_frame(title: str, moment: Moment | None, now_s: float) -> RenderableType:
    """The live area.

    Args:
        title: of the run.
        moment: the newest; None before the first.
        now_s: time by the clock that the moment was seen by.
    """
    if moment is None:
        body: list[RenderableType] = [_build_head(title, Text("starting", style=CAUTION))]
    else:
        tick, trend = moment.tick, moment.trend
        body = [
            _build_head(title, _build_state(tick, now_s - moment.seen_at_s)),
            "",
            _build_bar(tick),
            _build_account(tick),
            *(Text(notice, style=CAUTION) for notice in tick.notices),
            "",
            _build_numbers(tick, trend),
            _build_rows(
                [("last minute", Text(build_sparkline(trend.rates_rps), style=ACCENT, no_wrap=True))]
            ),
            "",
            _build_rows(_list_counts(tick)),
        ]
    return Constrain(Padding(Group(*body), (1, 1, 0, 1)), MOST_COLUMNS)


def build_sparkline(rates_rps: Sequence[float | None]) -> str:
    """One character for each rate, from nothing to the second largest; a blank for what is not known.

    What came late comes at once: one second with all of it must not flatten the others.
    """
    known = sorted(rate for rate in rates_rps if rate is not None)
    top = next(rate for rate in (*known[-2:], 1.0) if rate)
    return "".join(
        " " if rate is None else _LEVELS[min(len(_LEVELS) - 1, int(rate / top * len(_LEVELS)))]
        for rate in rates_rps
    )


def _build_head(title: str, state: Text) -> Table:
    head = Table.grid(expand=True, padding=(0, 0, 0, 2))
    head.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    head.add_column(justify="right", no_wrap=True)
    head.add_row(Text(title, style=STRONG), state)
    return head


def _build_state(tick: Tick, silent_s: float) -> Text:
    state = Text(str(tick.state), style=STATE_STYLES[tick.state])
    if silent_s >= SILENT_AFTER_S:
        state.append(f", no news for {format_elapsed(silent_s)}", style=BAD)
    return state


def _build_bar(tick: Tick) -> Table:
    row = Table.grid(expand=True, padding=(0, 0, 0, 2))
    row.add_column(ratio=1)
    row.add_column(no_wrap=True)
    percent = format_progress(tick.accounted, tick.requests).rjust(len("100.0 %"))  # the bar keeps its length
    row.add_row(ProgressBar(tick.accounted, tick.ended, tick.requests), Text(percent, style=STRONG))
    return row


def _build_account(tick: Tick) -> Text:
    account = Text.assemble(
        (format_count(tick.accounted), STRONG), f" of {format_count(tick.requests)} accounted", no_wrap=True
    )
    if tick.ended:
        account.append(f", {format_count(tick.ended)} more have ended")
    return account


def _build_numbers(tick: Tick, trend: Trend) -> Table:
    """What changes every second, in two columns that keep their places."""
    pairs = (
        ("rate", format_rate(tick.rate_rps), "p50", format_latency(tick.p50_ms)),
        ("average", format_rate(trend.average_rps), "p99", format_latency(tick.p99_ms)),
        ("in flight", format_count(tick.in_flight), "elapsed", format_elapsed(tick.active_s)),
        ("workers", format_count(tick.workers), "left", format_left(trend.left_s)),
    )
    table = Table.grid(padding=(0, 2, 0, 0))
    for width in (_LABEL_COLUMNS, 22, 9, 18):
        table.add_column(width=width, no_wrap=True)
    for left, left_value, right, right_value in pairs:
        table.add_row(left, Text(left_value, style=STRONG), right, Text(right_value, style=STRONG))
    return table


def _build_rows(rows: Iterable[tuple[str, RenderableType]]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=_LABEL_COLUMNS, no_wrap=True)
    table.add_column()
    for label, value in rows:
        table.add_row(label, value)
    return table


def _list_counts(tick: Tick) -> Iterator[tuple[str, RenderableType]]:
    yield "outcomes", Columns(_list_outcomes(tick.total_outcomes), padding=(0, 3))
    if tick.resent_at_most:
        yield "resent", Text(f"at most {format_count(tick.resent_at_most)}", style=CAUTION)


def _list_outcomes(counts: Sequence[int]) -> Iterator[Text]:
    for outcome, count in zip(OUTCOMES, counts, strict=True):
        if outcome is Outcome.OK:
            yield Text.assemble(f"{outcome} ", (format_count(count), STRONG))
        elif count:
            yield Text(f"{format_outcome(outcome)} {format_count(count)}", style=BAD)
