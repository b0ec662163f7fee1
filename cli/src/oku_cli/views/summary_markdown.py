"""The summary of a run as Markdown, for the page of a CI run, such as the step summary of GitHub Actions."""

from collections.abc import Iterator, Sequence

from oku_cli.exit_code import ExitCode
from oku_cli.terminal.ci_commands import defuse
from oku_cli.views.account_view import describe_flag
from oku_cli.views.exit_reasons import ExitReason, list_exit_reasons
from oku_cli.views.summary_view import MOST_TRACEBACKS, shorten_traceback
from oku_core.accounting.run_state import REST_STATES
from oku_core.summary.summary import Summary
from oku_core.tables.formatting import format_count, format_ok
from oku_core.tables.outcome_tables import build_failures, build_outcomes
from oku_core.tables.part_tables import build_names, build_phases, build_targets
from oku_core.tables.summary_tables import build_figures
from oku_core.tables.table import Rank, Role, Table, cut_rows
from oku_core.tables.threshold_tables import build_thresholds
from oku_core.tables.time_tables import build_times

_MOST_REASONS = 10
_SPECIAL = str.maketrans({character: f"\\{character}" for character in r"\`*_{}[]<>#|~&"})


def build_markdown(
    summary: Summary, *, allows_undecided: bool = False, lost_output: Sequence[str] = ()
) -> bytes:
    """Build the file: verdict, thresholds, why requests failed, figures and flags of a run."""
    reasons = list_exit_reasons(summary, allows_undecided=allows_undecided, lost_output=lost_output)
    # Text escaped for Markdown contains no marks any more; a code block has no escapes.
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
    yield from _list_titled(build_names(summary.inner_requests))
    yield from _list_table(build_thresholds(summary.thresholds))
    if summary.failures:
        yield from _list_failures(summary)
    for table in (build_figures(summary), build_outcomes(summary), build_times(summary)):
        yield from _list_table(table)
    for table in (build_phases(summary), build_targets(summary)):
        yield from _list_titled(table)
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
    """Why requests were not ok: the most frequent reasons."""
    table = cut_rows(build_failures(summary), _MOST_REASONS)
    yield from _list_table(table)
    yield from _list_tracebacks(summary)
    if table.left_out:
        yield ""
        yield f"and {format_count(table.left_out)} more"


def _list_tracebacks(summary: Summary) -> Iterator[str]:
    """The ends of tracebacks, as blocks of code: in those that are indented nothing is Markdown."""
    traced = [failure for failure in summary.failures[:_MOST_REASONS] if failure.traceback]
    for number, failure in enumerate(traced[:MOST_TRACEBACKS]):
        # A comment keeps two blocks in a row apart.
        yield from ("", "<!-- -->", "") if number else ("",)
        yield from (f"    {line}" for line in shorten_traceback(failure.traceback))


def _list_titled(table: Table) -> Iterator[str]:
    """The table under its title, with its note; nothing if it has no rows."""
    if table.rows:
        yield from ("", f"### {table.title}", *_list_table(table))
        yield from (("", _escape(table.note)) if table.note else ())


def _list_table(table: Table) -> Iterator[str]:
    """A blank line and the table; nothing if it has no rows."""
    if not table.rows:
        return
    has_groups = len({column.group for column in table.columns if column.group}) > 1
    shown = [
        (place, column)
        for place, column in enumerate(table.columns)
        if column.role is not Role.BAR and column.rank < Rank.DETAIL
    ]
    heads = (f"{column.group} {column.head}" if has_groups else column.head for _, column in shown)
    yield ""
    yield f"| {' | '.join(head.strip() for head in heads)} |"
    yield f"|{'|'.join(' ---: ' if column.role is Role.NUMBER else ' --- ' for _, column in shown)}|"
    for row in table.rows:
        yield f"| {' | '.join(_escape(row.cells[place].text) for place, _ in shown)} |"


def _escape(text: str) -> str:
    """Text of others in one line, with nothing in it that Markdown would take for its own."""
    return "".join(character if character.isprintable() else " " for character in text).translate(_SPECIAL)
