"""Builds the sections of a report that show a summary: the head, the account with its flags, the tables."""

from collections.abc import Iterator
from datetime import UTC, datetime

from oku_cli.report.charts.chart import build_section
from oku_cli.report.markup import (
    Html,
    build_folded_table,
    build_html_table,
    build_note,
    build_titled_table,
    element,
)
from oku_cli.views.account_view import build_served, describe_flag, describe_missing
from oku_cli.views.exit_reasons import describe_nothing_ok, list_hints
from oku_core.accounting.measured_time import Time
from oku_core.accounting.run_state import REST_STATES
from oku_core.spec.spec import OPEN_END, Spec
from oku_core.spec.values.quantity import format_bytes, format_duration
from oku_core.summary.judgement import judge_run
from oku_core.summary.request_summary import FailureSummary
from oku_core.summary.summary import LONG_WAIT_S, CompletesSummary, Summary, Unit, count_bytes_received
from oku_core.summary.validity import Flag, Validity
from oku_core.tables.formatting import (
    format_count,
    format_latency,
    format_ok,
    format_progress,
    format_rate,
    format_share,
    in_units,
)
from oku_core.tables.outcome_tables import (
    build_failures,
    build_name_failures,
    build_outcomes,
    build_statuses,
)
from oku_core.tables.part_tables import build_names, build_phase_targets, build_phases, build_targets
from oku_core.tables.summary_tables import describe_processes, list_worker_tables
from oku_core.tables.table import Table
from oku_core.tables.threshold_tables import build_thresholds
from oku_core.tables.time_tables import build_steps, build_target_steps, build_times

OPEN_WORKERS = 16
"""Up to this many workers have a row each; more are folded under their spread."""


def build_threshold_section(summary: Summary) -> Html | None:
    """Build the section on thresholds; None if the run has none."""
    return _build_section(build_thresholds(summary.thresholds), "thresholds")


def build_phase_section(summary: Summary, load: Spec | None) -> Html | None:
    """Build the section on phases; None if the run has only one, without a name."""
    return _build_section(build_phases(summary, load), "phases")


def build_target_section(summary: Summary) -> Html | None:
    """Build the section on targets, in the whole run and in each phase; None if the run names none."""
    phases = (build_folded_table(build_phase_targets(phase)) for phase in summary.phases if phase.targets)
    return _build_section(build_targets(summary), "targets", *phases)


def build_name_section(summary: Summary) -> Html | None:
    """Build the section on requests of user code by name; None if there are none."""
    table = build_names(summary.inner_requests)
    if not table.rows:
        return None
    failures = build_name_failures(summary.inner_requests)
    parts = [build_html_table(failures)] if failures.rows else []
    return build_section(
        table.title, *build_note(table.note), build_html_table(table), *parts, id_="inner-requests"
    )


def build_step_section(summary: Summary) -> Html | None:
    """Build the section on how time is split; None if no request has connected or was answered."""
    targets = [build_folded_table(build_target_steps(summary.targets))] if summary.targets else []
    return _build_section(build_steps(summary), "timing", *targets)


def build_outcome_section(summary: Summary, load: Spec | None = None) -> Html:
    """Build the section on outcomes and statuses."""
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
    """Build the section of a table, with its note and further elements; None if it has no rows."""
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
    if completes.unjudged:
        text += f" {format_count(completes.unjudged)} that failed are left out: their reason is not kept."
    return element("p", text, class_="note")


def build_head(summary: Summary) -> Html:
    """Build the header with the name, id, state, share of ok, engine, target, load and times of the run."""
    facts = [f"run {summary.run}"] if summary.name else []
    facts.append(f"engine {summary.engine_choice}")
    if summary.target:
        facts.append(summary.target)
    if summary.load:
        facts.append(summary.load)
    if summary.started_at:
        facts.append(f"started {format_utc(summary.started_at)}")
    if summary.ended_at:
        facts.append(f"ended {format_utc(summary.ended_at)}")
    if summary.queued_s >= LONG_WAIT_S:
        facts.append(f"queued for {format_duration(summary.queued_s)}")
    if summary.active_s:
        facts.append(f"active for {format_duration(summary.active_s)}")
    return element(
        "header",
        element(
            "h1",
            summary.name or f"run {summary.run}",
            " ",
            element("span", describe_state(summary), class_=f"state {judge_run(summary)}"),
        ),
        element("p", " · ".join(facts), class_="facts"),
        *(
            element("p", text, class_="reason")
            for text in (summary.reason, describe_nothing_ok(summary), *list_hints(summary))
            if text
        ),
    )


def describe_state(summary: Summary) -> str:
    """The state of a run with the share of its requests that was ok: `completed · 99.95 % ok`."""
    return " · ".join(filter(None, (summary.state, format_ok(summary.outcomes.ok, summary.accounted))))


def build_balance(summary: Summary, load: Spec | None = None, *, clock_bound_s: float | None = None) -> Html:
    """Build the account: how much is accounted, whether that balances, the validity flags and the metrics.

    `clock_bound_s` is how well all workers knew the coordinator's clock; None in a closed run.
    """
    missing = summary.requests - summary.accounted
    has_open_end = summary.requests >= OPEN_END
    total = "" if has_open_end else f" of {format_count(summary.requests)}"
    extent = [
        element("strong", format_count(summary.accounted)),
        f"{total} {in_units('requests', summary.unit)} accounted",
    ]
    if has_open_end:
        extent.append("; its time is not up")
    elif missing:
        progress = format_progress(summary.accounted, summary.requests)
        extent.append(f" ({progress}; {format_count(missing)} {describe_missing(summary.state)})")
    return build_section(
        "Account",
        element("p", *extent, class_="extent"),
        _build_meter(summary, load),
        element(
            "dl", *(part for fact in _list_context(summary, clock_bound_s) for part in fact), class_="account"
        ),
        build_flags(summary.validity, summary.unit),
        element("dl", *(_build_metric(*metric) for metric in _list_metrics(summary)), class_="metrics"),
        id_="account",
    )


def build_flags(flags: list[Validity], unit: Unit = Unit.REQUEST) -> Html:
    """Build the list of validity flags; without any, a sentence that there are none."""
    if not flags:
        return element(
            "p", "No flags: nothing is known that would make these numbers misleading.", class_="fine"
        )
    return element("ul", *(_build_flag(flag, unit) for flag in flags), class_="flags")


def format_utc(iso: str) -> str:
    """Format a time of a summary to the second: `2026-02-01 17:05:12 UTC`."""
    return f"{datetime.fromisoformat(iso).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _build_meter(summary: Summary, load: Spec | None) -> Html:
    share = 100 * _measure_progress(summary, load)
    bar = element("span", style=f"width:{min(share, 99.9) if share < 100 else 100:.1f}%")
    return element("div", bar, class_=f"meter {summary.state}", aria_hidden="true")


def _measure_progress(summary: Summary, load: Spec | None) -> float:
    """The share of the requests that is accounted or, if only time ends the run, of its time that is over."""
    if summary.requests >= OPEN_END:
        length_s = None if load is None else load.length_s
        return min(1.0, summary.active_s / float(length_s)) if length_s else 0.0
    # A run whose time was over before anything was sent has no requests.
    return summary.accounted / summary.requests if summary.requests else 1.0


def _list_context(summary: Summary, clock_bound_s: float | None) -> Iterator[tuple[Html, Html]]:
    broken = [flag for flag in summary.validity if flag.flag == Flag.UNBALANCED]
    if broken:
        verdict = element("dd", f"does not balance: {broken[0].detail}", class_="bad")
    else:
        is_at_rest = summary.state in REST_STATES
        verdict = element("dd", "balances" if is_at_rest else "balances so far", class_="good")
    yield element("dt", "account"), verdict
    yield element("dt", "resent at most"), element("dd", format_count(summary.resent_at_most))
    if summary.servers is not None:
        served = build_served(summary, summary.servers).plain
        yield element("dt", "delay servers counted"), element("dd", served)
    if summary.plan is not None and (seconds := summary.plan.seconds):
        kept = seconds - summary.plan.off_seconds
        text = f"in {format_count(kept)} of {format_count(seconds)} seconds, to 1 %"
        yield element("dt", "kept to the plan"), element("dd", text)
    if clock_bound_s is not None:
        bound = (
            f"within {format_latency(1000 * clock_bound_s)}" if clock_bound_s else "exactly, on one machine"
        )
        yield element("dt", "workers knew the clock"), element("dd", bound)


def _build_flag(validity: Validity, unit: Unit) -> Html:
    return element(
        "li",
        element("strong", validity.flag.replace("_", " ")),
        f" {describe_flag(validity, unit)}",
        class_="bad" if validity.flag == Flag.UNBALANCED else None,
    )


def _list_metrics(summary: Summary) -> Iterator[tuple[str, str]]:
    if summary.planned_rps is not None:
        yield "planned", format_rate(summary.planned_rps)
    if summary.active_s:
        yield "throughput", format_rate(summary.throughput_rps)
        if summary.planned_rps is not None:
            yield "completed", format_rate(summary.completed_rps)
    yield from _list_times(build_times(summary))
    yield "received", format_bytes(count_bytes_received(summary))


def _list_times(table: Table) -> Iterator[tuple[str, str]]:
    """All figures of the latency, or a few of each time: the page has the table of all."""
    is_single = [column.key for column in table.columns[1:]] == [Time.LATENCY]
    for place, column in enumerate(table.columns[1:], 1):
        for row in table.rows:
            figure, text = row.cells[0].text, row.cells[place].text
            if is_single:
                yield figure, text
            elif figure == "p99" or (figure == "p50" and column.key != Time.LATENESS):
                yield f"{column.head} {figure}", text


def _build_metric(name: str, value: str) -> Html:
    return element("div", element("dt", name), element("dd", value))
