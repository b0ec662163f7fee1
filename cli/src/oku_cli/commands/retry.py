"""`oku retry`: a run over exactly the failed requests of another one."""

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
from oku_core.accounting.run_state import REST_STATES
from oku_core.errors import UserError
from oku_core.spec.fields import FieldGroup
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.secrets import SecretSource
from oku_core.spec.spec import Spec


@click.command(name="retry", cls=JsonCommand, file_hint=FILE_HINT)
@run_argument(states=REST_STATES)
@option(FieldGroup.LOAD, "-w", "--workers", metavar="N", help="Use N workers.")
@option(FieldGroup.DELAY_SERVERS, "--servers", metavar="N", help="Use N delay server processes.")
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
    """Send the failed requests of a run again, each under its index.

    It makes a new run, whose summary says how many of the first one are ok now. A run with a rate is tried
    again without it. RUN is latest, an id, a name, or any unique part of an id.
    """
    watch = pick_watch(options)
    loki = pick_loki_options(options)
    given = parse_spec(Source(None, {key: value for key, value in options.items() if value is not None}))
    folder = DataDir(data_dir)
    reached = find_coordinator(coordinator, folder)
    if reached is None:
        if not loki.loki:
            watch = replace(watch, grafana=drop_grafana_without_loki(watch.grafana))
        return run_async(_retry_locally(folder, run, given, secrets, loki, watch))
    refuse_loki(loki)
    refuse_secrets(secrets)
    if coordinator is not None:
        refuse_shape(workers=given.workers, servers=given.servers)
    return run_async(run_remotely(reached, _build_start(run), watch))


def _build_start(reference: str) -> RunStart:
    async def begin(client: Client) -> str:
        return await client.retry(await find_run(client, reference))

    return RunStart(begin=begin, name=f"retry of {reference}")


async def _retry_locally(
    folder: DataDir, reference: str, given: Spec, secrets: SecretSource, loki: LokiOptions, watch: Watch
) -> ExitCode:
    from oku_cli.backends.ledger_backend import LedgerBackend  # noqa: PLC0415  # only what is used

    backend = LedgerBackend.settle(folder)
    record = backend.require_run(await find_run(backend, reference))
    if record.outcomes[0] == record.accounted:
        raise UserError(f"run {record.run} has no failed request to retry")
    shape = msgspec.structs.replace(
        record.spec,
        workers=given.workers or record.spec.workers,
        servers=given.servers or record.spec.servers,
    )
    plan = build_plan(
        shape, secrets, loki.build_environment() | read_retention_variables(), has_loki=bool(loki.loki)
    )
    return await run_locally(folder, plan, _build_start(record.run), watch)
