"""A table of plain cells with roles, which each screen renders in its own way.

Builders give plain values; a column's quantity determines their format. Renderers know neither runs nor
requests: they align by the role of a column, colour by the judgement of a cell, and leave columns out by
their rank.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum, StrEnum

import msgspec

from oku_core.spec.values.quantity import format_bytes
from oku_core.summary.judgement import Judgement
from oku_core.tables.formatting import NOTHING, format_count, format_latency, format_rate, format_share


class Role(StrEnum):
    """What the cells of a column are."""

    NAME = "name"
    """Names the row; only the first column has this role."""
    TEXT = "text"
    NUMBER = "number"
    BAR = "bar"
    """Draws the parts of a cell; a screen without bars leaves the column out."""


class Rank(IntEnum):
    """How long a column stays as a screen gets narrower."""

    ESSENTIAL = 0
    """It is never left out."""
    USEFUL = 1
    """It is left out last."""
    SPARE = 2
    """It is left out first."""
    DETAIL = 3
    """It is shown where there is room for everything, as in the report."""


class Quantity(StrEnum):
    """What the values of a column measure, and in which unit."""

    COUNT = "count"
    SHARE = "share"
    """Between 0 and 1."""
    RATE = "per_second"
    LATENCY = "ms"
    DURATION = "s"
    SIZE = "bytes"
    INDEX = "index"
    """Of a request or an iteration, as users write it: without separators."""


class Column(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A column.

    Attributes:
        key: its name for programs.
        head: its head; one that ends in `/s` leaves out the unit of rates in its cells.
        role: of its cells.
        quantity: what its values measure; None if they are text, or each cell has its own.
        group: a head above several columns.
        detail: explains the head, in small print.
        rank: how long it stays.
    """

    key: str
    head: str
    role: Role = Role.NUMBER
    quantity: Quantity | None = None
    group: str = ""
    detail: str = ""
    rank: Rank = Rank.ESSENTIAL


class BarPart(msgspec.Struct, frozen=True):
    """A part of a bar: what it stands for, such as an outcome, and its share of the longest bar."""

    kind: str
    share: float


class Cell(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A cell.

    Attributes:
        text: what people read.
        value: the number that programs sort by; None for text, or if there is no number.
        quantity: what it measures, in a column whose cells measure different quantities.
        judgement: the colour of the cell.
        detail: explains the text, in small print.
        parts: of a bar.
    """

    text: str = ""
    value: float | None = None
    quantity: Quantity | None = None
    judgement: Judgement = Judgement.NEUTRAL
    detail: str = ""
    parts: list[BarPart] = []


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row with a cell for each column; `is_part` if it is a part of the row above it."""

    cells: list[Cell]
    is_part: bool = False


class Table(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A table.

    Attributes:
        name: its name for programs.
        title: its title; empty where its place makes it clear.
        columns: its columns.
        rows: its rows.
        note: explains the table.
        left_out: how many rows are not shown; a screen shows the number.
    """

    name: str
    title: str
    columns: list[Column]
    rows: list[Row]
    note: str = ""
    left_out: int = 0


Value = Cell | float | str | None
"""What a builder gives for a cell; None is a number that does not exist."""
_FORMATS: Mapping[Quantity, Callable[[float], str]] = {
    Quantity.COUNT: lambda value: format_count(round(value)),
    Quantity.SHARE: lambda value: format_share(value, 1),
    Quantity.RATE: format_rate,
    Quantity.LATENCY: format_latency,
    Quantity.DURATION: lambda value: f"{value:,.1f} s",
    Quantity.SIZE: lambda value: format_bytes(round(value)),
    Quantity.INDEX: lambda value: str(round(value)),
}


def build_row(columns: Sequence[Column], values: Iterable[Value], *, is_part: bool = False) -> Row:
    """Build a row from a value for each column."""
    cells = [_build_cell(column, value) for column, value in zip(columns, values, strict=True)]
    return Row(cells, is_part)


def build_table(
    name: str, title: str, columns: Sequence[Column], rows: Iterable[Iterable[Value]], note: str = ""
) -> Table:
    """Build a table from a value for each column of each row."""
    return Table(
        name=name,
        title=title,
        columns=list(columns),
        rows=[build_row(columns, values) for values in rows],
        note=note,
    )


def cut_rows(table: Table, most: int) -> Table:
    """Keep at most this many rows of a table."""
    left_out = len(table.rows) - most
    return (
        msgspec.structs.replace(table, rows=table.rows[:most], left_out=left_out) if left_out > 0 else table
    )


def build_bar(counts: Iterable[tuple[str, int]], whole: int) -> Cell:
    """Build a bar with a part for each count that is not zero; `whole` is as long as a bar can be."""
    return Cell(parts=[BarPart(kind, count / whole) for kind, count in counts if count and whole])


def build_measured(quantity: Quantity, value: float, text: str = "") -> Cell:
    """Build a cell with a quantity of its own; a text takes the place of how that is written."""
    return Cell(text=text or _FORMATS[quantity](value), value=value, quantity=quantity)


def judge_share(part: int, whole: int) -> Cell:
    """Build the share of a whole that is ok: bad unless that is all of it."""
    if not whole:
        return Cell(text=NOTHING)
    judgement = Judgement.NEUTRAL if part == whole else Judgement.BAD
    return Cell(text=format_share(part, whole), value=part / whole, judgement=judgement)


def judge_failures(count: int) -> Cell:
    """Build a count of failures: bad unless it is none."""
    judgement = Judgement.BAD if count else Judgement.NEUTRAL
    return Cell(text=format_count(count), value=count, judgement=judgement)


def _build_cell(column: Column, value: Value) -> Cell:
    if isinstance(value, Cell):
        return value
    if isinstance(value, str):
        return Cell(text=value)
    if value is None or column.quantity is None:
        return Cell(text=NOTHING if column.role is Role.NUMBER else "")
    text = _FORMATS[column.quantity](value)
    return Cell(text=text.removesuffix("/s") if column.head.endswith("/s") else text, value=value)
