"""`oku resume` and `oku retry`: they send the requests of a run that are left, or that failed."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click
import msgspec

from oku_cli.backends.client import BegunRun, Client
from oku_cli.backends.data_dir import FolderHeldError
from oku_cli.backends.run_backend import RunPlace, find_run
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import run_async
from oku_cli.follow.run_start import RunStart, refuse_stack_flags, run_remotely
from oku_cli.follow.watch import Watch
from oku_cli.local.local_run import run_locally
from oku_cli.options.filter_options import filter_options
from oku_cli.options.option_group import CommandT, JsonCommand, add_options, option
from oku_cli.options.run_options import place_options, run_argument
from oku_cli.options.stack_options import StackOptions, stack_options
from oku_cli.options.watch_options import FILE_HINT, pick_watch, sigterm_option, watch_options
from oku_core.accounting.run_state import FINAL_STATES, REST_STATES, RunState, is_resumable
from oku_core.errors import UserError
from oku_core.spec.fields import FieldGroup
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Spec

if TYPE_CHECKING:
    from oku_coordinator.ledger.storage.records import RunRecord
    from oku_core.results.failure_filter import FailureFilter


def _add_options(when: str = "") -> Callable[[CommandT], CommandT]:
    """The options of a command that calls `_ExistingRun.carry_out`.

    Args:
        when: from when on the run has the workers and delay servers, in words for the help.
    """
    return add_options(
        option(FieldGroup.LOAD, "-w", "--workers", metavar="N", help=f"Use N workers{when}."),
        option(
            FieldGroup.DELAY_SERVERS, "--servers", metavar="N", help=f"Use N delay server processes{when}."
        ),
        place_options,
        watch_options,
        sigterm_option,
        stack_options,
    )


@click.command(name="resume", cls=JsonCommand, file_hint=FILE_HINT)
@run_argument(states=(RunState.PAUSED, RunState.FAILED))
@_add_options(" from now on")
def resume(run: str, place: RunPlace, **options: Any) -> int:
    """Resume a paused or interrupted run, even days later.

    RUN is latest, an id, a name, or any unique part of an id.
    """
    return _Resumed(run, place).carry_out(options)


@click.command(name="retry", cls=JsonCommand, file_hint=FILE_HINT)
@run_argument(states=REST_STATES)
@filter_options
@_add_options()
def retry(run: str, place: RunPlace, only: "FailureFilter", **options: Any) -> int:
    """Send the failed requests of a run again, each under its index.

    It makes a new run, whose summary shows how many of the first one are ok now. A run with a rate is tried
    again without it. RUN is latest, an id, a name, or any unique part of an id.
    """
    return _Retried(run, place, only).carry_out(options)


@dataclass(frozen=True)
class _ExistingRun(ABC):
    """A run that exists, as the user named it, and how a command begins with it."""

    reference: str
    place: RunPlace

    @abstractmethod
    def start(self, reference: str) -> RunStart:
        """Begin at a coordinator."""

    @abstractmethod
    def start_locally(self, record: "RunRecord") -> RunStart:
        """Begin with the record of the run; `UserError` if it cannot be done."""

    def carry_out(self, options: dict[str, Any]) -> int:
        """Begin, and follow the run to its end; return the exit code."""
        watch = pick_watch(options)
        with watch.explaining_mistakes():
            return self._carry_out(options, watch)

    def _carry_out(self, options: dict[str, Any], watch: Watch) -> int:
        stack = StackOptions.pick(options)
        given = parse_spec(Source(None, {key: value for key, value in options.items() if value is not None}))
        if self.place.coordinator is None:
            watch = replace(watch, grafana=stack.check_grafana(watch.grafana))
            return run_async(self._run_locally(given, stack, watch), watch)
        stack.refuse()
        refuse_stack_flags(workers=given.workers, servers=given.servers)
        return run_async(run_remotely(self.place.coordinator, self.start(self.reference), watch), watch)

    async def _run_locally(self, given: Spec, stack: StackOptions, watch: Watch) -> ExitCode:
        from oku_cli.backends.ledger_backend import LedgerBackend  # noqa: PLC0415  # only what is used

        backend = LedgerBackend(self.place.folder)
        with suppress(FolderHeldError):  # its stack has paused what a killed one left running
            backend = LedgerBackend.settle(self.place.folder)
        record = backend.require_run(await find_run(backend, self.reference))
        start, spec = self.start_locally(record), record.spec
        shape = msgspec.structs.replace(
            spec, workers=given.workers or spec.workers, servers=given.servers or spec.servers
        )
        return await run_locally(self.place.folder, stack.build_plan(shape), start, watch)


class _Resumed(_ExistingRun):
    def start(self, reference: str) -> RunStart:
        async def send(client: Client) -> BegunRun:
            return await client.resume(await find_run(client, reference))

        return RunStart(send=send, resumed=reference)

    def start_locally(self, record: "RunRecord") -> RunStart:
        if record.state in FINAL_STATES and not is_resumable(record.state, is_broken=record.is_broken):
            raise UserError(f"run {record.run} is {record.state}, it cannot be resumed")
        return RunStart.resume(record.run, record.spec)


@dataclass(frozen=True)
class _Retried(_ExistingRun):
    only: "FailureFilter"

    def start(self, reference: str) -> RunStart:
        async def send(client: Client) -> BegunRun:
            return await client.retry(await find_run(client, reference), self.only)

        return RunStart(send=send, name=f"retry of {reference}")

    def start_locally(self, record: "RunRecord") -> RunStart:
        if record.outcomes[0] == record.accounted:
            raise UserError(f"run {record.run} has no failed request to retry")
        return self.start(record.run)
