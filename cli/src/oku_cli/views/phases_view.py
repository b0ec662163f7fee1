"""Shows the phases of a run, a row for each: its stages, its warm-up and what follows it."""

from collections.abc import Iterable, Sequence

import msgspec
from rich.console import Group, JustifyMethod, RenderableType
from rich.text import Text

from oku_cli.terminal.layout import AlignedTable
from oku_cli.terminal.palette import BAD, STRONG
from oku_core.results.summary import PhaseSummary
from oku_core.tables.formatting import format_count, format_latency, format_rate, format_share

_CLOSED_HEADS = ("phase", "completed", "ok", "sent/s", "completed/s", "p50", "p99")
_OPEN_HEADS = ("phase", "due", "completed", "ok", "planned/s", "sent/s", "completed/s")
_TIME_HEADS = ("p99 by phase", "latency", "response time", "lateness")
_LEAST_NAME = 10

Row = tuple[Text | str, ...]


def build_phases(phases: Sequence[PhaseSummary]) -> RenderableType:
    """Show counts, rates and times by phase; with a rate, the 99th percentile of each of the three times."""
    if all(phase.due is None for phase in phases):
        return _build_table(_CLOSED_HEADS, phases, map(_list_closed, phases))
    rates = _build_table(_OPEN_HEADS, phases, map(_list_open, phases))
    return Group(rates, Text(), _build_table(_TIME_HEADS, phases, map(_list_times, phases)))


def _build_table(heads: Sequence[str], phases: Sequence[PhaseSummary], rows: Iterable[Row]) -> AlignedTable:
    justify: list[JustifyMethod] = ["left", *(["right"] * (len(heads) - 1))]  # type: ignore[list-item]
    table = AlignedTable(justify, gap=2, fold_to=_LEAST_NAME)
    table.add_row(*heads)
    for phase, row in zip(phases, rows, strict=True):
        table.add_row(Text(phase.name, style=STRONG), *row)
    return table


def _list_closed(phase: PhaseSummary) -> Row:
    latency_ms = phase.latency_ms
    rates = _format_rate(phase.sent_rps), _format_rate(phase.completed_rps)
    times = format_latency(latency_ms.p50), format_latency(latency_ms.p99)
    return format_count(phase.completed), _build_ok(phase), *rates, *times


def _list_open(phase: PhaseSummary) -> Row:
    rates = phase.planned_rps or 0.0, phase.sent_rps, phase.completed_rps
    counts = format_count(phase.due or 0), format_count(phase.completed)
    return *counts, _build_ok(phase), *map(_format_rate, rates)


def _list_times(phase: PhaseSummary) -> Row:
    times_ms = (phase.latency_ms.p99, phase.response_time_ms.p99, phase.lateness_ms.p99)
    return tuple(map(format_latency, times_ms))


def _build_ok(phase: PhaseSummary) -> Text:
    accounted = sum(msgspec.structs.astuple(phase.outcomes))
    ok = Text(format_share(phase.outcomes.ok, accounted) if accounted else "-")
    if phase.outcomes.ok < accounted:
        ok.stylize(BAD)
    return ok


def _format_rate(rate_rps: float) -> str:
    """A rate whose unit stands in the head of its column."""
    return format_rate(rate_rps).removesuffix("/s")
