"""Drives a run from a terminal: follows it to its rest, pauses it on Ctrl-C, shows and writes its summary."""

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from oku_cli.client import Client, UnreachableError, wait_before_retry
from oku_cli.exit_code import ExitCode
from oku_cli.screen import View, build_view
from oku_cli.summary_view import print_summary
from oku_core.errors import UserError
from oku_core.run import FINAL_STATES, RunState
from oku_core.summary import Flag, Summary

_STANDARD_OUTPUT = "-"


@dataclass(frozen=True)
class Watch:
    """How a run is to be shown.

    Args:
        json_file: where its summary goes as JSON; None for nowhere, `-` for standard output.
        quiet: whether to show no progress.
    """

    json_file: str | None
    quiet: bool

    def check(self) -> None:
        """Find out before the run whether the file can be written."""
        if self.json_file in (None, _STANDARD_OUTPUT):
            return
        path = Path(self.json_file)
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise UserError(f"--json: {self.json_file} is no file that can be written")

    def build_console(self) -> Console:
        """Standard output, unless the JSON goes there."""
        return Console(stderr=self.json_file == _STANDARD_OUTPUT, highlight=False)


class InterruptedAtOnceError(Exception):
    """Ctrl-C came a second time."""

    def __init__(self) -> None:
        super().__init__("stopped at once")


class Driver:
    """Follows one run after the other, each until it rests.

    Args:
        client: of the coordinator.
        watch: how to show it.
        hint: how to resume a run, with `{run}` for its id.
    """

    def __init__(self, client: Client, watch: Watch, hint: str) -> None:
        self._client = client
        self._watch = watch
        self._hint = hint
        self._console = watch.build_console()
        self.view: View = build_view(self._console, quiet=watch.quiet)
        self._interrupts = 0
        self._interrupted = asyncio.Event()

    def log(self, line: str) -> None:
        """Show a line beside the progress."""
        self.view.log(line)

    async def follow(self, run: str, title: str) -> Summary:
        """Show a run until it rests; Ctrl-C pauses it.

        Raises:
            InterruptedAtOnceError: Ctrl-C came twice.
            UnreachableError: only when the run cannot be found any more.
        """
        self._install_signals()
        self.view.start(title)
        following = asyncio.create_task(self._follow(run))
        interrupting = asyncio.create_task(self._pause_on_interrupt(run))
        try:
            await asyncio.wait({following, interrupting}, return_when=asyncio.FIRST_COMPLETED)
            if interrupting.done():
                await interrupting
            return await following
        finally:
            for task in (following, interrupting):
                task.cancel()
            await asyncio.gather(following, interrupting, return_exceptions=True)
            self.view.stop()

    def finish(self, summary: Summary) -> ExitCode:
        """Show and write the summary; how the command ends."""
        hint = (
            None if summary.state in FINAL_STATES else f"resume it with: {self._hint.format(run=summary.run)}"
        )
        print_summary(self._console, summary, hint=hint)
        if self._watch.json_file:
            write_json(self._watch.json_file, summary)
        return judge(summary)

    async def _follow(self, run: str) -> Summary:
        while True:
            try:
                async for item in self._client.follow(run):
                    if isinstance(item, Summary):
                        return item
                    self.view.show_tick(item)
            except UnreachableError:
                # The stack starts a dead coordinator again; the run itself goes on without it.
                pass
            await wait_before_retry()

    async def _pause_on_interrupt(self, run: str) -> None:
        await self._interrupted.wait()
        self._interrupted.clear()
        self.view.log("stopping: requests in flight may finish; Ctrl-C again stops at once")
        pausing = asyncio.create_task(self._pause(run))
        await self._interrupted.wait()
        pausing.cancel()
        raise InterruptedAtOnceError

    async def _pause(self, run: str) -> None:
        while True:
            try:
                await self._client.act(run, "pause")
            except UnreachableError:
                await wait_before_retry()
            except UserError as error:
                self.view.log(str(error))  # it has come to rest by itself
                return
            else:
                return

    def _install_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._interrupted.set)


def judge(summary: Summary) -> ExitCode:
    """How a command that followed a run to its rest ends."""
    if any(validity.flag == Flag.UNBALANCED for validity in summary.validity):
        return ExitCode.UNBALANCED
    return ExitCode.COMPLETED if summary.state == RunState.COMPLETED else ExitCode.CUT_SHORT


def write_json(file: str, summary: Summary) -> None:
    """Write the summary; `-` is standard output."""
    document = msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n"
    if file == _STANDARD_OUTPUT:
        sys.stdout.buffer.write(document)
        sys.stdout.flush()
        return
    try:
        Path(file).write_bytes(document)
    except OSError as error:
        raise UserError(f"--json: {file}: {error.strerror}") from error


def build_hint(*arguments: str) -> str:
    """A command to type, as this `oku` was called: `./task` says how in OKU_COMMAND."""
    return " ".join([os.environ.get("OKU_COMMAND", "oku"), *arguments])


def run_async(coroutine: Coroutine[Any, Any, ExitCode]) -> int:
    """Run a subcommand; what cannot be reached ends it with one line."""
    try:
        return int(asyncio.run(coroutine))
    except (UnreachableError, InterruptedAtOnceError) as error:
        sys.stderr.write(f"oku: {error}\n")
        return int(ExitCode.CUT_SHORT)
