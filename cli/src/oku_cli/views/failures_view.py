"""Shows why requests of a run failed, the most frequent reasons first, and what a retry has completed."""

from rich.console import Group, RenderableType
from rich.text import Text

from oku_cli.terminal.layout import Flow
from oku_cli.terminal.palette import BAD, GOOD, STRONG
from oku_cli.terminal.printable import make_printable
from oku_cli.terminal.table_view import TableView
from oku_core.accounting.failure_reason import UNTRUSTED
from oku_core.results.summary import CompletesSummary, Summary
from oku_core.tables.formatting import format_count, format_share
from oku_core.tables.outcome_tables import build_failures as build_failure_table
from oku_core.tables.table import Table, cut_rows

MOST_SHOWN = 8
"""How many reasons the end screen shows; the summary as JSON has all of them."""
MOST_TRACEBACKS, MOST_TRACEBACK_LINES = 3, 8
"""How many tracebacks it shows, and the end of each; the report has the whole of them."""
_CERTIFICATE_ADVICE = "--cacert trusts another issuer, --insecure any certificate"


def build_failures(summary: Summary) -> RenderableType:
    """List reasons with their counts and the first and last index of each, and what to do about some."""
    failures = summary.failures
    lines = list_reasons(build_failure_table(summary), MOST_SHOWN)
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
    """Show how many requests of the first run are ok with those of its retries."""
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
    return Flow(*phrases)
