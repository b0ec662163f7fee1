"""Lays numbers out side by side and aligned where there is room, otherwise one after the other.

At any width from `FEWEST_COLUMNS` on, no number is cut and none is separated from its unit. The
state of a run, its progress and its rates are drawn here as well.
"""

from collections.abc import Iterable, Mapping, Sequence

from rich.console import ConsoleOptions, JustifyMethod, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from oku_cli.terminal.console import ACCENT, BAD, CAUTION, GOOD, STRONG
from oku_core.accounting.run_state import RunState
from oku_core.summary.judgement import Judgement

FEWEST_COLUMNS = 40
_LEAST_CONTENT = 44
"""With fewer columns beside them, labels stand above their contents."""
_INDENT = 2
JUDGEMENT_STYLES: Mapping[Judgement, str] = {
    Judgement.GOOD: f"bold {GOOD}",
    Judgement.NEUTRAL: STRONG,
    Judgement.CAUTION: f"bold {CAUTION}",
    Judgement.BAD: BAD,
}
"""The style of each state of a run: good, in progress, or bad."""
_LEVELS = "▁▂▃▄▅▆"


def build_sides(left: RenderableType, right: Text) -> Table:
    """Put a text at the right end of a line; the left side has the rest of it, and is cut if it must be."""
    row = Table.grid(expand=True, padding=(0, 0, 0, 2))
    row.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    row.add_column(justify="right", no_wrap=True)
    row.add_row(left, right)
    return row


class Flow:
    """Shows phrases one after the other, as many to a line as fit.

    Args:
        phrases: texts that are broken only if they are wider than a line.
        gap: the number of blanks between two phrases of a line.
        indent: the number of blanks before each line but the first.
        between: fills the gap of a line; blanks by default.
    """

    def __init__(self, *phrases: Text | str, gap: int = 1, indent: int = 0, between: str = "") -> None:
        self._phrases = [phrase if isinstance(phrase, Text) else Text(phrase) for phrase in phrases]
        self._between = between or " " * gap
        self._gap = len(self._between)
        self._indent = indent

    def __rich_console__(self, _: object, options: ConsoleOptions) -> RenderResult:
        """Draw line by line."""
        line = Text()
        for number, phrase in enumerate(self._phrases):
            if number and line.cell_len + self._gap + phrase.cell_len > options.max_width:
                yield line
                line = Text(" " * self._indent)
            elif number:
                line.append(self._between)
            line.append_text(phrase)
        yield line

    def __rich_measure__(self, _: object, options: ConsoleOptions) -> Measurement:
        """Measure from the widest phrase to all phrases in one line."""
        widths = [phrase.cell_len for phrase in self._phrases]
        longest = sum(widths) + self._gap * max(0, len(widths) - 1)
        return Measurement(max(widths, default=0), longest).with_maximum(options.max_width)


class PairGrid:
    """Shows names with their values, from top to bottom and then to the right, in as many columns as fit.

    Args:
        pairs: pairs of name and value.
        columns: the most columns; where they do not fit, half as many are tried, and so on.
        justify: the alignment of the values.
    """

    def __init__(
        self, pairs: Iterable[tuple[str, Text]], columns: int, justify: JustifyMethod = "right"
    ) -> None:
        self._pairs = list(pairs)
        self._columns = columns
        self._justify = justify

    def __rich_console__(self, _: object, options: ConsoleOptions) -> RenderResult:
        """Draw a grid, or a flow for each pair if even one column is too wide."""
        columns = self._columns
        while columns > 1 and self._measure(columns) > options.max_width:
            columns //= 2
        if self._measure(columns) > options.max_width:
            for name, value in self._pairs:
                yield Flow(name, value, indent=_INDENT)
            return
        table = Table.grid(padding=(0, 1, 0, 0))
        for _number in range(columns):
            table.add_column(no_wrap=True)
            table.add_column(no_wrap=True, justify=self._justify)
        rows = -(-len(self._pairs) // columns)
        for row in range(rows):
            cells: list[Text] = []
            for number, (name, value) in enumerate(self._pairs[row::rows]):
                cells += (Text(f"   {name}" if number else name), value)
            table.add_row(*cells)
        yield table

    def _measure(self, columns: int) -> int:
        rows = -(-len(self._pairs) // columns)
        parts = [self._pairs[start : start + rows] for start in range(0, len(self._pairs), rows)]
        widths = (
            max(len(name) for name, _ in part) + 1 + max(value.cell_len for _, value in part)
            for part in parts
        )
        return sum(widths) + 4 * (len(parts) - 1)


class Labelled:
    """Shows contents with their labels beside them, or above them where there is little room.

    Args:
        rows: labels with their contents; one without a label belongs to the row before it.
        label_columns: the width of the labels.
        gap: the number of blanks after a label.
    """

    def __init__(
        self, rows: Iterable[tuple[Text | str, RenderableType]], label_columns: int, *, gap: int = 2
    ) -> None:
        self._rows = list(rows)
        self._label_columns = label_columns
        self._gap = gap

    def __bool__(self) -> bool:
        """Return whether there is anything to show."""
        return bool(self._rows)

    def __rich_console__(self, _: object, options: ConsoleOptions) -> RenderResult:
        """Draw a grid of two columns, or labels and contents below each other."""
        if options.max_width - self._label_columns - self._gap < _LEAST_CONTENT:
            for label, content in self._rows:
                if label:
                    yield label
                yield Padding(content, (0, 0, 0, _INDENT))
            return
        table = Table.grid(padding=(0, self._gap, 0, 0))
        table.add_column(width=self._label_columns, no_wrap=True)
        table.add_column()
        for label, content in self._rows:
            table.add_row(label, content)
        yield table


def build_state(state: RunState, judgement: Judgement, ok: str = "") -> Text:
    """Build the state of a run in its colour, with the share that was ok, where that is known."""
    return Text(" · ".join(filter(None, (state.value, ok))), style=JUDGEMENT_STYLES[judgement])


class ProgressBar:
    """Draws all requests as a bar: solid for accounted ones, hatched for ended ones not yet accounted."""

    def __init__(self, accounted: int, done: int, requests: int) -> None:
        self._counts = accounted, done, max(1, requests)

    def __rich_console__(self, _: object, options: ConsoleOptions) -> RenderResult:
        """Round cells down, so that a full bar means a full account."""
        accounted, done, requests = self._counts
        width = options.max_width
        solid = min(width, width * accounted // requests)
        hatched = min(width, width * done // requests) - solid
        bar = Text("━" * solid, style=ACCENT, no_wrap=True, end="")
        bar.append("╍" * hatched, style=ACCENT)
        yield bar.append("─" * (width - solid - hatched), style="default")


class Sparkline:
    """Draws the rates of the last minute, or of as much of it as there is room for."""

    def __init__(self, rates_rps: Sequence[float | None]) -> None:
        self._rates_rps = rates_rps

    def __rich_console__(self, _: object, options: ConsoleOptions) -> RenderResult:
        """Draw the newest rates; the oldest are cut if there is no room."""
        yield Text(build_sparkline(self._rates_rps)[-options.max_width :], style=ACCENT, no_wrap=True)


def build_sparkline(rates_rps: Sequence[float | None]) -> str:
    """Draw one character for each rate, on a scale up to the second largest; a blank for an unknown rate.

    Delayed progress arrives at once: one second with all of it must not flatten the others.
    """
    known = sorted(rate for rate in rates_rps if rate is not None)
    top = next(rate for rate in (*known[-2:], 1.0) if rate)
    return "".join(
        " " if rate is None else _LEVELS[min(len(_LEVELS) - 1, int(rate / top * len(_LEVELS)))]
        for rate in rates_rps
    )
