"""Draws a table on a terminal of any width.

Where its columns do not fit, names and texts are folded and spare columns left out; then columns continue
below, groups of them first, and at last each row is a flow of its cells. No number is ever cut.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from rich.bar import Bar
from rich.console import ConsoleOptions, JustifyMethod, RenderableType, RenderResult
from rich.table import Table as Grid
from rich.text import Text

from oku_cli.terminal.console import ACCENT, BAD, CAUTION, GOOD, STRONG
from oku_cli.terminal.layout import Flow
from oku_cli.terminal.printable import make_printable
from oku_core.summary.judgement import Judgement
from oku_core.tables.table import BarPart, Column, Rank, Role, Row, Table

CELL_STYLES = {Judgement.GOOD: GOOD, Judgement.NEUTRAL: "", Judgement.CAUTION: CAUTION, Judgement.BAD: BAD}
_WANTED = {Role.NAME: 18, Role.TEXT: 24, Role.BAR: 2}
"""Columns are left out for so much of a name, a text or a bar."""
_LEAST = {Role.NAME: 10, Role.TEXT: 24, Role.BAR: 2}
"""Names and texts are folded to so much, and bars shortened."""
LONGEST_NAME = 26
"""Of longer names of targets and requests the middle is left out: they differ at their ends."""
_GAP, _INDENT = 2, 2


class _CellBar:
    """Draws the parts of a cell as one bar; one that stands for a little is visible all the same."""

    def __init__(self, parts: Sequence[BarPart]) -> None:
        self._share = sum(part.share for part in parts)

    def __rich_console__(self, _: object, options: ConsoleOptions) -> RenderResult:
        """Draw it in eighths of a column."""
        least = 1 / (8 * options.max_width)
        yield Bar(1, 0, max(self._share, least) if self._share else 0, color=ACCENT)


class _ShownColumn:
    """A column with its cells as they are drawn.

    Args:
        column: the column.
        head: its head; empty if heads are not shown.
        cells: one for each row.
        bar_columns: the width of the longest bar.
    """

    def __init__(self, column: Column, head: str, cells: Sequence[Text | _CellBar], bar_columns: int) -> None:
        self.column = column
        self.head = Text(head)
        self.cells = cells
        widths = (cell.cell_len if isinstance(cell, Text) else bar_columns for cell in cells)
        self.width = max([self.head.cell_len, *widths])

    def fold(self, least: Mapping[Role, int]) -> int:
        """The width when the cells are folded to the least of their role."""
        return min(self.width, max(least.get(self.column.role, self.width), self.head.cell_len))


class TableView:
    """Shows a table, without its title and its note.

    Args:
        table: the table.
        has_heads: whether the heads of columns are shown.
        longest_name: of longer names the middle is left out; None if they are folded.
        bar_columns: the width of the longest bar where there is room for it; 0 leaves bars out.
    """

    def __init__(
        self,
        table: Table,
        *,
        has_heads: bool = True,
        longest_name: int | None = None,
        bar_columns: int = 0,
    ) -> None:
        self._has_heads = has_heads
        self._has_groups = len({column.group for column in table.columns if column.group}) > 1
        self._columns = [
            _ShownColumn(
                column,
                column.head if has_heads else "",
                [_build_cell(column, row, place, longest_name) for row in table.rows],
                bar_columns,
            )
            for place, column in enumerate(table.columns)
            if (column.role is not Role.BAR or bar_columns) and column.rank < Rank.DETAIL
        ]

    def __rich_console__(self, _: object, options: ConsoleOptions) -> RenderResult:
        """Draw the table, or its parts below each other."""
        for number, columns in enumerate(self._split(options.max_width)):
            if number:
                yield Text()
            yield from self._draw(columns, options.max_width)

    def _split(self, width: int) -> Iterator[list[_ShownColumn]]:
        """Choose the columns of each part of the table."""
        ranks = (Rank.SPARE, Rank.USEFUL)
        columns = self._leave_out(self._columns, ranks[:1], width)
        parts = [columns]
        if self._has_groups and self._measure(columns, _WANTED) > width:
            first, others = self._columns[0], self._columns[1:]
            parts = [
                [first, *(each for each in others if bool(each.column.group) is is_grouped)]
                for is_grouped in (False, True)
            ]
        for part in parts:
            yield from self._break(self._leave_out(part, ranks, width), width)

    def _break(self, columns: Sequence[_ShownColumn], width: int) -> Iterator[list[_ShownColumn]]:
        """Continue with the name of each row where the columns are too wide."""
        part = list(columns[:1])
        for each in columns[1:]:
            if len(part) > 1 and self._measure([*part, each], _LEAST) > width:
                yield part
                part = list(columns[:1])
            part.append(each)
        yield part

    def _leave_out(
        self, columns: Sequence[_ShownColumn], ranks: Sequence[Rank], width: int
    ) -> list[_ShownColumn]:
        """Leave columns of these ranks out until the rest fits, those with the same head at once."""
        columns = list(columns)
        for rank in ranks:
            heads = [each.column.head for each in reversed(columns) if each.column.rank is rank]
            for head in dict.fromkeys(heads):
                if self._measure(columns, _WANTED) <= width:
                    return columns
                columns = [
                    each for each in columns if each.column.rank is not rank or each.column.head != head
                ]
        return columns

    def _measure(self, columns: Sequence[_ShownColumn], least: Mapping[Role, int]) -> int:
        """The width of columns when names and texts are folded to the least."""
        return sum(self._list_widths(columns, least)) + _GAP * (len(columns) - 1)

    def _list_widths(self, columns: Sequence[_ShownColumn], least: Mapping[Role, int]) -> list[int]:
        """The width of each column; the last one of a group has room for the head of the group."""
        widths = [each.fold(least) for each in columns]
        for group, places in self._iter_groups(columns):
            span = sum(widths[place] + _GAP for place in places) - _GAP
            widths[places[-1]] += max(0, len(group) - span)
        return widths

    def _iter_groups(self, columns: Sequence[_ShownColumn]) -> Iterator[tuple[str, list[int]]]:
        """The groups of columns that have heads, with the places of their columns."""
        if self._has_groups:
            for group, places in groupby(range(len(columns)), lambda place: columns[place].column.group):
                if group:
                    yield group, list(places)

    def _draw(self, columns: Sequence[_ShownColumn], width: int) -> Iterator[RenderableType]:
        widths = self._list_widths(columns, _LEAST)
        left = width - sum(widths) - _GAP * (len(columns) - 1)
        if left < 0:
            yield from self._draw_flows(columns)
            return
        grid = Grid.grid(padding=(0, _GAP, 0, 0))
        for place, each in enumerate(columns):
            more = min(left, max(0, each.width - widths[place]))
            widths[place] += more
            left -= more
            is_number = each.column.role is Role.NUMBER
            justify: JustifyMethod = "right" if is_number else "left"
            grid.add_column(justify=justify, width=widths[place], no_wrap=is_number, overflow="fold")
        if groups := list(self._iter_groups(columns)):
            yield _build_group_heads(groups, widths)
        if self._has_heads:
            grid.add_row(*(each.head for each in columns))
        for cells in zip(*(each.cells for each in columns), strict=True):
            grid.add_row(*cells)
        yield grid

    def _draw_flows(self, columns: Sequence[_ShownColumn]) -> Iterator[RenderableType]:
        rows: list[Sequence[Text | _CellBar]] = [[each.head for each in columns]] if self._has_heads else []
        rows += [list(cells) for cells in zip(*(each.cells for each in columns), strict=True)]
        for cells in rows:
            texts = (cell for cell in cells if isinstance(cell, Text) and cell)
            yield Flow(*texts, gap=_GAP, indent=_INDENT)


def _build_group_heads(groups: Sequence[tuple[str, Sequence[int]]], widths: Sequence[int]) -> Text:
    """Build the line of the heads of groups, each at the right end of its columns."""
    line = ""
    for group, places in groups:
        end = sum(widths[: places[-1] + 1]) + _GAP * places[-1]
        line = line.ljust(end - len(group)) + group
    return Text(line)


def _build_cell(column: Column, row: Row, place: int, longest_name: int | None) -> Text | _CellBar:
    cell = row.cells[place]
    if column.role is Role.BAR:
        return _CellBar(cell.parts)
    text, style = make_printable(cell.text), CELL_STYLES[cell.judgement]
    if column.role is Role.NAME:
        style = style or STRONG
        if longest_name is not None and len(text) > longest_name:
            half = (longest_name - 1) // 2
            text = f"{text[:half]}…{text[-half:]}"
        if row.is_part:
            text = f"{' ' * _INDENT}{text}"
    return Text(text, style=style)
