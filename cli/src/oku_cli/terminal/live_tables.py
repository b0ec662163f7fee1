"""Fits thresholds and targets under the figures of the live area, as far as the terminal has lines.

The thresholds that are nearest to being lost come first, then the worst targets. User code has its requests
by name in the place of targets.
"""

from collections.abc import Iterable

from rich.console import (
    Console,  # noqa: TID251  # as a type only
    ConsoleOptions,
    Group,
    RenderableType,
    RenderResult,
)

from oku_cli.terminal.table_view import LONGEST_NAME, TableView
from oku_core.results.tick import Tick
from oku_core.tables.target_tables import MOST_ROWS, build_live_targets
from oku_core.tables.threshold_table import build_thresholds

MOST_THRESHOLDS = 12
"""Up to this many thresholds have a row each."""
_FEWEST_TARGETS = 2
"""The worst target, and one row for the others."""


class LiveTables:
    """Shows what must always be seen, and under it as much of both tables as there is room for.

    Args:
        above: what is always shown.
        tick: what the tables are about.
        other_lines: how many lines of the terminal must stay free, beside what is shown here.
    """

    def __init__(self, above: RenderableType, tick: Tick, other_lines: int) -> None:
        self._above = above
        self._tick = tick
        self._other_lines = other_lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Measure what is above, and draw the tables in the lines that it leaves."""
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
