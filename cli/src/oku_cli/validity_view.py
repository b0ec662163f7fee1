"""The flags of a summary go in, warnings in plain words come out."""

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from oku_cli.figures import format_count, format_share
from oku_cli.palette import BAD, CAUTION
from oku_core.summary import Flag, Validity


def build_validity(flags: Sequence[Validity]) -> RenderableType:
    """A row for each flag: its name as in the JSON summary, how many requests it concerns, what it means."""
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for validity in flags:
        name = Text(
            f"! {validity.flag.replace('_', ' ')}", style=BAD if validity.flag is Flag.UNBALANCED else CAUTION
        )
        table.add_row(name, Text(f"{describe_extent(validity)}: {validity.detail}"))
    return table


def describe_extent(validity: Validity) -> str:
    """How many requests a flag concerns: `1,234 requests, 12.34 %`; without a share that is not known."""
    noun = "request" if validity.requests == 1 else "requests"
    share = f", {format_share(validity.share, 1)}" if validity.share else ""
    return f"{format_count(validity.requests)} {noun}{share}"
