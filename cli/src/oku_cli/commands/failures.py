"""`oku failures`: which requests of a run failed, as ranges of indices or one by one."""

import csv
import sys
from collections import Counter
from collections.abc import AsyncIterator
from typing import NamedTuple

import click

from oku_cli.backends.run_backend import RunData, RunPlace, find_run, open_failures
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import as_command
from oku_cli.options.filter_options import filter_options
from oku_cli.options.option_group import GroupedCommand, OptionGroup, json_option, option
from oku_cli.options.run_options import place_options, run_argument
from oku_cli.terminal.ci_commands import defuse
from oku_cli.terminal.json_output import print_json
from oku_cli.terminal.printable import write_line, write_note
from oku_core.accounting.outcome import OTHER
from oku_core.errors import UserError
from oku_core.results.failure_filter import FailureFilter, FailureSplitter
from oku_core.results.run_api import FailedRange, FailuresHead
from oku_core.spec.description import RequestLines
from oku_core.spec.parser import Source, parse_spec
from oku_core.tables.formatting import format_count, format_outcome

_WIDEST_RANGE = 25
_WIDEST_REASON = 20
_CSV_HEAD = ("index", "outcome", "status", "reason", "target", "method", "url")


@click.command(name="failures", cls=GroupedCommand)
@run_argument()
@filter_options
@option(
    OptionGroup.OUTPUT,
    "--csv",
    "as_csv",
    is_flag=True,
    help="Print a line of CSV for each request, with its row.",
)
@json_option("the ranges")
@place_options
@as_command
async def command(run: str, place: RunPlace, only: FailureFilter, *, as_csv: bool, as_json: bool) -> ExitCode:
    """List the requests of a run that failed, by their indices, and why.

    RUN is latest, an id, a name, or any unique part of an id.
    """
    if as_csv and as_json:
        raise UserError("--csv: cannot be combined with --json")
    unjudged = Counter[str]()
    async with place.open() as backend:
        run = await find_run(backend, run, takes_newest=True)
        head, ranges = await open_failures(backend, run)
        spec = parse_spec(Source("spec", head.spec))
        only.check(spec, run)
        requests = RequestLines(spec)
        selected = _iter_selected(ranges, FailureSplitter(spec, requests), only, unjudged)
        print_all = _print_csv if as_csv else _print_json if as_json else _print_lines
        listed = await print_all(_Listed(head, requests, RunData(backend, run, spec), selected))
    if not listed:
        write_note(f"run {run} has no failed request{'' if only.selects_all else ' of these'}")
    if unjudged:
        write_note(
            f"this list may not be complete: of {format_count(unjudged.total())} failed requests the reason"
            f" is not kept; --reason {OTHER} lists them"
        )
    if head.unlisted:
        write_note(
            f"this list is not complete: {format_count(head.unlisted)} of {format_count(head.requests)}"
            " failed requests are not in it, as they were in too many ranges"
        )
    return ExitCode.COMPLETED


class _Listed(NamedTuple):
    """The failures of a run that are listed."""

    head: FailuresHead
    requests: RequestLines
    data: RunData
    ranges: AsyncIterator[FailedRange]


async def _iter_selected(
    ranges: AsyncIterator[FailedRange], splitter: FailureSplitter, only: FailureFilter, unjudged: Counter[str]
) -> AsyncIterator[FailedRange]:
    """The ranges that are selected, each of one target; counts requests whose reason is not known."""
    async for failed in ranges:
        for each in splitter.split(failed):
            if only.selects(each):
                yield each
            elif only.lacks_reason(each):
                unjudged[OTHER] += each.stop - each.start


async def _print_lines(listed: _Listed) -> int:
    """A line for each range, with its first request; returns how many requests they are."""
    count = 0
    async for failed in listed.ranges:
        last = failed.stop - 1
        indices = f"{failed.start}" if failed.start == last else f"{failed.start}-{last}"
        first = listed.requests.build(failed.start, await listed.data.fetch(failed.start))
        url = f"{first.text}{' …' if first.text and failed.start != last else ''}"
        outcome, reason = f"{format_outcome(failed.outcome):<18}", f"{failed.reason:<{_WIDEST_REASON}}"
        words = f"{indices:<{_WIDEST_RANGE}}", outcome, reason, first.target, url
        write_line(" ".join(filter(None, words)).rstrip())
        count += failed.stop - failed.start
    return count


class _CsvOutput:
    """Standard output for CSV: UTF-8 like a file, even if the terminal has another encoding."""

    def write(self, line: str) -> None:
        """Write a line; it may have line breaks in quotes."""
        sys.stdout.buffer.write(defuse(line).encode(errors="replace"))


async def _print_csv(listed: _Listed) -> int:
    """A line of CSV for each request, with its row; returns how many requests there are."""
    columns, count = listed.data.columns, 0
    write = csv.writer(_CsvOutput(), lineterminator="\n").writerow
    # A prefix distinguishes a column with the name of one of ours.
    write((*_CSV_HEAD, *(f"data.{column}" if column in _CSV_HEAD else column for column in columns)))
    async for failed in listed.ranges:
        for index in range(failed.start, failed.stop):
            row = await listed.data.fetch(index)
            request = listed.requests.build(index, row)
            write(
                (
                    index,
                    failed.outcome,
                    failed.status,
                    failed.reason,
                    failed.target or request.target,
                    request.method,
                    request.url,
                    *((row or {}).get(column, "") for column in columns),
                )
            )
        count += failed.stop - failed.start
    return count


async def _print_json(listed: _Listed) -> int:
    """One document with all ranges; returns how many requests they are."""
    head, ranges = listed.head, [failed async for failed in listed.ranges]
    print_json({"run": head.run, "requests": head.requests, "unlisted": head.unlisted, "failures": ranges})
    return sum(failed.stop - failed.start for failed in ranges)
