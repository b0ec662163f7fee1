"""Makes a run on this machine: starts a stack for it, and ends the stack when the run rests."""

import math
import os
import sys
from collections.abc import Mapping
from types import MappingProxyType

from oku_cli.backends.data_dir import DataDir
from oku_cli.backends.ledger_backend import LedgerBackend
from oku_cli.exit_code import ExitCode
from oku_cli.local.first_error import find_first_error
from oku_cli.local.local_report import leave_report
from oku_cli.local.loki_delivery import wait_for_delivery
from oku_cli.local.stack import LocalStack, StackError, StackPlan
from oku_cli.process.interrupt import InterruptedAtOnceError, Interrupts
from oku_cli.process.interrupt_hints import InterruptHints, describe_unbegun
from oku_cli.remote.client import Client
from oku_cli.remote.follow import Follower, Watch
from oku_cli.remote.remote_run import RunStart
from oku_cli.terminal.console import Terminal
from oku_cli.terminal.palette import CAUTION
from oku_cli.terminal.printable import write_error
from oku_core.errors import UserError
from oku_core.process.open_files import raise_open_files
from oku_core.spec.secrets import SecretSource
from oku_core.spec.spec import Spec

_NO_SECRETS = SecretSource()
_FILES_BESIDE_REQUESTS = 100
_FULL_SHARE = 0.8
"""The share of its files that a server process is meant to use: the system spreads connections by chance."""
_CONNECTIONS_PER_ADDRESS = 16_000
"""Each connection to a port takes a port of its local address; Linux has 28,232 of them for that."""


async def run_locally(data_dir: DataDir, plan: StackPlan, start: RunStart, watch: Watch) -> ExitCode:
    """Start a stack, begin a run on it, follow it until it rests, and leave its report in the folder.

    Args:
        data_dir: the stack's folder.
        plan: the shape of the stack.
        start: submits or resumes the run.
        watch: says how to show the run.
    """
    with data_dir.held():
        return await _run_in(data_dir, plan, start, watch)


async def _run_in(data_dir: DataDir, plan: StackPlan, start: RunStart, watch: Watch) -> ExitCode:
    interrupts = Interrupts()
    ledger = LedgerBackend(data_dir)
    ledger.park_interrupted(but=start.resumed)
    console = watch.build_console()
    followers: list[Follower] = []

    def log(line: str) -> None:
        for follower in followers:
            follower.log(line)

    hints = InterruptHints((*data_dir.flags, *plan.build_secret_flags()), folder=data_dir.absolute)
    stack = LocalStack(data_dir, plan, log)
    at_once, run = True, ""
    try:
        await interrupts.cut(stack.start(), describe_unbegun(start.resumed))
        async with Client(stack.endpoint) as client:
            run = await interrupts.let_end(start.begin(client), hints.describe_unanswered(start.resumed))
            follower = Follower(client, watch, hints, interrupts)
            followers.append(follower)
            summary = await stack.guard(follower.follow(run, start.title or run))
            undelivered = await stack.guard(wait_for_delivery(client)) if plan.has_loki else ""
        at_once = False
    except (InterruptedAtOnceError, StackError) as error:
        return _give_up(console, hints, run, error)
    finally:
        followers.clear()
        await stack.end(at_once=at_once)
        _park(ledger)
    code = follower.finish(summary)
    if first_error := find_first_error(data_dir.logs, summary):
        console.print(f" error       {first_error}", soft_wrap=True)  # aligned with the end screen
        console.print()
    if undelivered:
        console.print(f" loki        {undelivered}", style=CAUTION, soft_wrap=True)
        console.print()
    await _leave_report(data_dir, run, None if watch.quiet else console)
    return code


def _park(ledger: LedgerBackend) -> None:
    try:
        ledger.park_interrupted()
    except UserError as error:  # the next command in this folder tries again
        write_error(str(error))


async def _leave_report(data_dir: DataDir, run: str, console: Terminal | None) -> None:
    try:
        path = await leave_report(data_dir, run)
    except Exception as error:  # noqa: BLE001  # the run is over, whatever becomes of its report
        write_error(f"the report could not be written: {error}")
        return
    if console:
        console.print(f" report      {path}", soft_wrap=True)  # aligned with the end screen
        console.print()


def build_plan(
    spec: Spec,
    secrets: SecretSource = _NO_SECRETS,
    coordinator_environment: Mapping[str, str] = MappingProxyType({}),
    *,
    has_loki: bool = False,
) -> StackPlan:
    """Plan the stack: half the processors for workers and half for servers, unless the spec says otherwise.

    Many connections need more processes of the delay server, and more than one local address.

    Raises:
        UserError: the processes of this machine may not open enough files for the concurrency, or the spec
            names a secret that is not among those allowed.
    """
    secrets.fill_in(spec)
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    half = max(1, processors // 2)
    workers = spec.workers or half
    allowed = raise_open_files()
    allowed_at_once = allowed - _FILES_BESIDE_REQUESTS
    in_flight = min(spec.concurrency, spec.requests)
    if in_flight > allowed_at_once:
        raise UserError(
            f"--concurrency: {spec.concurrency} is more than the {allowed_at_once} connections "
            "that a process may open here (ulimit -n)"
        )
    connections = workers * in_flight
    return StackPlan(
        workers=workers,
        servers=_choose_servers(spec, connections, half, allowed) if spec.brings_servers else 0,
        delay="0s" if spec.delay is None else spec.delay,
        seed=spec.seed or 0,
        # Only Linux has more than one loopback address without being told so.
        spreads_addresses=spec.brings_servers
        and connections > _CONNECTIONS_PER_ADDRESS
        and sys.platform == "linux",
        secrets=secrets,
        coordinator_environment=coordinator_environment,
        has_loki=has_loki,
    )


def _choose_servers(spec: Spec, connections: int, processes: int, files: int) -> int:
    """Return how many delay server processes there are: enough to open all connections."""
    needed = math.ceil(connections / (files * _FULL_SHARE))
    if spec.servers is not None and spec.servers < needed:
        raise UserError(
            f"--servers: {spec.servers} cannot hold {connections} connections, at least {needed} are needed"
        )
    return spec.servers or max(processes, needed)


def _give_up(console: Terminal, hints: InterruptHints, run: str, error: Exception) -> ExitCode:
    console.print(f"oku: {error}", soft_wrap=True)
    if run:
        console.print(hints.describe_resume_command(run), soft_wrap=True)
    return ExitCode.CUT_SHORT
