"""`oku resume`: continues a run exactly where its ledger stands."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import msgspec

from oku_cli.backends.data_dir import DataDir
from oku_cli.backends.run_backend import find_coordinator
from oku_cli.backends.run_lookup import find_run
from oku_cli.exit_code import ExitCode
from oku_cli.local.local_run import build_plan, run_locally
from oku_cli.options.backend_options import backend_options
from oku_cli.options.daemon.allow_options import refuse_secrets, secret_options
from oku_cli.options.daemon.retention_options import read_retention_variables
from oku_cli.options.grafana_option import drop_grafana_without_loki
from oku_cli.options.json_option import JsonCommand
from oku_cli.options.loki_options import LokiOptions, loki_options, pick_loki_options, refuse_loki
from oku_cli.options.option_group import option
from oku_cli.options.run_argument import run_argument
from oku_cli.options.watch_options import FILE_HINT, pick_watch, watch_options
from oku_cli.remote.client import Client
from oku_cli.remote.endpoint import CoordinatorRef
from oku_cli.remote.follow import Watch, run_async
from oku_cli.remote.remote_run import RunStart, refuse_shape, run_remotely
from oku_core.accounting.run_state import FINAL_STATES, RunState, is_resumable
from oku_core.errors import UserError
from oku_core.spec.fields import FieldGroup
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.secrets import SecretSource
from oku_core.spec.spec import Spec


@click.command(name="resume", cls=JsonCommand, file_hint=FILE_HINT)
@run_argument(states=(RunState.PAUSED, RunState.FAILED))
@option(FieldGroup.LOAD, "-w", "--workers", metavar="N", help="Use N workers from now on.")
@option(FieldGroup.DELAY_SERVERS, "--servers", metavar="N", help="Use N delay server processes from now on.")
@backend_options
@watch_options
@loki_options
@secret_options(has_variables=False)
def command(
    run: str,
    data_dir: Path,
    coordinator: CoordinatorRef | None,
    secrets: SecretSource,
    **options: Any,
) -> int:
    """Resume a paused or interrupted run, even days later.

    RUN is latest, an id, a name, or any unique part of an id.
    """
    watch = pick_watch(options)
    loki = pick_loki_options(options)
    given = parse_spec(Source(None, {key: value for key, value in options.items() if value is not None}))
    folder = DataDir(data_dir)
    reached = find_coordinator(coordinator, folder)
    if reached is None:
        if not loki.loki:
            watch = replace(watch, grafana=drop_grafana_without_loki(watch.grafana))
        return run_async(_resume_locally(folder, run, given, secrets, loki, watch))
    refuse_loki(loki)
    refuse_secrets(secrets)
    if coordinator is not None:
        refuse_shape(workers=given.workers, servers=given.servers)
    return run_async(run_remotely(reached, _build_start(run), watch))


def _build_start(reference: str) -> RunStart:
    async def begin(client: Client) -> str:
        run = await find_run(client, reference)
        await client.resume(run)
        return run

    return RunStart(begin=begin, resumed=reference)


async def _resume_locally(
    folder: DataDir, reference: str, given: Spec, secrets: SecretSource, loki: LokiOptions, watch: Watch
) -> ExitCode:
    from oku_cli.backends.ledger_backend import LedgerBackend  # noqa: PLC0415  # only what is used

    backend = LedgerBackend.settle(folder)
    record = backend.require_run(await find_run(backend, reference))
    if record.state in FINAL_STATES and not is_resumable(record.state, is_broken=record.is_broken):
        raise UserError(f"run {record.run} is {record.state}, it cannot be resumed")
    spec = record.spec
    shape = msgspec.structs.replace(
        spec, workers=given.workers or spec.workers, servers=given.servers or spec.servers
    )
    plan = build_plan(
        shape, secrets, loki.build_environment() | read_retention_variables(), has_loki=bool(loki.loki)
    )
    return await run_locally(folder, plan, RunStart.resume(record.run, spec), watch)
