"""Makes a run on this machine: plans a stack and launches it, before anything is loaded that takes long.

`stack_run` does the rest.
"""

import math
import os
import sys
from collections.abc import Mapping
from types import MappingProxyType

from oku_cli.backends.data_dir import DataDir, FolderHeldError
from oku_cli.exit_code import ExitCode
from oku_cli.follow.run_start import RunStart
from oku_cli.follow.watch import Watch
from oku_cli.local.stack import LocalStack
from oku_cli.local.stack_plan import StackPlan
from oku_cli.process.interrupt import Interrupts, SignalAction
from oku_core.errors import UserError
from oku_core.process.landlock import Confinement
from oku_core.process.resources import find_memory_limit, raise_open_files
from oku_core.spec.load import has_ample_window
from oku_core.spec.request_rules import find_memory_fault
from oku_core.spec.secrets import SecretSource
from oku_core.spec.spec import Spec
from oku_core.spec.values.file_reference import FindFile

_NO_SECRETS = SecretSource()
_DELAY = "lognormal:20ms,0.5"
"""The default delay resembles a service. Without a delay, latencies would measure a busy worker."""
_WORKERS = 2
"""The default of a run against delay servers: it shows how workers share the requests."""
_FILES_BESIDE_REQUESTS = 100
_FULL_SHARE = 0.8
"""The share of its files that a server process is meant to use: the system spreads connections by chance."""
_CONNECTIONS_PER_ADDRESS = 16_000
"""Each connection to a port takes a port of its local address; Linux has 28,232 of them for that."""


async def run_locally(
    data_dir: DataDir,
    plan: StackPlan,
    start: RunStart,
    watch: Watch,
    interrupts: Interrupts | None = None,
    *,
    joining: RunStart | None = None,
) -> ExitCode:
    """Make a run on its own stack, or join the stack of another command in the folder.

    It is followed until it rests, and leaves its report in the folder. `joining` begins it on the stack of
    another command, if `start` does not.

    Raises:
        UserError: SIGTERM is to detach the command: a local run does not outlive it.
    """
    refuse_detaching(watch)
    interrupts = interrupts or Interrupts(watch.on_sigterm)
    while True:
        try:
            data_dir.hold()
        except FolderHeldError:
            from oku_cli.local.joined_run import JoinedRun  # noqa: PLC0415  # most commands are alone

            joined = JoinedRun(data_dir, plan, joining or start, watch, interrupts)
            if (code := await joined.carry_out()) is not None:
                return code
            start = joining = joined.start
            continue
        try:
            return await _run_on_own_stack(data_dir, plan, start, watch, interrupts)
        finally:
            data_dir.release()


async def _run_on_own_stack(
    data_dir: DataDir, plan: StackPlan, start: RunStart, watch: Watch, interrupts: Interrupts
) -> ExitCode:
    _pause_interrupted(data_dir, start.resumed)
    stack = LocalStack(data_dir, plan)
    stack.launch()
    # An HTTP client and a console are loaded while the children load what they need.
    from oku_cli.local.stack_run import run_on_stack  # noqa: PLC0415

    return await run_on_stack(stack, start, watch, interrupts)


def refuse_detaching(watch: Watch) -> None:
    """Refuse with a `UserError` to detach a command from a local run, which does not outlive it."""
    if watch.on_sigterm is SignalAction.DETACH:
        raise UserError(
            "--on-sigterm: detach needs --coordinator or --kube; a local run ends with its command"
        )


def _pause_interrupted(data_dir: DataDir, resumed: str | None) -> None:
    """Pause what a killed stack left running, but for the run that is resumed."""
    if data_dir.ledger.exists():
        from oku_cli.backends.ledger_backend import LedgerBackend  # noqa: PLC0415  # a first run has none

        LedgerBackend(data_dir).pause_interrupted(but=resumed)


def build_stack_plan(
    spec: Spec,
    secrets: SecretSource = _NO_SECRETS,
    coordinator_environment: Mapping[str, str] = MappingProxyType({}),
    *,
    has_loki: bool = False,
    confinement: Confinement = Confinement.OFF,
) -> StackPlan:
    """Plan the stack: one worker, two for a run against delay servers, and half the processors for servers,
    unless the spec sets others.

    Many connections need more processes of the delay server, and more than one local address.

    Raises:
        UserError: the processes of this machine may not open enough files for the concurrency, or the spec
            names a secret that is not among those allowed, or user code cannot be confined here and must be.
    """
    confinement.check()
    secrets.fill_in(spec)
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    half = max(1, processors // 2)
    workers = min(spec.workers or (_WORKERS if spec.brings_servers else 1), spec.most_workers)
    allowed = raise_open_files()
    allowed_at_once = allowed - _FILES_BESIDE_REQUESTS
    in_flight = min(spec.find_window(workers), spec.requests)
    if has_ample_window(spec):
        # The user has not asked for it, and hardly any target is so slow that a rate needs it.
        in_flight = min(in_flight, allowed_at_once)
    if in_flight > allowed_at_once:
        flag = "--stage" if spec.stages else "--users" if spec.runs_user_code else "--concurrency"
        each = f" for each of {workers} workers" if workers > 1 else ""
        raise UserError(
            f"{flag}: {in_flight} in flight{each} are more than the {allowed_at_once} connections that a"
            " process may open here (ulimit -n); more --workers share them out"
        )
    connections = min(spec.concurrency, workers * in_flight)
    return StackPlan(
        workers=workers,
        servers=_choose_servers(spec, connections, half, allowed) if spec.brings_servers else 0,
        delay=_DELAY if spec.delay is None else spec.delay,
        seed=spec.seed or 0,
        # Only Linux has more than one loopback address by default.
        spreads_addresses=spec.brings_servers
        and connections > _CONNECTIONS_PER_ADDRESS
        and sys.platform == "linux",
        secrets=secrets,
        coordinator_environment=coordinator_environment,
        has_loki=has_loki,
        confinement=confinement,
    )


def check_memory(spec: Spec, workers: int, find_file: FindFile) -> None:
    """Refuse a spec whose bodies do not fit into the memory that its workers share here."""
    in_flight = min(spec.find_window(workers), spec.requests)
    if fault := find_memory_fault(spec, in_flight, find_memory_limit() // workers, find_file):
        raise UserError(fault)


def _choose_servers(spec: Spec, connections: int, processes: int, files: int) -> int:
    """Return how many delay server processes there are: enough to open all connections."""
    needed = math.ceil(connections / (files * _FULL_SHARE))
    if spec.servers is not None and spec.servers < needed:
        raise UserError(
            f"--servers: {spec.servers} cannot hold {connections} connections, at least {needed} are needed"
        )
    return spec.servers or max(processes, needed)
