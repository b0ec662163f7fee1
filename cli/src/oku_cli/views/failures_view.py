"""Shows why requests of a run failed, the most frequent reasons first, and what a retry has completed."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from oku_cli.terminal.layout import AlignedTable, Flow
from oku_cli.terminal.palette import BAD, GOOD, STRONG
from oku_cli.terminal.printable import make_printable
from oku_core.accounting.failure_reason import UNTRUSTED
from oku_core.results.summary import CompletesSummary, FailureSummary
from oku_core.tables.formatting import format_count, format_outcome, format_share

MOST_SHOWN = 8
"""How many reasons the end screen shows; the summary as JSON has all of them."""
MOST_TRACEBACKS, MOST_TRACEBACK_LINES = 3, 8
"""How many tracebacks it shows, and the end of each; the report has the whole of them."""
_CERTIFICATE_ADVICE = "--cacert trusts another issuer, --insecure any certificate"


def build_failures(failures: Sequence[FailureSummary]) -> RenderableType:
    """List reasons with their counts and the first and last index of each, and what to do about some."""
    has_targets = any(failure.target for failure in failures)
    table = AlignedTable((*(("left",) if has_targets else ()), "left", "left", "right", "left"))
    for failure in failures[:MOST_SHOWN]:
        target = [make_printable(failure.target)] if has_targets else []
        table.add_row(
            *target,
            format_outcome(failure.outcome),
            make_printable(failure.reason),
            format_count(failure.requests),
            describe_indices(failure),
            style=BAD,
        )
    lines: list[RenderableType] = [table]
    if (more := len(failures) - MOST_SHOWN) > 0:
        lines.append(Text(f"and {more} other reasons"))
    if any(failure.reason.startswith(UNTRUSTED) for failure in failures):
        lines.append(Text(_CERTIFICATE_ADVICE))
    traced = [failure for failure in failures[:MOST_SHOWN] if failure.traceback]
    for failure in traced[:MOST_TRACEBACKS]:
        lines += ["", *map(Text, shorten_traceback(failure.traceback))]
    return Group(*lines)


def shorten_traceback(traceback: str) -> list[str]:
    """The end of a traceback, where the exception was raised, as lines that are safe for a terminal."""
    lines = [make_printable(line) for line in traceback.rstrip().splitlines()]
    if len(lines) <= MOST_TRACEBACK_LINES:
        return lines
    left_out = len(lines) - MOST_TRACEBACK_LINES
    return [f"… {left_out} lines before, which the report has", *lines[-MOST_TRACEBACK_LINES:]]


def describe_indices(failure: FailureSummary) -> str:
    """The first and the last index of a reason, in words; empty if they are not known."""
    if failure.first_index is None or failure.last_index is None:
        return ""
    if failure.first_index == failure.last_index:
        return f"index {failure.first_index}"
    return f"indices {failure.first_index} to {failure.last_index}"


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
