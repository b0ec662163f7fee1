"""`oku resume`: continues a run exactly where its ledger stands."""

from typing import TYPE_CHECKING, Any

import click

from oku_cli.backends.client import Client
from oku_cli.backends.run_backend import find_run
from oku_cli.commands.existing_run import ExistingRun, existing_run_options
from oku_cli.follow.run_start import RunStart
from oku_cli.options.option_group import JsonCommand
from oku_cli.options.run_argument import run_argument
from oku_cli.options.watch_options import FILE_HINT
from oku_core.accounting.run_state import FINAL_STATES, RunState, is_resumable
from oku_core.errors import UserError

if TYPE_CHECKING:
    from oku_coordinator.ledger.storage.records import RunRecord


@click.command(name="resume", cls=JsonCommand, file_hint=FILE_HINT)
@run_argument(states=(RunState.PAUSED, RunState.FAILED))
@existing_run_options(" from now on")
def command(run: str, **options: Any) -> int:
    """Resume a paused or interrupted run, even days later.

    RUN is latest, an id, a name, or any unique part of an id.
    """
    return _Resumed.pick(run, options).carry_out(options)


class _Resumed(ExistingRun):
    def start(self, reference: str) -> RunStart:
        async def begin(client: Client) -> str:
            run = await find_run(client, reference)
            await client.resume(run)
            return run

        return RunStart(begin=begin, resumed=reference)

    def start_locally(self, record: "RunRecord") -> RunStart:
        if record.state in FINAL_STATES and not is_resumable(record.state, is_broken=record.is_broken):
            raise UserError(f"run {record.run} is {record.state}, it cannot be resumed")
        return RunStart.resume(record.run, record.spec)
