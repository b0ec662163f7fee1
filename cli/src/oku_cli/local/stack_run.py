"""Makes a run on a stack that was launched, ends the stack when the run rests, and leaves a report."""

import asyncio
import contextlib
import math
import time
from pathlib import Path

from oku_cli.backends.client import Client, wait_before_retry
from oku_cli.backends.coordinator_ref import UnreachableError
from oku_cli.backends.data_dir import DataDir
from oku_cli.backends.ledger_backend import LedgerBackend
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import Follower
from oku_cli.follow.run_start import RunStart
from oku_cli.follow.upload import upload_files
from oku_cli.follow.watch import Watch
from oku_cli.local.stack import LocalStack, StackError
from oku_cli.process.interrupt import InterruptedAtOnceError, Interrupts, SignalAction
from oku_cli.process.interrupt_hints import InterruptHints, describe_unbegun
from oku_cli.terminal.console import CAUTION, Terminal
from oku_cli.terminal.printable import write_error
from oku_core.errors import UserError
from oku_core.process.private_files import make_private_folder, write_private

PATIENCE_S = 5.0
"""How long Loki may take no line before the command stops waiting."""
_POLL_S = 0.1


async def run_on_stack(stack: LocalStack, start: RunStart, watch: Watch, interrupts: Interrupts) -> ExitCode:
    """Begin a run on a stack that was launched, follow it to its end, end the stack, and leave the report."""
    data_dir, plan = stack.data_dir, stack.plan
    console = watch.build_console()
    hints = InterruptHints((*data_dir.flags, *plan.build_flags()), folder=data_dir.absolute)
    ledger = LedgerBackend(data_dir)
    at_once, run = True, ""
    failure: InterruptedAtOnceError | StackError | None = None
    try:
        await interrupts.cut(stack.start(), describe_unbegun(start.resumed))
        async with Client(stack.endpoint) as client:
            uploading = upload_files(client, start.files, quiet=watch.quiet)
            await interrupts.cut(stack.guard(uploading), describe_unbegun(start.resumed))
            run = await interrupts.let_end(start.send(client), hints.describe_unanswered(start.resumed))
            follower = Follower(client, watch, hints, interrupts)
            stack.log = follower.log
            summary = await stack.guard(follower.follow(run, start.build_title(run)))
            undelivered = await stack.guard(wait_for_delivery(client)) if plan.has_loki else ""
        at_once = False
    except (InterruptedAtOnceError, StackError) as error:
        failure = error
    finally:
        await stack.end(at_once=at_once)
        _pause_interrupted(ledger)
    if failure is not None:
        watch.write_reason(ExitCode.CUT_SHORT, str(failure))
        return _give_up(console, hints, ledger, run, failure)
    code = await follower.finish(ledger, summary)
    if undelivered:
        # Aligned with the end screen.
        console.print(f" loki        {undelivered}", style=CAUTION, soft_wrap=True)
        console.print()
    await _leave_report(data_dir, run, console)
    return code


def _pause_interrupted(ledger: LedgerBackend) -> None:
    try:
        ledger.pause_interrupted()
    except UserError as error:  # the next command in this folder tries again
        write_error(str(error))


async def _leave_report(data_dir: DataDir, run: str, console: Terminal) -> None:
    try:
        path = await leave_report(data_dir, run)
    except Exception as error:  # noqa: BLE001  # the run is over, with or without a report
        write_error(f"the report could not be written: {error}")
        return
    console.print(f" report      {path}", soft_wrap=True)  # aligned with the end screen
    console.print()


def _give_up(
    console: Terminal,
    hints: InterruptHints,
    ledger: LedgerBackend,
    run: str,
    error: InterruptedAtOnceError | StackError,
) -> ExitCode:
    console.print(f"oku: {error}", soft_wrap=True)
    if not run:
        return ExitCode.CUT_SHORT
    if isinstance(error, InterruptedAtOnceError) and error.action is SignalAction.CANCEL:
        with contextlib.suppress(UserError):  # it is over already
            ledger.cancel_interrupted(run)
        console.print(f"run {run} is {ledger.require_run(run).state}", soft_wrap=True)
    else:
        console.print(hints.describe_resume_command(run), soft_wrap=True)
    return ExitCode.CUT_SHORT


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
    """Wait until Loki has everything; return a sentence on what it lacks, or an empty text."""
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
