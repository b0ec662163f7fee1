"""Shows ticks in an area at the foot of a terminal, and log lines above it.

Taking in a tick only replaces a reference. A thread draws twice a second, so that a terminal that does not
take its output delays nothing else. In the end the area disappears and the lines above it stay. A frame is
drawn from the newest tick of a run and its trend.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import (
    Console,  # noqa: TID251  # as a type only
    ConsoleOptions,
    Group,
    RenderableType,
    RenderResult,
)
from rich.constrain import Constrain
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

from oku_cli.live.live_figures import (
    build_figure_grid,
    describe_total,
    list_causes,
    list_failures,
    list_live_times,
    list_plan,
)
from oku_cli.live.plain import PlainView, View
from oku_cli.live.trend import Trend, TrendTracker, has_rate, measure_progress
from oku_cli.terminal.console import BAD, CAUTION, MOST_COLUMNS, STRONG, Terminal
from oku_cli.terminal.layout import Flow, Labelled, ProgressBar, Sparkline, build_sides, build_state
from oku_cli.terminal.table_view import LONGEST_NAME, TableView
from oku_core.accounting.outcome import OUTCOMES, Outcome
from oku_core.process.clock import Clock
from oku_core.summary.judgement import judge_tick
from oku_core.summary.tick import Tick
from oku_core.tables.formatting import (
    format_count,
    format_elapsed,
    format_ok,
    format_outcome,
    format_progress,
)
from oku_core.tables.part_tables import MOST_ROWS, build_live_targets
from oku_core.tables.threshold_tables import build_thresholds

REDRAWS_PER_S = 2
"""Ticks come once a second; drawing more often would only take time from local workers."""
SILENT_AFTER_S = 5.0
"""Without a tick for this long, the frame marks its numbers as old."""
TITLE_SEPARATOR = " · "
"""Between the parts of a title: the run, its target, its load."""
_LABEL_COLUMNS = len("last minute")
_OTHER_LINES = 2
"""The blank line above the frame, and the cursor's line under it."""
MOST_THRESHOLDS = 12
"""Up to this many thresholds have a row each."""
_FEWEST_TARGETS = 2
"""The worst target, and one row for the others."""


class LiveView(View):
    """Shows the newest tick in place.

    Args:
        console: the terminal to draw on.
        clock: monotonic time in seconds, to notice that no ticks come.
        redraws_itself: whether a thread redraws twice a second; otherwise only `redraw` does.
    """

    def __init__(
        self,
        console: Terminal,
        clock: Clock = time.monotonic,
        *,
        redraws_itself: bool = True,
    ) -> None:
        self._console = console
        self._clock = clock
        self._trend = TrendTracker()
        self._title = ""
        self._seen: SeenTick | None = None
        self._live = Live(
            console=console,
            get_renderable=self._build,
            auto_refresh=redraws_itself,
            refresh_per_second=REDRAWS_PER_S,
            redirect_stdout=False,  # JSON may go there
            transient=True,
        )

    def start(self, title: str) -> None:
        """Begin to draw."""
        self._title = title
        self._live.start(refresh=True)

    def redraw(self) -> None:
        """Draw the newest tick now."""
        self._live.refresh()

    def show_tick(self, tick: Tick) -> None:
        """Draw this tick from now on."""
        self._seen = SeenTick(tick=tick, trend=self._trend.add(tick), seen_at_s=self._clock())

    def log(self, line: str) -> None:
        """Write a line above the live display."""
        self._console.print_line(line)

    def print_line(self, line: str) -> None:
        """Write a line above the live display."""
        self.log(line)

    def warn(self, line: str) -> None:
        """Write a line above the live display."""
        self.log(line)

    def stop(self) -> None:
        """Remove the live display."""
        self._live.stop()

    def _build(self) -> RenderableType:
        return build_frame(self._title, self._seen, self._clock())


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTick:
    """Holds a tick with its trend and the time of its arrival by the clock of the view."""

    tick: Tick
    trend: Trend
    seen_at_s: float


def build_view(console: Terminal, *, quiet: bool = False) -> View:
    """Build the view that suits the console: live on a terminal that can move its cursor, otherwise plain."""
    if quiet:
        return View()
    return LiveView(console) if console.is_interactive else PlainView(console)


def build_frame(title: str, seen: SeenTick | None, now_s: float) -> RenderableType:
    """Build the live area; `seen` is None before the first tick, and `now_s` a time of the same clock."""
    if seen is None:
        body: list[RenderableType] = [_build_head(title, Text("starting", style=CAUTION))]
    else:
        tick, trend = seen.tick, seen.trend
        columns = len("response time") if has_rate(tick) else _LABEL_COLUMNS
        body = [
            _build_head(title, _build_state(tick, now_s - seen.seen_at_s)),
            "",
            _build_bar(tick),
            _build_account(tick),
            *(Text(notice, style=CAUTION) for notice in tick.notices),
            "",
            *_build_plan(tick, columns),
            build_figure_grid(tick, trend, columns),
            Labelled([("last minute", Sparkline(trend.rates_rps))], columns),
            "",
            *_build_distributions(tick, trend, columns),
            Labelled(_list_counts(tick), columns),
        ]
        if tick.targets or tick.inner_requests or tick.thresholds:
            body = [LiveTables(Group(*body), tick, _OTHER_LINES)]
    return Constrain(Padding(Group(*body), (1, 1, 0, 1)), MOST_COLUMNS)


def _build_head(title: str, state: Text) -> RenderableType:
    """Build the head: the first part of the title beside the state, the rest below."""
    first, _, rest = title.partition(TITLE_SEPARATOR)
    head = build_sides(Text(first, style=STRONG), state)
    return Group(head, Flow(*rest.split(TITLE_SEPARATOR), between=TITLE_SEPARATOR)) if rest else head


def _build_state(tick: Tick, silent_s: float) -> Text:
    ok, ended = tick.sample.outcomes_so_far[0], sum(tick.sample.outcomes_so_far)
    state = build_state(tick.state, judge_tick(tick), format_ok(ok, ended))
    if silent_s >= SILENT_AFTER_S:
        state.append(f", no news for {format_elapsed(silent_s)}", style=BAD)
    return state


def _build_bar(tick: Tick) -> RenderableType:
    accounted, done, whole = measure_progress(tick)
    percent = format_progress(done, whole).rjust(len("100.0 %"))
    return build_sides(ProgressBar(accounted, done, whole), Text(percent, style=STRONG))


def _build_account(tick: Tick) -> Flow:
    """Show how many requests have ended, as the percentage does, and how many are accounted."""
    sample = tick.sample
    done = Text(format_count(sample.done), style=STRONG)
    return Flow(
        done,
        *([f"of {total}"] if (total := describe_total(tick)) else []),
        "ended,",
        format_count(sample.accounted),
        "accounted",
    )


def _build_plan(tick: Tick, columns: int) -> Iterator[RenderableType]:
    if rows := Labelled(list_plan(tick), columns):
        yield rows


def _build_distributions(tick: Tick, trend: Trend, columns: int) -> Iterator[RenderableType]:
    if rows := Labelled(list_live_times(tick, trend), columns):
        yield from (rows, "")


def _list_counts(tick: Tick) -> Iterator[tuple[str, RenderableType]]:
    sample = tick.sample
    yield "outcomes", Flow(*_list_outcomes(sample.outcomes_so_far), gap=3)
    yield from list_causes(tick)
    yield from list_failures(tick)
    if sample.resent_at_most:
        yield "resent", Text(f"at most {format_count(sample.resent_at_most)}", style=CAUTION)


def _list_outcomes(counts: Sequence[int]) -> Iterator[Text]:
    for outcome, count in zip(OUTCOMES, counts, strict=True):
        if outcome is Outcome.OK:
            yield Text.assemble(f"{outcome} ", (format_count(count), STRONG))
        elif count:
            yield Text(f"{format_outcome(outcome)} {format_count(count)}", style=BAD)


class LiveTables:
    """Shows the fixed part, and below it as much of both tables as fits.

    Args:
        above: the fixed part, which is always shown.
        tick: what the tables are about.
        other_lines: how many further lines of the terminal must stay free.
    """

    def __init__(self, above: RenderableType, tick: Tick, other_lines: int) -> None:
        self._above = above
        self._tick = tick
        self._other_lines = other_lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the tables in the lines below the head."""
        options = options.update(height=None)

        def count_lines(renderable: RenderableType) -> int:
            return len(console.render_lines(renderable, options, pad=False))

        def fit(tables: Iterable[Group]) -> Group:
            return next((table for table in tables if count_lines(table) <= room), Group())

        room = options.size.height - self._other_lines - count_lines(self._above)
        thresholds = fit(self._iter_thresholds())
        room -= count_lines(thresholds)
        yield Group(self._above, fit(self._iter_targets()), thresholds)

    def _iter_thresholds(self) -> Iterable[Group]:
        """The table of thresholds, each time with one row less."""
        given = self._tick.thresholds
        for most in range(min(MOST_THRESHOLDS, len(given)), 0, -1):
            table = build_thresholds(given, most=most)
            left = table.left_out
            more = [f"and {left} more thresholds, further from being lost"] if left else []
            yield Group("", TableView(table, has_heads=False), *more)

    def _iter_targets(self) -> Iterable[Group]:
        """The table of targets, each time with one row less."""
        targets = len(self._tick.targets or self._tick.inner_requests)
        fewest = min(_FEWEST_TARGETS, targets)
        for most in range(min(MOST_ROWS, targets), max(0, fewest - 1), -1):
            table = build_live_targets(self._tick, most=most)
            yield Group("", TableView(table, longest_name=LONGEST_NAME))
