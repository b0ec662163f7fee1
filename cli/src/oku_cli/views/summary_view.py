"""Builds the end screen of a run from its summary; it fits on one screen."""

from collections.abc import Iterator
from datetime import datetime

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.text import Text

from oku_cli.terminal.console import BAD, GOOD, MOST_COLUMNS, STRONG, Terminal
from oku_cli.terminal.layout import Flow, Labelled, PairGrid
from oku_cli.terminal.printable import make_printable
from oku_cli.terminal.table_view import LONGEST_NAME, TableView
from oku_cli.views.account_view import (
    build_headline,
    build_planned,
    build_served,
    build_status_counts,
    build_validity_rows,
)
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import UNTRUSTED
from oku_core.spec.load import WARM_UP
from oku_core.spec.values.quantity import format_bytes, format_duration
from oku_core.summary.latency_summary import QuantileIntervals
from oku_core.summary.summary import LONG_WAIT_S, CompletesSummary, Summary, Unit, count_bytes_received
from oku_core.tables.distribution_tables import build_distribution
from oku_core.tables.formatting import (
    format_count,
    format_date_time,
    format_interval,
    format_rate,
    format_share,
    in_units,
)
from oku_core.tables.outcome_tables import build_failures, build_name_failures, build_outcomes
from oku_core.tables.part_tables import MOST_ROWS, build_names, build_phases, build_targets
from oku_core.tables.summary_tables import list_worker_tables
from oku_core.tables.table import Table, cut_rows
from oku_core.tables.threshold_tables import build_thresholds
from oku_core.tables.time_tables import LATENCY, TIMES, build_steps, build_times, list_notable_steps

MOST_WORKERS = 8
"""Up to this many workers have a row each; of more, only the spread is shown."""
MOST_LOST = 3
"""Where the spread is shown, this many lost workers have a row each."""
MOST_REASONS = 5
"""How many reasons for failed requests of user code are shown, of all names together."""
BAR_COLUMNS = 22
"""Width of the longest bar where there is room for it."""


def print_summary(console: Terminal, summary: Summary, *, hint: str | None = None) -> None:
    """Write the end screen to the console; the arguments are as for `build_screen`."""
    console.print(build_screen(summary, hint=hint))


def build_screen(summary: Summary, *, hint: str | None = None) -> RenderableType:
    """Build the end screen of a run in any state; the hint, such as how to resume, is under the headline."""
    sections: list[RenderableType] = [build_headline(summary, hint)]
    if summary.inner_requests:  # what the target did; iterations have think times and checks as well
        sections += ["", _build_requests(summary)]
    columns = len("throughput" if summary.planned_rps is None else Time.RESPONSE_TIME.label)
    for list_rows in (_list_account, list_distributions, _list_context):
        if section := Labelled(list_rows(summary), columns):
            sections += ["", section]
    for part in _iter_parts(summary):
        sections += ["", part]
    for list_rows in (_list_workers, _list_notes):
        if section := Labelled(list_rows(summary), columns):
            sections += ["", section]
    return Constrain(Padding(Group(*sections), (1, 1)), MOST_COLUMNS)


def _list_account(summary: Summary) -> Iterator[tuple[str, RenderableType]]:
    yield "outcomes", TableView(build_outcomes(summary), has_heads=False)
    if summary.thresholds:
        yield "thresholds", TableView(build_thresholds(summary.thresholds), has_heads=False)
    if summary.failures:
        yield "failures", build_reason_list(summary)
    if summary.completes is not None:
        yield "completes", build_completes(summary.completes)
    if summary.statuses:
        yield "statuses", build_status_counts(summary.statuses)
    yield "resent", f"at most {format_count(summary.resent_at_most)}"
    if summary.servers is not None:
        yield "served", build_served(summary, summary.servers)


def _iter_parts(summary: Summary) -> Iterator[RenderableType]:
    """The tables that have the whole width."""
    if summary.phases:
        yield TableView(build_phases(summary))
    if summary.targets:
        yield TableView(build_targets(summary, most=MOST_ROWS), longest_name=LONGEST_NAME)


def _build_requests(summary: Summary) -> RenderableType:
    """The requests of user code by name, and why they failed."""
    names = build_names(summary.inner_requests, most=MOST_ROWS)
    failures = build_name_failures(summary.inner_requests)
    reasons = ["", *list_reasons(failures, MOST_REASONS)] if failures.rows else []
    table = TableView(names, longest_name=LONGEST_NAME)
    return Group(Text(names.title, style=STRONG), table, *reasons, names.note)


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
    if tables := list_worker_tables(summary, MOST_WORKERS, MOST_LOST):
        more = tables[-1].left_out
        last = [Text(f"and {format_count(more)} more lost", style=BAD)] if more else []
        yield "workers", Group(tables[0].title, *map(TableView, tables), *last)


def _list_notes(summary: Summary) -> Iterator[tuple[str, RenderableType]]:
    if summary.validity:
        yield "notes", build_validity_rows(summary.validity, summary.unit)


def _build_throughput(summary: Summary) -> Flow:
    """Show the rate and its time; the measurement begins after the warm-up, if there is one."""
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


def list_distributions(summary: Summary) -> Iterator[tuple[str, RenderableType]]:
    """The figures of each distribution with its label, and the bars of what a user of the target waits for.

    With a rate these are response times, as they count from when requests were due.
    """
    table = build_times(summary)
    if LATENCY.pick(summary).max is None:
        has_warm_up = any(phase.name == WARM_UP for phase in summary.phases)
        yield (
            LATENCY.find_label(summary.unit),
            f"nothing was answered{' after the warm-up' if has_warm_up else ''}",
        )
    yield from _list_figures(table)
    shown = next((time for time in reversed(TIMES[:2]) if time.pick(summary).max is not None), LATENCY)
    if intervals_ms := shown.pick_intervals(summary):
        yield "intervals", _build_intervals(intervals_ms)
    if steps := list(_list_steps(summary)):
        yield "timing", Flow(*steps, gap=3)
    if shown.pick(summary).max is not None:
        yield "", ""
        bars = TableView(build_distribution(shown.decode(summary)), has_heads=False, bar_columns=BAR_COLUMNS)
        yield shown.label if shown is not LATENCY else "", bars


def _list_figures(table: Table) -> Iterator[tuple[str, RenderableType]]:
    """A grid for each column of the table of figures, from top to bottom and then to the right."""
    texts = [[cell.text for cell in row.cells] for row in table.rows]
    width = max((len(text) for row in texts for text in row[1:]), default=0)
    for place, column in enumerate(table.columns[1:], 1):
        pairs = ((row[0], Text(row[place].rjust(width), style=STRONG)) for row in texts)
        yield column.head, PairGrid(pairs, 4)


def _list_steps(summary: Summary) -> Iterator[Text]:
    """The median and the 99th percentile of each notable step of requests."""
    table, notable = build_steps(summary), {step.label: step for step in list_notable_steps(summary)}
    for row in table.rows:
        texts = {column.key: cell.text for column, cell in zip(table.columns, row.cells, strict=True)}
        if step := notable.get(texts["step"]):
            phrase = Text.assemble(
                f"{step.label} p50 ", (texts["p50"], STRONG), " p99 ", (texts["p99"], STRONG)
            )
            yield phrase.append(f" ({texts['requests']})") if step.is_connecting else phrase


def _build_intervals(intervals_ms: QuantileIntervals) -> Flow:
    """Show between which values the median and the 99th percentile lie; the rest is in the JSON."""
    shown = (("p50", intervals_ms.p50), ("p99", intervals_ms.p99))
    phrases = [f"{name} {format_interval(interval)}" for name, interval in shown if interval]
    return Flow(*phrases, "(95 %)", gap=3)


def _format_iso(iso: str) -> str:
    return format_date_time(datetime.fromisoformat(iso).timestamp())


MOST_SHOWN = 8
"""How many reasons the end screen shows; the summary as JSON has all of them."""
MOST_TRACEBACKS, MOST_TRACEBACK_LINES = 3, 8
"""How many tracebacks it shows, and the end of each; the report has the whole of them."""
_CERTIFICATE_ADVICE = "--cacert trusts another issuer, --insecure any certificate"


def build_reason_list(summary: Summary) -> RenderableType:
    """List reasons with their counts and the first and last index of each, and what to do about some."""
    failures = summary.failures
    lines = list_reasons(build_failures(summary), MOST_SHOWN)
    if any(failure.reason.startswith(UNTRUSTED) for failure in failures):
        lines.append(Text(_CERTIFICATE_ADVICE))
    traced = [failure for failure in failures[:MOST_SHOWN] if failure.traceback]
    for failure in traced[:MOST_TRACEBACKS]:
        lines += ["", *map(Text, shorten_traceback(failure.traceback))]
    return Group(*lines)


def list_reasons(table: Table, most: int) -> list[RenderableType]:
    """List the most frequent reasons of a table, and how many there are besides."""
    shown = cut_rows(table, most)
    more = [Text(f"and {shown.left_out} other reasons")] if shown.left_out else []
    return [TableView(shown), *more]


def shorten_traceback(traceback: str) -> list[str]:
    """The end of a traceback, where the exception was raised, as lines that are safe for a terminal."""
    lines = [make_printable(line) for line in traceback.rstrip().splitlines()]
    if len(lines) <= MOST_TRACEBACK_LINES:
        return lines
    left_out = len(lines) - MOST_TRACEBACK_LINES
    return [f"… {left_out} lines before, which the report has", *lines[-MOST_TRACEBACK_LINES:]]


def build_completes(completes: CompletesSummary) -> RenderableType:
    """Show how many requests of the first run are ok, including its retries."""
    share = format_share(completes.ok_with_retries, completes.requests)
    is_whole = completes.ok_with_retries == completes.requests
    count = f"{format_count(completes.ok_with_retries)} of {format_count(completes.requests)}"
    phrases: list[Text | str] = [
        f"run {completes.run}:",
        Text(f"{count} ok", style=GOOD if is_whole else STRONG),
        f"({share}), {format_count(completes.ok)} of them before",
    ]
    if completes.unlisted:
        unlisted = format_count(completes.unlisted)
        phrases.append(
            Text(f"{unlisted} that failed are left out: the ledger has not listed them", style=BAD)
        )
    if completes.unjudged:
        unjudged = format_count(completes.unjudged)
        phrases.append(Text(f"{unjudged} that failed are left out: their reason is not kept", style=BAD))
    return Flow(*phrases)
