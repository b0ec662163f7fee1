"""`oku show`: the summary of a run as it stands, for people or as JSON."""

import time
from pathlib import Path

import click

from oku_cli.exit_code import ExitCode
from oku_cli.local.data_dir import DataDir
from oku_cli.options.spec_options import data_dir_option, remote_options
from oku_cli.process.interrupt_hints import InterruptHints
from oku_cli.remote.client import Client, CoordinatorRef
from oku_cli.remote.follow import run_async, write_json
from oku_cli.terminal.console import Terminal
from oku_cli.views.summary_view import print_summary
from oku_coordinator.runs.summaries import build_summary
from oku_core.results.summary import Summary, is_unbalanced


@click.command(name="show")
@click.argument("run")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@data_dir_option
@remote_options
def command(
    run: str,
    as_json: bool,  # noqa: FBT001  # click passes flags so
    data_dir: Path,
    elsewhere: CoordinatorRef | None,
) -> int:
    """Show the summary of RUN, whatever its state."""
    folder = DataDir(data_dir)
    place = elsewhere or folder.find_endpoint()
    parting = InterruptHints((elsewhere or folder).flags)
    if place is not None:
        return run_async(_show_at(place, run, parting, as_json=as_json))
    folder.require_run(run)
    ledger = folder.open_ledger()
    _show(build_summary(ledger.fetch_snapshot(run), time.time()), parting, as_json=as_json)
    return ExitCode.COMPLETED


async def _show_at(place: CoordinatorRef, run: str, parting: InterruptHints, *, as_json: bool) -> ExitCode:
    async with Client(place) as client:
        _show(await client.fetch_summary(run), parting, as_json=as_json)
    return ExitCode.COMPLETED


def _show(summary: Summary, parting: InterruptHints, *, as_json: bool) -> None:
    if as_json:
        write_json("-", summary)
    else:
        hint = parting.describe_resume(summary.run, summary.state, is_broken=is_unbalanced(summary))
        print_summary(Terminal(), summary, hint=hint)
