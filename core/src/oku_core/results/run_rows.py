"""Rows of the data of a run, as the API gives them."""

from collections.abc import Mapping

import msgspec

MOST_ROWS = 1_000
"""Of one answer."""


class RunRows(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of the indices from `start` on.

    Attributes:
        run: its id.
        start: the index of the first row.
        rows: one for each index: its values by their columns, as the file says. Long rows are fewer than
            asked for, but at least one; whoever wants more goes on behind them.
    """

    run: str
    start: int
    rows: list[Mapping[str, str]]
