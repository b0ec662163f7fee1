"""Builds HTML and SVG: text that is not markup yet is escaped when it becomes part of an element.

Names of runs, URLs, reasons and the like are untrusted input; they can reach a page in no other way. Tables
have their numbers to the right, judgements as colours, and bars as long as their shares.
"""

from collections.abc import Iterator
from html import escape
from itertools import groupby

from oku_cli.terminal.ci_commands import escape_marks_in_markup
from oku_core.summary.judgement import Judgement
from oku_core.tables.table import BarPart, Cell, Column, Role, Row, Table


class Html(str):
    """Markup that is safe to put into a page."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: object) -> Html:
    """Build an element with its children in order; those that are not `Html` are escaped.

    Attributes are named as in Python (`class_`, `aria_label`). One that is None or False is left out; one
    that is True has no value.
    """
    parts = [f"<{tag}"]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        written = name.rstrip("_").replace("_", "-")
        parts.append(f" {written}" if value is True else f' {written}="{_escape(str(value))}"')
    return Html(f"{''.join(parts)}>{join_html(*children)}</{tag}>")


def join_html(*children: str) -> Html:
    """Join markup and text; text is escaped."""
    return Html("".join(child if isinstance(child, Html) else _escape(child) for child in children))


def _escape(text: str) -> str:
    return escape_marks_in_markup(escape(text))


_LEAST_BAR = 0.5
"""In per cent of the longest; a part that is not zero is always visible."""


def build_html_table(table: Table, class_: str = "") -> Html:
    """Build the table without its title and its note, in a box that scrolls where it is too wide."""
    has_groups = any(column.group for column in table.columns)
    head = element("tr", *map(_build_head, table.columns))
    return element(
        "div",
        element(
            "table",
            element("thead", *([_build_groups(table)] if has_groups else []), head),
            element("tbody", *(_build_row(table, row) for row in table.rows)),
            class_=class_ or None,
        ),
        class_="scroll",
    )


def build_note(text: str) -> Iterator[Html]:
    """Build a note, unless it is empty."""
    if text:
        yield element("p", text, class_="note")


def build_titled_table(table: Table, class_: str = "") -> Html:
    """Build the table under its title, with its note below it; `None.` stands for a table without rows."""
    content = (
        [build_html_table(table, class_), *build_note(table.note)] if table.rows else build_note("None.")
    )
    return element("div", element("h3", table.title), *content)


def build_folded_table(table: Table) -> Html:
    """Build the table under its title, which opens it."""
    return element("details", element("summary", table.title), build_html_table(table))


def _build_groups(table: Table) -> Html:
    heads = []
    for group, columns in groupby(table.columns, lambda column: (column.group, column.role is Role.BAR)):
        label, is_bar = group
        heads.append(
            element(
                "th",
                label,
                colspan=str(len(list(columns))),
                scope="colgroup" if label else None,
                class_="bar-cell" if is_bar else "number" if label else None,
            )
        )
    return element("tr", *heads)


def _build_head(column: Column) -> Html:
    details = [element("small", column.detail)] if column.detail else []
    return element("th", column.head, *details, scope="col", class_=_choose_class(column, Cell()))


def _build_row(table: Table, row: Row) -> Html:
    cells = (_build_cell(column, cell) for column, cell in zip(table.columns, row.cells, strict=True))
    return element("tr", *cells, class_="part" if row.is_part else None)


def _build_cell(column: Column, cell: Cell) -> Html:
    if column.role is Role.BAR:
        bar = element("span", *map(_build_bar, cell.parts), class_="stacked-bar")
        return element("td", bar, class_="bar-cell")
    is_name = column.role is Role.NAME
    details = [element("small", cell.detail)] if cell.detail else []
    return element(
        "th" if is_name else "td",
        cell.text,
        *details,
        scope="row" if is_name else None,
        class_=_choose_class(column, cell),
    )


def _choose_class(column: Column, cell: Cell) -> str | None:
    classes = {Role.NUMBER: "number", Role.BAR: "bar-cell"}.get(column.role, "")
    judgement = "" if cell.judgement is Judgement.NEUTRAL else cell.judgement.value
    return " ".join(filter(None, (classes, judgement))) or None


def _build_bar(part: BarPart) -> Html:
    width = max(_LEAST_BAR, 100 * part.share)
    return element("span", class_=f"bar {part.kind}", style=f"width:{width:.2f}%", aria_hidden="true")
