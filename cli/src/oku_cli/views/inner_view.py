"""Shows the requests that user code has made within iterations, a row for each name, or the worst of many."""

from collections.abc import Sequence

from rich.console import ConsoleOptions, Group, JustifyMethod, RenderableType, RenderResult
from rich.text import Text

from oku_cli.terminal.layout import AlignedTable
from oku_cli.terminal.palette import BAD, STRONG
from oku_cli.terminal.printable import make_printable
from oku_cli.terminal.target_table import MOST_ROWS, TargetRow, choose_rows, shorten_name
from oku_core.results.summary import InnerSummary
from oku_core.spec.values.quantity import format_bytes
from oku_core.tables.formatting import format_count, format_latency, format_outcome, format_rate

INNER_TITLE = "Requests by name"
INNER_NOTE = "They stand beside the account: an iteration that is made again makes its requests again."
MOST_REASONS = 5
"""How many reasons for failed requests are shown, of all names together."""
_HEADS = ("name", "requests", "ok", "failed", "p50", "p95", "p99", "rate", "bytes")
_GIVEN_UP = (("bytes",), ("bytes", "p95"), ("bytes", "p95", "rate"))
"""Columns that a narrow terminal leaves out, one after the other."""
_NAME, _LEAST_NAME, _GAP = 18, 10, 2
"""Columns are left out for so much of a name; names are folded to the least."""


def build_inner_requests(requests: Sequence[InnerSummary]) -> RenderableType:
    """Show counts, times, rates and bytes by name, and why the most of those failed that did."""
    parts: list[RenderableType] = [Text(INNER_TITLE, style=STRONG), _InnerTable(requests)]
    reasons = [(each.name, failure) for each in requests for failure in each.failures]
    reasons.sort(key=lambda reason: -reason[1].requests)
    if reasons:
        table = AlignedTable(("left", "left", "left", "right"), fold_to=_LEAST_NAME)
        for name, failure in reasons[:MOST_REASONS]:
            cells = (_shorten(name), format_outcome(failure.outcome), make_printable(failure.reason))
            table.add_row(*cells, format_count(failure.requests), style=BAD)
        parts += ["", table]
        if (more := len(reasons) - MOST_REASONS) > 0:
            parts.append(f"and {more} other reasons")
    return Group(*parts, INNER_NOTE)


class _InnerTable:
    """Shows as many columns as fit."""

    def __init__(self, requests: Sequence[InnerSummary]) -> None:
        by_row = {_build_row(each): each for each in requests}
        shown, others = choose_rows(list(by_row), MOST_ROWS)
        self._rows = [_list_cells(by_row[row]) for row in shown]
        if others:
            names = Text(f"and {format_count(len(others))} more")
            requests_left, ok = sum(row.requests for row in others), sum(row.ok for row in others)
            self._rows.append(
                {
                    "name": names,
                    "requests": Text(format_count(requests_left)),
                    "ok": Text(format_count(ok)),
                    "failed": _build_failed(requests_left - ok),
                    "rate": Text(format_rate(sum(row.rate_rps for row in others))),
                }
            )

    def __rich_console__(self, _: object, options: ConsoleOptions) -> RenderResult:
        """Draw the table."""
        for given_up in ((), *_GIVEN_UP):
            heads = [head for head in _HEADS if head not in given_up]
            if min(_NAME, self._measure(heads[:1])) + self._measure(heads[1:]) <= options.max_width:
                break
        justify: list[JustifyMethod] = ["left", *(["right"] * (len(heads) - 1))]  # type: ignore[list-item]
        table = AlignedTable(justify, gap=_GAP, fold_to=_LEAST_NAME)
        table.add_row(*heads)
        for row in self._rows:
            table.add_row(*(row.get(head, Text()) for head in heads))
        yield table

    def _measure(self, heads: Sequence[str]) -> int:
        widths = (max(len(head), *(row.get(head, Text()).cell_len for row in self._rows)) for head in heads)
        return sum(width + _GAP for width in widths)


def _build_row(inner: InnerSummary) -> TargetRow:
    return TargetRow(
        inner.name, inner.requests, inner.outcomes.ok, inner.rate_rps, p99_ms=inner.latency_ms.p99
    )


def _list_cells(inner: InnerSummary) -> dict[str, Text]:
    latency_ms = inner.latency_ms
    return {
        "name": Text(_shorten(inner.name), style=STRONG),
        "requests": Text(format_count(inner.requests)),
        "ok": Text(format_count(inner.outcomes.ok)),
        "failed": _build_failed(inner.requests - inner.outcomes.ok),
        **{name: Text(format_latency(getattr(latency_ms, name))) for name in ("p50", "p95", "p99")},
        "rate": Text(format_rate(inner.rate_rps)),
        "bytes": Text(format_bytes(inner.bytes_received)),
    }


def _build_failed(count: int) -> Text:
    return Text(format_count(count), style=BAD if count else "")


def _shorten(name: str) -> str:
    return shorten_name(make_printable(name))
