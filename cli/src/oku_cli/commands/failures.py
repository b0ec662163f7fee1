"""`oku failures`: which requests of a run failed, as ranges of indices or one by one."""

import csv
import sys
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple

import click

from oku_cli.backends.run_backend import RunData, RunPlace, find_run, open_failures
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import as_command
from oku_cli.options.option_group import GroupedCommand, OptionGroup, json_option, option
from oku_cli.options.run_options import place_options, run_argument
from oku_cli.terminal.ci_commands import defuse
from oku_cli.terminal.json_output import print_json
from oku_cli.terminal.printable import write_line, write_note
from oku_core.accounting.outcome import Outcome
from oku_core.errors import UserError, format_value
from oku_core.results.run_api import FailedRange, FailuresHead
from oku_core.spec.description import RequestLines
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.request_template import list_target_names
from oku_core.spec.spec import Spec
from oku_core.tables.formatting import format_count, format_outcome

_OUTCOMES = [outcome.value for outcome in Outcome if outcome is not Outcome.OK]
_WIDEST_RANGE = 25
_CSV_HEAD = ("index", "outcome", "target", "method", "url")


@click.command(name="failures", cls=GroupedCommand)
@run_argument()
@option(
    OptionGroup.OUTPUT,
    "--outcome",
    metavar="OUTCOME",
    type=click.Choice(_OUTCOMES),
    help="Only those with this outcome, such as timeout.",
)
@option(OptionGroup.OUTPUT, "--target", metavar="NAME", help="Only those of this target.")
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
async def command(run: str, place: RunPlace, *, as_csv: bool, as_json: bool, **only: str | None) -> ExitCode:
    """List the requests of a run that failed, by their indices.

    RUN is latest, an id, a name, or any unique part of an id.
    """
    if as_csv and as_json:
        raise UserError("--csv: cannot be combined with --json")
    outcome = only["outcome"]
    wanted = _Wanted(None if outcome is None else Outcome(outcome), only["target"])
    async with place.open() as backend:
        run = await find_run(backend, run, takes_newest=True)
        head, ranges = await open_failures(backend, run)
        spec = parse_spec(Source("spec", head.spec))
        wanted.check(spec, run)
        requests = RequestLines(spec)
        split = _split_all(ranges, requests, wanted, has_targets=list_target_names(spec) != ("",))
        print_all = _print_csv if as_csv else _print_json if as_json else _print_lines
        listed = await print_all(_Listed(head, requests, RunData(backend, run, spec), split))
    if not listed:
        write_note(f"run {run} has no failed request{' of these' if any(wanted) else ''}")
    if head.unlisted:
        write_note(
            f"this list is not complete: {format_count(head.unlisted)} of {format_count(head.requests)}"
            " failed requests are not in it, as they were in too many ranges"
        )
    return ExitCode.COMPLETED


class _Wanted(NamedTuple):
    """Which failures are listed; all kinds without outcome or target."""

    outcome: Outcome | None
    target: str | None

    def check(self, spec: Spec, run: str) -> None:
        """Refuse a target that the run does not have."""
        if self.target is not None and self.target not in list_target_names(spec):
            names = ", ".join(filter(None, list_target_names(spec))) or "no target with a name"
            raise UserError(f"--target: {format_value(self.target)} is not in run {run}, which has {names}")

    def has(self, failed: FailedRange) -> bool:
        """Whether a range is one of them."""
        return self.outcome in (None, failed.outcome) and self.target in (None, failed.target)


class _Listed(NamedTuple):
    """The failures of a run that are listed."""

    head: FailuresHead
    requests: RequestLines
    data: RunData
    ranges: AsyncIterator[FailedRange]


async def _split_all(
    ranges: AsyncIterator[FailedRange], requests: RequestLines, wanted: _Wanted, *, has_targets: bool
) -> AsyncIterator[FailedRange]:
    """The ranges that are wanted, each of one target."""
    async for failed in ranges:
        for each in _split(failed, requests) if has_targets and not failed.target else (failed,):
            if wanted.has(each):
                yield each


def _split(failed: FailedRange, requests: RequestLines) -> Iterator[FailedRange]:
    """A range by target: what no worker had is in ranges of all targets."""
    start, target = failed.start, requests.find_target(failed.start)
    for index in range(failed.start + 1, failed.stop):
        following = requests.find_target(index)
        if following != target:
            yield FailedRange(start=start, stop=index, outcome=failed.outcome, target=target)
            start, target = index, following
    yield FailedRange(start=start, stop=failed.stop, outcome=failed.outcome, target=target)


async def _print_lines(listed: _Listed) -> int:
    """A line for each range, with its first request; returns how many requests they are."""
    count = 0
    async for failed in listed.ranges:
        last = failed.stop - 1
        indices = f"{failed.start}" if failed.start == last else f"{failed.start}-{last}"
        first = listed.requests.build(failed.start, await listed.data.fetch(failed.start))
        url = f"{first.text}{' …' if first.text and failed.start != last else ''}"
        words = f"{indices:<{_WIDEST_RANGE}}", f"{format_outcome(failed.outcome):<18}", first.target, url
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
