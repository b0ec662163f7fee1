"""The end of a local run: its summary on the screen, what Loki lacks of it, and its report in the folder."""

import asyncio
import math
import time
from dataclasses import dataclass
from pathlib import Path

from oku_cli.backends.client import Client, wait_before_retry
from oku_cli.backends.coordinator_ref import UnreachableError
from oku_cli.backends.data_dir import DataDir
from oku_cli.backends.ledger_backend import LedgerBackend
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import show_end
from oku_cli.follow.watch import Watch
from oku_cli.process.interrupt_hints import InterruptHints
from oku_cli.terminal.console import CAUTION, Terminal
from oku_cli.terminal.printable import write_error
from oku_core.process.private_files import make_private_folder, write_private
from oku_core.summary.summary import Summary

PATIENCE_S = 5.0
"""How long Loki may take no line before the command stops waiting."""
_POLL_S = 0.1


@dataclass(frozen=True)
class EndedRun:
    """The end of a run in a folder.

    Args:
        undelivered: a sentence on what Loki lacks; empty if it lacks nothing.
    """

    data_dir: DataDir
    watch: Watch
    summary: Summary
    undelivered: str = ""

    async def show(self, hints: InterruptHints) -> ExitCode:
        """Show and write the summary, leave the report, and return the exit code."""
        code = await show_end(self.watch, self.summary, LedgerBackend(self.data_dir), hints)
        console = self.watch.build_console()
        if self.undelivered:
            # Aligned with the end screen.
            console.print(f" loki        {self.undelivered}", style=CAUTION, soft_wrap=True)
            console.print()
        await _leave_report(self.data_dir, self.summary.run, console)
        return code


async def _leave_report(data_dir: DataDir, run: str, console: Terminal) -> None:
    try:
        path = await leave_report(data_dir, run)
    except Exception as error:  # noqa: BLE001  # the run is over, with or without a report
        write_error(f"the report could not be written: {error}")
        return
    console.print(f" report      {path}", soft_wrap=True)  # aligned with the end screen
    console.print()


async def leave_report(data_dir: DataDir, run: str) -> Path:
    """Write the report of a run; return its path under the data folder as the user named it."""
    # A summary is read before a report is opened, so the modules for reports are loaded after that.
    from oku_cli.report.history_reader import RunHistoryReader  # noqa: PLC0415
    from oku_cli.report.page import build_page  # noqa: PLC0415

    path = data_dir.find_report(run)
    reader = RunHistoryReader()
    async for line in LedgerBackend(data_dir).read_run_history(run):
        reader.read_line(line)
    make_private_folder(path.parent)
    write_private(path, build_page(reader.finish()))
    return data_dir.path / path.relative_to(data_dir.absolute)


async def wait_for_delivery(client: Client) -> str:
    """Wait until Loki has every line; return a sentence about missing lines, or an empty text."""
    deadline, before = time.monotonic() + PATIENCE_S, math.inf
    while True:
        try:
            outbox = await client.fetch_outbox()
        except UnreachableError:
            if time.monotonic() > deadline:
                return "what Loki has is not known: the coordinator did not answer"
            await wait_before_retry()
            continue
        if outbox["lines"] < before:
            deadline, before = time.monotonic() + PATIENCE_S, outbox["lines"]
        if not outbox["lines"] or outbox["trouble"] or time.monotonic() > deadline:
            return _describe(**outbox)
        await asyncio.sleep(_POLL_S)


def _describe(*, lines: int, dropped: int, refused: int, trouble: str, **_: object) -> str:
    parts = []
    if lines:
        why = f": {trouble}" if trouble else ""
        parts.append(f"{lines:,} lines wait in the ledger for the next run with --loki{why}")
    if dropped:
        parts.append(
            f"{dropped:,} lines of latencies, workers and coverage were dropped, the outbox was full"
        )
    if refused:
        parts.append(f"{refused:,} lines were refused by Loki")
    return "; ".join(parts)
