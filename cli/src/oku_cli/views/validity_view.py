"""Turns the flags of a summary into warnings in plain words."""

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from oku_cli.terminal.layout import Flow, Labelled
from oku_cli.terminal.palette import BAD, CAUTION
from oku_core.results.summary import Unit
from oku_core.results.validity import Flag, Validity
from oku_core.tables.formatting import format_count, format_share, in_units


def build_validity(flags: Sequence[Validity], unit: Unit = Unit.REQUEST) -> RenderableType:
    """Build a row for each flag: its name in the JSON summary, the requests concerned, and its meaning."""
    rows = []
    for validity in flags:
        style = BAD if validity.flag is Flag.UNBALANCED else CAUTION
        words = (*_list_extent(validity, unit), *in_units(validity.detail, unit).split())
        rows.append((Text(f"! {validity.flag.replace('_', ' ')}", style=style), Flow(*words)))
    return Labelled(rows, max((label.cell_len for label, _ in rows), default=0), gap=3)


def describe_extent(validity: Validity, unit: Unit = Unit.REQUEST) -> str:
    """Say how many requests a flag concerns: `1,234 requests, 12.34 %:`, without the share if it has none."""
    return " ".join(_list_extent(validity, unit))


def describe_flag(validity: Validity, unit: Unit) -> str:
    """How many requests a flag concerns, and what it says of them."""
    return f"{describe_extent(validity, unit)} {in_units(validity.detail, unit)}"


def _list_extent(validity: Validity, unit: Unit) -> list[str]:
    noun = in_units("request" if validity.requests == 1 else "requests", unit)
    count = f"{format_count(validity.requests)} {noun}"
    if validity.share is None:
        return [f"{count}:"]
    return [f"{count},", f"{format_share(validity.share, 1)}:"]
