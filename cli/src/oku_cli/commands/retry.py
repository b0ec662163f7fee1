"""`oku retry`: a run over exactly the failed requests of another one."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from oku_cli.backends.data_dir import DataDir
from oku_cli.backends.run_backend import find_run
from oku_cli.commands.existing_run import ExistingRun
from oku_cli.options.backend_options import backend_options
from oku_cli.options.daemon.allow_options import secret_options
from oku_cli.options.daemon.user_code_options import confinement_options
from oku_cli.options.loki_options import loki_options
from oku_cli.options.option_group import JsonCommand, option
from oku_cli.options.run_argument import run_argument
from oku_cli.options.watch_options import FILE_HINT, sigterm_option, watch_options
from oku_cli.remote.client import Client
from oku_cli.remote.endpoint import CoordinatorRef
from oku_cli.remote.remote_run import RunStart
from oku_core.accounting.run_state import REST_STATES
from oku_core.errors import UserError
from oku_core.process.landlock import Confinement
from oku_core.spec.fields import FieldGroup
from oku_core.spec.secrets import SecretSource

if TYPE_CHECKING:
    from oku_coordinator.ledger.storage.records import RunRecord


@click.command(name="retry", cls=JsonCommand, file_hint=FILE_HINT)
@run_argument(states=REST_STATES)
@option(FieldGroup.LOAD, "-w", "--workers", metavar="N", help="Use N workers.")
@option(FieldGroup.DELAY_SERVERS, "--servers", metavar="N", help="Use N delay server processes.")
@backend_options
@watch_options
@sigterm_option
@loki_options
@secret_options(has_variables=False)
@confinement_options(serves_others=False)
def command(
    run: str,
    data_dir: Path,
    coordinator: CoordinatorRef | None,
    secrets: SecretSource,
    confinement: Confinement,
    **options: Any,
) -> int:
    """Send the failed requests of a run again, each under its index.

    It makes a new run, whose summary says how many of the first one are ok now. A run with a rate is tried
    again without it. RUN is latest, an id, a name, or any unique part of an id.
    """
    existing = ExistingRun(run, DataDir(data_dir), coordinator, secrets, confinement)
    return existing.carry_out(options, _build_start, _start_locally)


def _build_start(reference: str) -> RunStart:
    async def begin(client: Client) -> str:
        return await client.retry(await find_run(client, reference))

    return RunStart(begin=begin, name=f"retry of {reference}")


def _start_locally(record: "RunRecord") -> RunStart:
    if record.outcomes[0] == record.accounted:
        raise UserError(f"run {record.run} has no failed request to retry")
    return _build_start(record.run)
