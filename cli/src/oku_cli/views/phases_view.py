"""Shows the phases of a run, a row for each: its stages, its warm-up and what follows it."""

from collections.abc import Sequence

import msgspec
from rich.console import Group, JustifyMethod, RenderableType
from rich.text import Text

from oku_cli.formatting import format_count, format_latency, format_rate, format_share, in_units
from oku_cli.terminal.layout import AlignedTable
from oku_cli.terminal.palette import BAD, STRONG
from oku_core.results.summary import PhaseSummary, Unit

_CLOSED_HEADS = ("phase", "requests", "ok", "rate", "p50", "p99")
_OPEN_HEADS = ("phase", "requests", "ok", "planned", "rate", "latency", "response", "lateness")
_OPEN_NOTE = "The last three columns are 99th percentiles."
_LEAST_NAME = 10


def build_phases(phases: Sequence[PhaseSummary], unit: Unit = Unit.REQUEST) -> RenderableType:
    """Show counts, rates and times by phase; with a rate, the 99th percentile of each of the three times."""
    is_open = any(phase.planned_rps is not None for phase in phases)
    heads = _OPEN_HEADS if is_open else _CLOSED_HEADS
    justify: list[JustifyMethod] = ["left"]
    justify += ["right"] * (len(heads) - 1)
    table = AlignedTable(justify, gap=2, fold_to=_LEAST_NAME)
    table.add_row(*(in_units(head, unit) for head in heads))
    for phase in phases:
        accounted = sum(msgspec.structs.astuple(phase.outcomes))
        ok = Text(format_share(phase.outcomes.ok, accounted) if accounted else "-")
        if phase.outcomes.ok < accounted:
            ok.stylize(BAD)
        name = Text(phase.name, style=STRONG)
        table.add_row(name, format_count(phase.requests), ok, *_list_figures(phase))
    return Group(table, Text(_OPEN_NOTE)) if is_open else table


def _list_figures(phase: PhaseSummary) -> tuple[str, ...]:
    rate, latency_ms = format_rate(phase.rate_rps), phase.latency_ms
    if phase.planned_rps is None:
        return rate, format_latency(latency_ms.p50), format_latency(latency_ms.p99)
    times_ms = (latency_ms.p99, phase.response_time_ms.p99, phase.lateness_ms.p99)
    return format_rate(phase.planned_rps), rate, *map(format_latency, times_ms)
