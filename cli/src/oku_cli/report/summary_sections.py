"""Builds the sections of a report that consist of tables of its summary."""

from oku_cli.report.charts.chart import build_section
from oku_cli.report.markup import (
    Html,
    build_folded_table,
    build_html_table,
    build_note,
    build_titled_table,
    element,
)
from oku_core.spec.spec import Spec
from oku_core.summary.request_summary import FailureSummary
from oku_core.summary.summary import CompletesSummary, Summary, Unit
from oku_core.tables.formatting import format_count, format_share, in_units
from oku_core.tables.outcome_tables import (
    build_failures,
    build_name_failures,
    build_outcomes,
    build_statuses,
)
from oku_core.tables.phase_tables import build_phases
from oku_core.tables.table import Table
from oku_core.tables.target_tables import build_names, build_phase_targets, build_targets
from oku_core.tables.threshold_tables import build_thresholds
from oku_core.tables.time_tables import build_steps, build_target_steps
from oku_core.tables.worker_tables import describe_processes, list_worker_tables

OPEN_WORKERS = 16
"""Up to this many workers have a row each; more are folded under their spread."""


def build_threshold_section(summary: Summary) -> Html | None:
    """Build the section on thresholds; None if the run has none."""
    return _build_section(build_thresholds(summary.thresholds), "thresholds")


def build_phase_section(summary: Summary, load: Spec | None) -> Html | None:
    """Build the section on phases; None if the run has only one, without a name.

    Args:
        summary: of the run.
        load: a spec with its load; None if that is not known.
    """
    return _build_section(build_phases(summary, load), "phases")


def build_target_section(summary: Summary) -> Html | None:
    """Build the section on targets, in the whole run and in each phase; None if the run names none."""
    phases = (build_folded_table(build_phase_targets(phase)) for phase in summary.phases if phase.targets)
    return _build_section(build_targets(summary), "targets", *phases)


def build_name_section(summary: Summary) -> Html | None:
    """Build the section on requests of user code by name; None if there are none."""
    failures = build_name_failures(summary.inner_requests)
    parts = [build_html_table(failures)] if failures.rows else []
    return _build_section(build_names(summary.inner_requests), "inner-requests", *parts)


def build_step_section(summary: Summary) -> Html | None:
    """Build the section on how time is split; None if no request has connected or was answered."""
    targets = [build_folded_table(build_target_steps(summary.targets))] if summary.targets else []
    return _build_section(build_steps(summary), "timing", *targets)


def build_outcome_section(summary: Summary, load: Spec | None = None) -> Html:
    """Build the section on outcomes and statuses.

    Args:
        summary: of the run.
        load: a spec with its load; None if that is not known.
    """
    tables = [build_outcomes(summary, load)]
    if summary.unit is Unit.REQUEST:
        tables.append(build_statuses(summary))
    pair = element("div", *(build_titled_table(table, "bars") for table in tables), class_="pair")
    return build_section("Outcomes", pair, id_="outcomes")


def build_failure_section(summary: Summary) -> Html | None:
    """Build the section on failures; None if all is ok and the run completes no other."""
    parts = []
    if summary.completes is not None:
        parts.append(_build_completes(summary.completes, summary.unit))
    if summary.failures:
        parts.append(build_html_table(build_failures(summary)))
        parts += [_build_traceback(failure) for failure in summary.failures if failure.traceback]
    return build_section("Failures", *parts, id_="failures") if parts else None


def build_worker_section(summary: Summary) -> Html | None:
    """Build the section on workers; None if the run had no workers."""
    tables = list_worker_tables(summary, OPEN_WORKERS)
    if not tables:
        return None
    return build_section(
        "Workers",
        *build_note(f"{tables[0].title}."),
        build_html_table(tables[0], "workers"),
        *(build_folded_table(table) for table in tables[1:]),
        *build_note(describe_processes(summary)),
        id_="workers",
    )


def _build_section(table: Table, id_: str, *more: Html) -> Html | None:
    """Build the section of a table, with its note and what follows; None if it has no rows."""
    if not table.rows:
        return None
    return build_section(table.title, build_html_table(table), *build_note(table.note), *more, id_=id_)


def _build_traceback(failure: FailureSummary) -> Html:
    return element(
        "details",
        element("summary", f"Traceback: {failure.reason}"),
        element("pre", element("code", failure.traceback), tabindex="0"),
    )


def _build_completes(completes: CompletesSummary, unit: Unit) -> Html:
    share = format_share(completes.ok_with_retries, completes.requests)
    now, requests = format_count(completes.ok_with_retries), format_count(completes.requests)
    text = (
        f"This run sends what failed in run {completes.retried} again. With it, {now} of the {requests}"
        f" {in_units('requests', unit)} of run {completes.run} are ok ({share});"
        f" {format_count(completes.ok)} were before."
    )
    if completes.unlisted:
        text += (
            f" {format_count(completes.unlisted)} that failed are left out: the ledger has not listed them."
        )
    return element("p", text, class_="note")
