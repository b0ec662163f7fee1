"""`oku failures`: which requests of a run failed, as ranges of indices or one by one."""

import csv
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import click
import msgspec

from oku_cli.backends.run_backend import RunBackend, open_backend
from oku_cli.backends.run_lookup import find_run
from oku_cli.exit_code import ExitCode
from oku_cli.formatting import format_count, format_outcome
from oku_cli.options.backend_options import backend_options
from oku_cli.options.option_group import GroupedCommand, OptionGroup, option
from oku_cli.options.run_argument import run_argument
from oku_cli.remote.endpoint import CoordinatorRef
from oku_cli.remote.follow import run_async
from oku_cli.terminal.printable import make_printable, write_line, write_note
from oku_core.accounting.outcome import Outcome
from oku_core.errors import UserError, format_value
from oku_core.results.failed_range import FailedRange, FailuresHead
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.request_line import RequestLines
from oku_core.spec.request_template import list_target_names
from oku_core.spec.spec import Spec

_OUTCOMES = [outcome.value for outcome in Outcome if outcome is not Outcome.OK]
_WIDEST_RANGE = 25
_decode_head = msgspec.json.Decoder(FailuresHead).decode
_decode_range = msgspec.json.Decoder(FailedRange).decode


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
@option(OptionGroup.OUTPUT, "--csv", "as_csv", is_flag=True, help="Print a line of CSV for each request.")
@backend_options
def command(
    run: str,
    outcome: str | None,
    target: str | None,
    as_csv: bool,  # noqa: FBT001  # click passes flags so
    data_dir: Path,
    coordinator: CoordinatorRef | None,
) -> int:
    """List the requests of a run that failed, by their indices.

    RUN is latest, an id, a name, or any unique part of an id.
    """
    wanted = Outcome(outcome) if outcome is not None else None
    return run_async(_list(run, wanted, target, data_dir, coordinator, as_csv=as_csv))


async def _list(
    reference: str,
    outcome: Outcome | None,
    target: str | None,
    data_dir: Path,
    coordinator: CoordinatorRef | None,
    *,
    as_csv: bool,
) -> ExitCode:
    async with open_backend(coordinator, data_dir) as backend:
        run = await find_run(backend, reference, takes_newest=True)
        head, ranges = await _open(backend, run)
        spec = parse_spec(Source("spec", head.spec))
        if target is not None and target not in list_target_names(spec):
            names = ", ".join(filter(None, list_target_names(spec))) or "no target with a name"
            raise UserError(f"--target: {format_value(target)} is not in run {run}, which has {names}")
        shown, listed = _Printer(spec, as_csv=as_csv), 0
        async for failed in ranges:
            for each in shown.split(failed):
                if outcome in (None, each.outcome) and target in (None, each.target):
                    shown.show(each)
                    listed += each.stop - each.start
    if not listed:
        write_note(f"run {run} has no failed request{' of these' if outcome or target else ''}")
    if head.unlisted:
        write_note(
            f"this list is not complete: {format_count(head.unlisted)} of {format_count(head.requests)}"
            " failed requests are not in it, as they were in too many ranges"
        )
    return ExitCode.COMPLETED


async def _open(backend: RunBackend, run: str) -> tuple[FailuresHead, AsyncIterator[FailedRange]]:
    lines = backend.read_failures(run)
    first = await anext(aiter(lines))
    head = _decode_head(first.rpartition(b',"failures":[')[0] + b"}")
    return head, _read_ranges(lines)


async def _read_ranges(lines: AsyncIterator[bytes]) -> AsyncIterator[FailedRange]:
    async for line in lines:
        if line.startswith(b"]"):
            return
        yield _decode_range(line.removeprefix(b","))


class _Printer:
    """Writes ranges as they come."""

    def __init__(self, spec: Spec, *, as_csv: bool) -> None:
        self._requests = RequestLines(spec)
        self._has_targets = list_target_names(spec) != ("",)
        self._csv = csv.writer(sys.stdout, lineterminator="\n") if as_csv else None
        if self._csv is not None:
            self._csv.writerow(("index", "outcome", "target", "method", "url"))

    def split(self, failed: FailedRange) -> Iterator[FailedRange]:
        """A range by target: what no worker had is in ranges of all targets."""
        if failed.target or not self._has_targets:
            yield failed
            return
        start, target = failed.start, self._requests.build(failed.start).target
        for index in range(failed.start + 1, failed.stop):
            following = self._requests.build(index).target
            if following != target:
                yield FailedRange(start=start, stop=index, outcome=failed.outcome, target=target)
                start, target = index, following
        yield FailedRange(start=start, stop=failed.stop, outcome=failed.outcome, target=target)

    def show(self, failed: FailedRange) -> None:
        """Write a range, or each of its requests."""
        if self._csv is not None:
            self._csv.writerows(self._list_rows(failed))
            return
        last = failed.stop - 1
        indices = f"{failed.start}" if failed.start == last else f"{failed.start}-{last}"
        first = self._requests.build(failed.start)
        url = f"{first.text}{' …' if failed.start != last else ''}"
        line = f"{indices:<{_WIDEST_RANGE}} {format_outcome(failed.outcome):<18} {first.target} {url}"
        write_line(make_printable(" ".join(line.split(" ")).rstrip()))

    def _list_rows(self, failed: FailedRange) -> Iterator[tuple[object, ...]]:
        for index in range(failed.start, failed.stop):
            request = self._requests.build(index)
            yield index, failed.outcome, failed.target or request.target, request.method, request.url
