"""`oku retry`: a run over exactly the failed requests of another one."""

from typing import TYPE_CHECKING, Any

import click

from oku_cli.backends.client import Client
from oku_cli.backends.run_backend import find_run
from oku_cli.commands.existing_run import ExistingRun, existing_run_options
from oku_cli.follow.run_start import RunStart
from oku_cli.options.option_group import JsonCommand
from oku_cli.options.run_argument import run_argument
from oku_cli.options.watch_options import FILE_HINT
from oku_core.accounting.run_state import REST_STATES
from oku_core.errors import UserError

if TYPE_CHECKING:
    from oku_coordinator.ledger.storage.records import RunRecord


@click.command(name="retry", cls=JsonCommand, file_hint=FILE_HINT)
@run_argument(states=REST_STATES)
@existing_run_options()
def command(run: str, **options: Any) -> int:
    """Send the failed requests of a run again, each under its index.

    It makes a new run, whose summary says how many of the first one are ok now. A run with a rate is tried
    again without it. RUN is latest, an id, a name, or any unique part of an id.
    """
    return _Retried.pick(run, options).carry_out(options)


class _Retried(ExistingRun):
    def start(self, reference: str) -> RunStart:
        async def begin(client: Client) -> str:
            return await client.retry(await find_run(client, reference))

        return RunStart(begin=begin, name=f"retry of {reference}")

    def start_locally(self, record: "RunRecord") -> RunStart:
        if record.outcomes[0] == record.accounted:
            raise UserError(f"run {record.run} has no failed request to retry")
        return self.start(record.run)
