"""Builds tables whose rows have bars: counts, and their shares of a whole."""

from collections.abc import Sequence
from typing import NamedTuple

from oku_cli.report.markup import Html, element
from oku_core.tables.formatting import format_count, format_share


class BarRow(NamedTuple):
    """A row: its name, how many, the CSS class of its bar, and whether it is a part of the row above it."""

    name: str
    number: int
    class_: str
    is_part: bool = False


def build_bars(
    title: str, heads: tuple[str, str], rows: Sequence[BarRow], whole: int, note: str = ""
) -> Html:
    """Build a table of counts with a title above it and a note below it.

    Args:
        title: of the table.
        heads: what a row stands for, and what is counted.
        rows: of the table.
        whole: what the shares are of.
        note: on the table.
    """
    if not rows:
        return element("div", element("h3", title), element("p", "None.", class_="note"))
    columns = [element("th", head, scope="col") for head in (*heads, "share", "")]
    body = [_build_row(row, whole) for row in rows]
    return element(
        "div",
        element("h3", title),
        element("table", element("thead", element("tr", *columns)), element("tbody", *body), class_="bars"),
        *([element("p", note, class_="note")] if note else []),
    )


def build_bar(part: float, whole: float, class_: str) -> Html:
    """Build a bar whose length is a part of a whole; one that is not zero is always visible."""
    width = max(0.5, 100 * part / whole) if part and whole else 0
    return element("span", class_=f"bar {class_}", style=f"width:{width:.2f}%", aria_hidden="true")


def _build_row(row: BarRow, whole: int) -> Html:
    return element(
        "tr",
        element("th", row.name, scope="row"),
        element("td", format_count(row.number), class_="number"),
        element("td", format_share(row.number, whole), class_="number"),
        element("td", build_bar(row.number, whole, row.class_), class_="bar-cell"),
        class_="part" if row.is_part else None,
    )
