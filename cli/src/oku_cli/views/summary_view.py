"""Builds the end screen of a run from its summary; it fits on one screen."""

from collections.abc import Iterator
from datetime import datetime

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.text import Text

from oku_cli.terminal.console import Terminal
from oku_cli.terminal.layout import Flow, Labelled
from oku_cli.terminal.palette import MOST_COLUMNS, STRONG
from oku_cli.terminal.threshold_text import build_thresholds
from oku_cli.views.account_view import (
    build_causes,
    build_headline,
    build_outcomes,
    build_planned,
    build_served,
    build_statuses,
)
from oku_cli.views.distribution_view import RESPONSE_TIME, list_distributions
from oku_cli.views.failures_view import build_completes, build_failures
from oku_cli.views.inner_view import build_inner_requests
from oku_cli.views.phases_view import build_phases
from oku_cli.views.targets_view import build_targets
from oku_cli.views.validity_view import build_validity
from oku_cli.views.workers_view import build_workers
from oku_core.results.summary import LONG_WAIT_S, Summary, Unit, count_bytes_received
from oku_core.spec.values.quantity import format_bytes, format_duration
from oku_core.tables.formatting import format_count, format_date_time, format_rate, in_units


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
    columns = len("throughput" if summary.planned_rps is None else RESPONSE_TIME)
    for list_rows in (_list_account, list_distributions, _list_context, _list_workers, _list_notes):
        if section := Labelled(list_rows(summary), columns):
            sections += ["", section]
        if list_rows is _list_context and summary.phases:
            sections += ["", build_phases(summary.phases)]
        if list_rows is _list_context and summary.targets:
            sections += ["", build_targets(summary.targets, is_open=summary.planned_rps is not None)]
        if list_rows is _list_context and summary.inner_requests:
            sections += ["", build_inner_requests(summary.inner_requests)]
    return Constrain(Padding(Group(*sections), (1, 1)), MOST_COLUMNS)


def _list_account(summary: Summary) -> Iterator[tuple[str, RenderableType]]:
    yield "outcomes", build_outcomes(summary)
    if causes := build_causes(summary):
        yield "not sent", causes
    if summary.thresholds:
        yield "thresholds", build_thresholds(summary.thresholds)
    if summary.failures:
        yield "failures", build_failures(summary.failures)
    if summary.completes is not None:
        yield "completes", build_completes(summary.completes)
    if summary.statuses:
        yield "statuses", build_statuses(summary.statuses)
    yield "resent", f"at most {format_count(summary.resent_at_most)}"
    if summary.servers is not None:
        yield "served", build_served(summary, summary.servers)


def _list_context(summary: Summary) -> Iterator[tuple[str, RenderableType]]:
    if summary.active_s:
        yield "throughput", _build_throughput(summary)
    if summary.planned_rps is not None:
        yield "planned", build_planned(summary, summary.planned_rps)
    yield "received", format_bytes(count_bytes_received(summary))
    if summary.started_at is not None:
        started = _format_iso(summary.started_at)
        if summary.ended_at is None:
            yield "started", started
        else:
            yield "started", Flow(f"{started},", f"ended {_format_iso(summary.ended_at)}")
    if summary.queued_s >= LONG_WAIT_S:
        yield "queued", f"for {format_duration(summary.queued_s)}"


def _list_workers(summary: Summary) -> Iterator[tuple[str, RenderableType]]:
    if summary.workers:
        yield "workers", build_workers(summary.workers, summary.unit)


def _list_notes(summary: Summary) -> Iterator[tuple[str, RenderableType]]:
    if summary.validity:
        yield "notes", build_validity(summary.validity, summary.unit)


def _build_throughput(summary: Summary) -> Flow:
    """Show the rate and its time; what is measured begins after the warm-up, if there is one."""
    rate = Text(format_rate(summary.throughput_rps), style=STRONG)
    if summary.unit is not Unit.REQUEST:
        rate = Text(f"{rate.plain.removesuffix('/s')} {in_units('requests', summary.unit)}/s", style=STRONG)
    phrases: list[Text | str] = [rate, f"over {format_duration(summary.measured_s)}"]
    if summary.planned_rps is not None:
        completed = Text(f"{format_rate(summary.completed_rps)} completed", style=STRONG)
        phrases = [f"{rate.plain} sent,", completed, phrases[-1]]
    if summary.measured_s < summary.active_s:
        phrases += ["after the warm-up,", "which all rates and times above leave out"]
    return Flow(*phrases)


def _format_iso(iso: str) -> str:
    return format_date_time(datetime.fromisoformat(iso).timestamp())
