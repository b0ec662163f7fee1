"""Shows the targets of a run, a row for each, or the worst ones of very many."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from oku_cli.terminal.target_table import TargetRow, TargetTable
from oku_core.results.summary import TargetSummary

_CLOSED_HEADS = ("p50", "p95", "p99")
_OPEN_HEADS = ("latency", "response", "lateness")
_OPEN_NOTE = "The last three columns are 99th percentiles."


def build_targets(targets: Sequence[TargetSummary], *, is_open: bool) -> RenderableType:
    """Show counts, rates and times by target; with a rate, the 99th percentile of each of the three times."""
    rows = [
        TargetRow(
            name=target.name,
            requests=target.requests,
            ok=target.outcomes.ok,
            rate_rps=target.rate_rps,
            times_ms=_list_times(target, is_open=is_open),
            p99_ms=target.latency_ms.p99,
        )
        for target in targets
    ]
    if is_open:
        return Group(TargetTable(rows, _OPEN_HEADS), Text(_OPEN_NOTE))
    return TargetTable(rows, _CLOSED_HEADS)


def _list_times(target: TargetSummary, *, is_open: bool) -> tuple[float | None, ...]:
    latency_ms = target.latency_ms
    if not is_open:
        return latency_ms.p50, latency_ms.p95, latency_ms.p99
    return latency_ms.p99, target.response_time_ms.p99, target.lateness_ms.p99
