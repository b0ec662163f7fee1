"""`oku wait`: follows the run of another command until it rests, and returns its exit code."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from oku_cli.backends.data_dir import DataDir, FolderHeldError
from oku_cli.backends.run_backend import RunBackend, find_run
from oku_cli.comparison.seconds_reader import Histories, add_intervals
from oku_cli.exit_code import ExitCode
from oku_cli.options.backend_options import backend_options
from oku_cli.options.option_group import JsonCommand
from oku_cli.options.run_argument import run_argument
from oku_cli.options.watch_options import FILE_HINT, pick_watch, watch_options
from oku_cli.process.interrupt import Interrupts, SignalAction
from oku_cli.process.interrupt_hints import InterruptHints
from oku_cli.remote.client import Client
from oku_cli.remote.endpoint import CoordinatorRef, UnreachableError
from oku_cli.remote.follow import Follower, run_async, show_end
from oku_cli.remote.outage import try_again
from oku_cli.remote.remote_run import build_title, try_add_intervals
from oku_cli.remote.watch import Watch
from oku_core.results.summary import Summary

if TYPE_CHECKING:
    from oku_cli.backends.ledger_backend import LedgerBackend

_T = TypeVar("_T")

_LOOK_S = 0.2


@click.command(name="wait", cls=JsonCommand, file_hint=FILE_HINT)
@run_argument()
@backend_options
@watch_options
def command(run: str, data_dir: Path, coordinator: CoordinatorRef | None, **options: Any) -> int:
    """Wait for a run to end, and end with its exit code.

    If the run is over or paused, the command ends at once. Ctrl-C and SIGTERM end only this command; the run
    goes on. RUN is latest, an id, a name, or any unique part of an id.
    """
    watch = pick_watch(options)
    with watch.explaining_mistakes():
        if coordinator is not None:
            return run_async(wait_remotely(run, coordinator, watch), watch)
        return run_async(wait_locally(run, DataDir(data_dir), watch), watch)


async def wait_remotely(reference: str, coordinator: CoordinatorRef, watch: Watch) -> ExitCode:
    """Wait for a run of a coordinator, which may be restarted meanwhile."""
    waiting = _Waiting(reference, InterruptHints(coordinator.flags, outlives=True), watch)
    return await waiting.wait_at(coordinator)


async def wait_locally(reference: str, folder: DataDir, watch: Watch) -> ExitCode:
    """Wait for a run of a folder, whose stack may end meanwhile, or make room for that of another command."""
    from oku_cli.backends.ledger_backend import LedgerBackend  # noqa: PLC0415  # a remote run needs none

    waiting = _Waiting(reference, InterruptHints(folder.flags, outlives=True, folder=folder.absolute), watch)
    while True:
        try:
            endpoint = folder.find_endpoint(patience_s=0.0)
            if endpoint is None:
                return await waiting.read(LedgerBackend.settle(folder))
            # The stack ends with its run; the ledger stays.
            is_gone = partial(folder.is_left_by, endpoint)
            return await waiting.wait_at(endpoint, LedgerBackend(folder), is_gone)
        except (FolderHeldError, UnreachableError):
            await waiting.rest()


class _Waiting:
    """Waits for one run, and leaves it alone when a signal comes.

    Args:
        reference: how the user named it.
        hints: words what a signal leaves behind.
        watch: says how to show the run.
    """

    def __init__(self, reference: str, hints: InterruptHints, watch: Watch) -> None:
        self._reference = reference
        self._hints = hints
        self._watch = watch
        self._interrupts = Interrupts(SignalAction.DETACH, on_others=SignalAction.DETACH)
        self._run = ""

    async def wait_at(
        self,
        coordinator: CoordinatorRef,
        histories: Histories | None = None,
        is_gone: Callable[[], bool] = bool,
    ) -> ExitCode:
        """Follow the run at a coordinator until it rests.

        Args:
            coordinator: where it is.
            histories: where its history is kept; None if the coordinator outlives it.
            is_gone: whether the coordinator has ended for good, if it does not answer.

        Raises:
            UnreachableError: it did not answer for long at first, or is gone.
        """
        async with AsyncExitStack() as opened:
            client = await self._reach(lambda: opened.enter_async_context(Client(coordinator)), is_gone)
            summary = await self._reach(lambda: self._look(client), is_gone)
            run = summary.run
            follower = Follower(client, self._watch, self._hints, self._interrupts, is_gone=is_gone)
            title = build_title(summary.name or run, summary.target, summary.load)
            summary = await follower.follow(run, title, known=summary)
            return follower.finish(await try_add_intervals(histories or client, summary))

    async def read(self, ledger: "LedgerBackend") -> ExitCode:
        """Show the run of a folder in which no stack runs; it is at rest."""
        run = await self._find(ledger)
        summary = await add_intervals(ledger, await ledger.fetch_summary(run))
        return show_end(self._watch, summary, self._hints)

    async def rest(self) -> None:
        """Pause before the folder is looked at again."""
        await self._cut(asyncio.sleep(_LOOK_S))

    async def _look(self, client: Client) -> Summary:
        return await client.fetch_summary(await self._find(client))

    async def _find(self, backend: RunBackend) -> str:
        """The id of the run, which stays the same when another run gets its name."""
        self._run = self._run or await find_run(backend, self._reference, takes_newest=True)
        return self._run

    async def _reach(self, work: Callable[[], Coroutine[Any, Any, _T]], is_gone: Callable[[], bool]) -> _T:
        return await self._cut(try_again(work, is_gone))

    async def _cut(self, work: Coroutine[Any, Any, _T]) -> _T:
        left = f"interrupted, run {self._reference} has not been found yet"
        return await self._interrupts.cut(
            work, self._hints.describe_detached(self._run) if self._run else left
        )
