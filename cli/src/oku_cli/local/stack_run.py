"""Makes a run on a stack that was launched, ends the stack when no run is left on it, and leaves a report."""

import contextlib

from oku_cli.backends.client import Client
from oku_cli.backends.ledger_backend import LedgerBackend
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import Follower
from oku_cli.follow.run_start import RunStart
from oku_cli.follow.upload import upload_files
from oku_cli.follow.watch import Watch
from oku_cli.local.joined_watch import serving_joined, wait_for_joined
from oku_cli.local.run_end import EndedRun, wait_for_delivery
from oku_cli.local.stack import LocalStack, StackError
from oku_cli.process.interrupt import InterruptedAtOnceError, Interrupts, SignalAction
from oku_cli.process.interrupt_hints import InterruptHints, describe_unbegun
from oku_cli.terminal.console import Terminal
from oku_cli.terminal.printable import write_error, write_note
from oku_core.errors import UserError


async def run_on_stack(stack: LocalStack, start: RunStart, watch: Watch, interrupts: Interrupts) -> ExitCode:
    """Begin a run on a stack that was launched, follow it to its end, end the stack, and leave the report.

    The stack stays up as long as other commands have runs on it, unless this command is interrupted.
    """
    data_dir, plan = stack.data_dir, stack.plan
    hints = InterruptHints((*data_dir.flags, *plan.build_flags()), folder=data_dir.absolute)
    ledger = LedgerBackend(data_dir)
    at_once, is_busy, run, code = True, False, "", None
    failure: InterruptedAtOnceError | StackError | None = None
    try:
        await interrupts.cut(stack.start(), describe_unbegun(start.resumed))
        async with Client(stack.endpoint) as client, serving_joined(stack, client) as joined:
            uploading = upload_files(client, start.files, quiet=watch.quiet)
            await interrupts.cut(stack.guard(uploading), describe_unbegun(start.resumed))
            unanswered = hints.describe_unanswered(start.resumed)
            begun = await interrupts.let_end(start.send(client), unanswered)
            run = begun.run
            follower = Follower(client, watch, hints, interrupts)
            stack.log = follower.log
            summary = await stack.guard(follower.follow(run, start.build_title(begun)))
            undelivered = await stack.guard(wait_for_delivery(client)) if plan.has_loki else ""
            end = EndedRun(data_dir, watch, summary, undelivered)
            if interrupts.received is None and joined.list_alive():
                code = await end.show(hints)
                stack.log = write_note
                await stack.guard(wait_for_joined(joined, interrupts))
            is_busy = bool(joined.list_alive())
        at_once = False
    except (InterruptedAtOnceError, StackError) as error:
        failure = error
    finally:
        await stack.end(at_once=at_once, is_busy=is_busy)
        _pause_interrupted(ledger)
    if code is not None:
        if failure is not None:
            write_error(str(failure))
        return code
    if failure is not None:
        watch.write_reason(ExitCode.CUT_SHORT, str(failure))
        return _give_up(watch.build_console(), hints, ledger, run, failure)
    return await end.show(hints)


def _pause_interrupted(ledger: LedgerBackend) -> None:
    try:
        ledger.pause_interrupted()
    except UserError as error:  # the next command in this folder tries again
        write_error(str(error))


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
