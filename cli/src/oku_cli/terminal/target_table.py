"""Shows targets in a table that stays short however many there are: the worst, and the sum of the rest."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import ConsoleOptions, JustifyMethod, RenderResult
from rich.text import Text

from oku_cli.terminal.layout import AlignedTable
from oku_cli.terminal.palette import BAD, STRONG
from oku_core.tables.formatting import format_count, format_latency, format_rate, format_share

MOST_ROWS = 12
"""Up to this many targets have a row each."""
_LEAST_NAME = 10
_LONGEST_NAME = 26


class TargetRow(NamedTuple):
    """The figures of a target.

    Attributes:
        name: its name.
        requests: how many of its requests are accounted.
        ok: how many of them are ok.
        rate_rps: how many were sent and have ended per second.
        times_ms: quantiles of its times, one for each column.
        p99_ms: the 99th percentile of its latencies, which says which of two targets is slower.
    """

    name: str
    requests: int
    ok: int
    rate_rps: float
    times_ms: tuple[float | None, ...] = ()
    p99_ms: float | None = None

    @property
    def badness(self) -> tuple[float, float]:
        """Which target is the worse one: the share that was not ok, then the latency."""
        failed = (self.requests - self.ok) / self.requests if self.requests else 0.0
        return failed, self.p99_ms or 0.0


class TargetTable:
    """Shows a row for each target in the given order; of too many, the worst ones, and one for the rest.

    Args:
        rows: of the targets.
        heads: of the columns of times.
        most: how many rows there may be.
        what: what a row is of.
    """

    def __init__(
        self, rows: Sequence[TargetRow], heads: Sequence[str], *, most: int = MOST_ROWS, what: str = "target"
    ) -> None:
        self._what = what
        self._rows = rows
        self._heads = heads
        self._most = most

    def __rich_console__(self, _: object, __: ConsoleOptions) -> RenderResult:
        """Draw the table."""
        justify: list[JustifyMethod] = ["left"]
        justify += ["right"] * (3 + len(self._heads))
        table = AlignedTable(justify, gap=2, fold_to=_LEAST_NAME)
        table.add_row(self._what, "requests", "ok", "rate", *self._heads)
        shown, others = choose_rows(self._rows, self._most)
        for row in shown:
            _add(table, Text(shorten_name(row.name), style=STRONG), row)
        if others:
            total = TargetRow(
                f"and {format_count(len(others))} more",
                sum(row.requests for row in others),
                sum(row.ok for row in others),
                sum(row.rate_rps for row in others),
            )
            _add(table, Text(total.name), total)
        yield table


def choose_rows(rows: Sequence[TargetRow], most: int) -> tuple[Sequence[TargetRow], Sequence[TargetRow]]:
    """All rows in their order, and none; or the worst ones, the worst first, and those that are left out."""
    if len(rows) <= most:
        return rows, ()
    ranked = sorted(rows, key=lambda row: row.badness, reverse=True)
    return ranked[: most - 1], ranked[most - 1 :]


def _add(table: AlignedTable, name: Text, row: TargetRow) -> None:
    ok = Text(format_share(row.ok, row.requests) if row.requests else "-")
    if row.ok < row.requests:
        ok.stylize(BAD)
    times = (format_latency(time_ms) for time_ms in row.times_ms)
    table.add_row(name, format_count(row.requests), ok, format_rate(row.rate_rps), *times)


def shorten_name(name: str) -> str:
    """A name that leaves the figures their columns; those of targets differ at their ends as often as not."""
    if len(name) <= _LONGEST_NAME:
        return name
    half = (_LONGEST_NAME - 1) // 2
    return f"{name[:half]}…{name[-half:]}"
