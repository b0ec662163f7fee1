"""The summary of a run as Markdown, for the page of a CI run, such as the step summary of GitHub Actions."""

from collections.abc import Iterator, Sequence

import msgspec

from oku_cli.exit_code import ExitCode
from oku_cli.terminal.ci_commands import defuse
from oku_cli.terminal.threshold_text import describe_standing, describe_verdict
from oku_cli.views.exit_reasons import ExitReason, list_exit_reasons
from oku_cli.views.failures_view import MOST_TRACEBACKS, shorten_traceback
from oku_cli.views.inner_view import INNER_NOTE
from oku_cli.views.validity_view import describe_flag
from oku_core.accounting.run_state import REST_STATES
from oku_core.results.summary import Summary, Unit
from oku_core.spec.values.quantity import format_bytes, format_duration
from oku_core.tables.formatting import (
    NOTHING,
    format_count,
    format_latency,
    format_ok,
    format_outcome,
    format_rate,
    format_requests,
    format_share,
    in_units,
)

_QUANTILES = ("p50", "p90", "p99", "p99_9", "max")
_MOST_REASONS = 10
_SPECIAL = str.maketrans({character: f"\\{character}" for character in r"\`*_{}[]<>#|~&"})


def build_markdown(
    summary: Summary, *, allows_undecided: bool = False, lost_output: Sequence[str] = ()
) -> bytes:
    """Build the file: verdict, thresholds, why requests failed, figures and flags of a run.

    Args:
        summary: of the run.
        allows_undecided: whether an undecided threshold leaves the exit code as it is.
        lost_output: why other files or standard output could not be written.
    """
    reasons = list_exit_reasons(summary, allows_undecided=allows_undecided, lost_output=lost_output)
    # What is escaped for Markdown has no mark any more; a block of code knows no escapes.
    return defuse("\n".join(_iter_lines(summary, reasons)) + "\n").encode()


def build_unfinished_markdown(reason: ExitReason) -> bytes:
    """Build the file of a command that has no summary, because it ended before its run was at rest."""
    return ("\n".join(["## unfinished", "", *_list_reasons([reason])]) + "\n").encode()


def _iter_lines(summary: Summary, reasons: Sequence[ExitReason]) -> Iterator[str]:
    yield f"## {_escape(summary.name or f'run {summary.run}')}: {_choose_verdict(summary, reasons)}"
    yield ""
    ok = format_ok(summary.outcomes.ok, summary.accounted)
    parts = (f"run {summary.run}", summary.state, ok, summary.target, summary.load)
    yield _escape(" · ".join(filter(None, parts)))
    if reasons and summary.state in REST_STATES:
        yield ""
        yield from _list_reasons(reasons)
    if summary.thresholds:
        yield ""
        yield from _build_table(
            ("threshold", "verdict", "how it stands"),
            [
                (each.expression, describe_verdict(each), describe_standing(each))
                for each in summary.thresholds
            ],
        )
    if summary.failures:
        yield ""
        yield from _list_failures(summary)
    yield ""
    yield from _build_table(("figure", "value"), list(_iter_figures(summary)))
    if summary.phases:
        yield ""
        yield from _list_phases(summary)
    if summary.inner_requests:
        yield ""
        yield from _list_inner(summary)
    if summary.validity:
        yield ""
        for validity in summary.validity:
            flag = validity.flag.replace("_", " ")
            yield f"- {_escape(f'{flag}: {describe_flag(validity, summary.unit)}')}"


def _choose_verdict(summary: Summary, reasons: Sequence[ExitReason]) -> str:
    """The word that goes with the exit code."""
    codes = {reason.code for reason in reasons}
    if ExitCode.UNBALANCED in codes:
        return "unbalanced"
    if ExitCode.CUT_SHORT in codes and ExitCode.NOT_PASSED not in codes:
        return summary.state
    return summary.verdict or summary.state


def _list_reasons(reasons: Sequence[ExitReason]) -> Iterator[str]:
    yield f"Exit code {reasons[0].code:d}:"
    yield ""
    yield from (f"- **{_escape(reason.text)}**" for reason in reasons)


def _list_failures(summary: Summary) -> Iterator[str]:
    """Why requests were not ok: the most frequent reasons, with the target if the run has several."""
    has_targets = any(failure.target for failure in summary.failures)
    heads = (*(("target",) if has_targets else ()), "outcome", "reason", in_units("requests", summary.unit))
    heads = (*heads, "first index")
    rows = [
        (
            *((failure.target,) if has_targets else ()),
            format_outcome(failure.outcome),
            failure.reason,
            format_count(failure.requests),
            "" if failure.first_index is None else str(failure.first_index),
        )
        for failure in summary.failures[:_MOST_REASONS]
    ]
    yield from _build_table(heads, rows)
    yield from _list_tracebacks(summary)
    if more := len(summary.failures) - len(rows):
        yield ""
        yield f"and {format_count(more)} more"


def _list_tracebacks(summary: Summary) -> Iterator[str]:
    """The ends of tracebacks, as blocks of code: in those that are indented nothing is Markdown."""
    traced = [failure for failure in summary.failures[:_MOST_REASONS] if failure.traceback]
    for number, failure in enumerate(traced[:MOST_TRACEBACKS]):
        # A comment keeps two blocks in a row apart.
        yield from ("", "<!-- -->", "") if number else ("",)
        yield from (f"    {line}" for line in shorten_traceback(failure.traceback))


def _list_phases(summary: Summary) -> Iterator[str]:
    """The requests due and completed in each stage and in the warm-up."""
    heads = ("phase", "due", "completed", "ok", "planned/s", "sent/s", "completed/s", "p50", "p99")
    rows = [
        (
            phase.name,
            NOTHING if phase.due is None else format_count(phase.due),
            format_count(phase.completed),
            format_count(phase.outcomes.ok),
            NOTHING if phase.planned_rps is None else format_rate(phase.planned_rps),
            format_rate(phase.sent_rps),
            format_rate(phase.completed_rps),
            format_latency(phase.latency_ms.p50),
            format_latency(phase.latency_ms.p99),
        )
        for phase in summary.phases
    ]
    yield "### Phases"
    yield ""
    yield from _build_table(heads, rows)


def _list_inner(summary: Summary) -> Iterator[str]:
    """The requests of user code, by name."""
    heads = ("name", "requests", "ok", "failed", "p50", "p95", "p99", "rate", "bytes")
    rows = [
        (
            each.name,
            format_count(each.requests),
            format_count(each.outcomes.ok),
            format_count(each.requests - each.outcomes.ok),
            *(format_latency(getattr(each.latency_ms, quantile)) for quantile in ("p50", "p95", "p99")),
            format_rate(each.rate_rps),
            format_bytes(each.bytes_received),
        )
        for each in summary.inner_requests
    ]
    yield "### Requests by name"
    yield ""
    yield from _build_table(heads, rows)
    yield ""
    yield INNER_NOTE


def _iter_figures(summary: Summary) -> Iterator[tuple[str, str]]:
    units = "" if summary.unit is Unit.REQUEST else f" {in_units('requests', summary.unit)}"
    yield "accounted", f"{format_count(summary.accounted)} of {format_requests(summary.requests)}" + units
    for outcome, count in msgspec.structs.asdict(summary.outcomes).items():
        if count or outcome == "ok":
            yield (
                outcome.replace("_", " "),
                f"{format_count(count)}, {format_share(count, summary.accounted)}",
            )
    if summary.active_s:
        length = format_duration(summary.measured_s)
        rate = format_rate(summary.throughput_rps)
        if summary.planned_rps is not None:
            rate = f"{rate} sent, {format_rate(summary.completed_rps)} completed"
        yield "throughput", f"{rate} over {length}"
    if summary.planned_rps is not None:
        yield "planned", format_rate(summary.planned_rps)
    times = (
        ("latency", summary.latency_ms),
        ("response time", summary.response_time_ms),
        ("lateness", summary.lateness_ms),
    )
    for name, figures in times:
        if figures.max is not None:
            values = (
                f"{key.replace('_', '.')} {format_latency(getattr(figures, key))}" for key in _QUANTILES
            )
            yield name, ", ".join(values)


def _build_table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(map(_escape, row))} |"


def _escape(text: str) -> str:
    """Text of others in one line, with nothing in it that Markdown would take for its own."""
    return "".join(character if character.isprintable() else " " for character in text).translate(_SPECIAL)
