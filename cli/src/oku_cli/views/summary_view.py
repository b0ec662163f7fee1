"""Builds the end screen of a run from its summary; it fits on one screen."""

import base64
from collections.abc import Iterator
from datetime import datetime

import msgspec
from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.text import Text

from oku_cli.formatting import choose_digits, format_count, format_date_time, format_latency, format_rate
from oku_cli.terminal.console import Terminal
from oku_cli.terminal.layout import Flow, Labelled, PairGrid
from oku_cli.terminal.palette import MOST_COLUMNS, STRONG
from oku_cli.views.account_view import build_headline, build_outcomes, build_served, build_statuses
from oku_cli.views.histogram_view import build_histogram
from oku_cli.views.validity_view import build_validity
from oku_cli.views.workers_view import build_workers
from oku_core.accounting import hdr
from oku_core.results.summary import LatencySummary, Summary
from oku_core.spec.values.quantity import format_bytes, format_duration


def print_summary(console: Terminal, summary: Summary, *, hint: str | None = None) -> None:
    """Write the end screen to the console; the arguments are those of `build_summary`."""
    console.print(build_summary(summary, hint=hint))


def build_summary(summary: Summary, *, hint: str | None = None) -> RenderableType:
    """Build the end screen.

    Args:
        summary: the summary of a run in any state.
        hint: a sentence on what to do next, such as how to resume, shown under the headline.
    """
    sections: list[RenderableType] = [build_headline(summary, hint)]
    for list_rows in (_list_account, _list_latency, _list_context, _list_workers, _list_notes):
        if section := Labelled(list_rows(summary), len("throughput")):
            sections += ["", section]
    return Constrain(Padding(Group(*sections), (1, 1)), MOST_COLUMNS)


def _list_account(summary: Summary) -> Iterator[tuple[str, RenderableType]]:
    yield "outcomes", build_outcomes(summary)
    if summary.statuses:
        yield "statuses", build_statuses(summary.statuses)
    yield "resent", f"at most {format_count(summary.resent_at_most)}"
    if summary.servers is not None:
        yield "served", build_served(summary, summary.servers)


def _list_latency(summary: Summary) -> Iterator[tuple[str, RenderableType]]:
    latency_ms = summary.latency_ms
    if latency_ms.min is None or latency_ms.max is None:
        yield "latency", "nothing was answered"
        return
    yield "latency", _build_quantiles(latency_ms)
    latency = msgspec.structs.replace(  # the exchange format does not hold the exact minimum and maximum
        hdr.decode(base64.b64decode(summary.histogram)),
        min_us=round(latency_ms.min * 1000),
        max_us=round(latency_ms.max * 1000),
    )
    yield "", ""
    yield "", build_histogram(latency)


def _list_context(summary: Summary) -> Iterator[tuple[str, RenderableType]]:
    if summary.active_s:
        rate = Text(format_rate(summary.throughput_rps), style=STRONG)
        yield "throughput", Flow(rate, f"over {format_duration(summary.active_s)}")
    yield "received", format_bytes(summary.bytes_received)
    if summary.started_at is not None:
        started = _format_iso(summary.started_at)
        if summary.ended_at is None:
            yield "started", started
        else:
            yield "started", Flow(f"{started},", f"ended {_format_iso(summary.ended_at)}")


def _list_workers(summary: Summary) -> Iterator[tuple[str, RenderableType]]:
    if summary.workers:
        yield "workers", build_workers(summary.workers)


def _list_notes(summary: Summary) -> Iterator[tuple[str, RenderableType]]:
    if summary.validity:
        yield "notes", build_validity(summary.validity)


def _format_iso(iso: str) -> str:
    return format_date_time(datetime.fromisoformat(iso).timestamp())


def _build_quantiles(latency_ms: LatencySummary) -> PairGrid:
    """Order the quantiles from top to bottom, then to the right."""
    names = ("min", "mean", "p50", "p90", "p95", "p99", "p99.9", "max")
    digits = choose_digits((latency_ms.p50, latency_ms.p99))
    values = (format_latency(getattr(latency_ms, name.replace(".", "_")), digits) for name in names)
    return PairGrid(((name, Text(value, style=STRONG)) for name, value in zip(names, values, strict=True)), 4)
