"""`oku runs` and `oku show`: the list of runs, the summary of one as it stands, and one of its requests."""

from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from oku_cli.backends.run_backend import RunPlace, find_run
from oku_cli.comparison.run_seconds import add_intervals
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import as_command
from oku_cli.follow.watch import Watch
from oku_cli.options.option_group import GroupedCommand, OptionGroup, json_option, option
from oku_cli.options.run_options import place_options, run_argument
from oku_cli.options.watch_options import grafana_option
from oku_cli.process.interrupt_hints import InterruptHints
from oku_cli.terminal.console import CAUTION, Terminal
from oku_cli.terminal.json_output import print_json
from oku_cli.terminal.printable import write_note
from oku_cli.views.replay_view import print_iteration, print_request
from oku_cli.views.runs_view import ListedRun, build_hints, build_runs_table
from oku_cli.views.summary_view import print_summary
from oku_core.accounting.run_state import RunState
from oku_core.spec.engine_choice import EngineChoice
from oku_core.spec.spec import Engine
from oku_core.summary.summary import is_unbalanced

_PIPE_COLUMNS = 10_000
"""Nothing is cut for a program that reads it."""


@click.command(name="runs", cls=GroupedCommand)
@option(
    OptionGroup.OUTPUT,
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="List at most N.",
)
@option(OptionGroup.OUTPUT, "--all", "lists_all", is_flag=True, help="List all.")
@json_option("the list")
@place_options
@as_command
async def list_runs(limit: int, place: RunPlace, *, lists_all: bool, as_json: bool) -> ExitCode:
    """List runs, newest first."""
    most = None if lists_all else limit
    async with place.open() as backend:
        runs = await backend.fetch_runs(None if most is None else most + 1)
    if as_json:
        print_json(runs[:most])
    else:
        _print_runs(runs[:most], InterruptHints(backend.flags))
    if most is not None and len(runs) > most:
        write_note(f"these are the newest {most}; --all lists all of them")
    return ExitCode.COMPLETED


def _print_runs(runs: list[dict[str, Any]], hints: InterruptHints) -> None:
    rows = [
        ListedRun(
            run=run["run"],
            name=run["name"],
            state=RunState(run["state"]),
            requests=run["requests"],
            accounted=run["accounted"],
            ok=run["ok"],
            created_at=datetime.fromisoformat(run["created_at"]).timestamp(),
            reason=run["reason"],
            target=run["target"],
            load=f"{run['load']} · {EngineChoice(Engine(run['engine']), run.get('engine_reason', ''))}",
            active_s=run["active_s"],
        )
        for run in runs
    ]
    console = Terminal()
    if not console.is_terminal:
        console.width = _PIPE_COLUMNS
    console.print(build_runs_table(rows, fits=console.is_terminal))
    if console.is_terminal:
        for hint in build_hints(rows, hints):
            console.print(hint, style=CAUTION, soft_wrap=True)


@click.command(name="show", cls=GroupedCommand)
@run_argument()
@option(
    OptionGroup.OUTPUT,
    "--index",
    metavar="I",
    type=click.IntRange(min=0),
    help="Show the request of this index instead, as it is sent, or which iteration of user code it is.",
)
@json_option("the summary, or the request,")
@grafana_option
@place_options
@as_command
async def show(
    run: str, index: int | None, grafana: str | None, place: RunPlace, *, as_json: bool
) -> ExitCode:
    """Show the summary of a run in any state, or one of its requests.

    RUN is latest, an id, a name, or any unique part of an id.
    """
    if index is not None:
        await _show_request(run, index, place, as_json=as_json)
        return ExitCode.COMPLETED
    async with place.open() as backend:
        run = await find_run(backend, run, takes_newest=True)
        summary = await add_intervals(backend, await backend.fetch_summary(run))
    if as_json:
        print_json(summary)
    else:
        hints = InterruptHints(backend.flags)
        hint = hints.describe_resume(summary.run, summary.state, is_broken=is_unbalanced(summary))
        print_summary(Terminal(), summary, hint=hint)
    Watch(as_json=as_json, grafana=grafana).print_dashboard_link(summary)
    return ExitCode.COMPLETED


async def _show_request(run: str, index: int, place: RunPlace, *, as_json: bool) -> None:
    # These load the engines.
    from oku_cli.replay.run_iteration import fetch_iteration  # noqa: PLC0415
    from oku_cli.replay.run_request import (  # noqa: PLC0415
        fetch_inputs,
        fetch_request,
        fetch_spec_of_index,
        fill_in_body,
        show_request,
    )

    with TemporaryDirectory(prefix="oku-") as folder:
        async with place.open() as backend:
            run = await find_run(backend, run, takes_newest=True)
            spec = await fetch_spec_of_index(backend, run, index, "--index")
            if spec.runs_user_code:
                iteration = (await fetch_iteration(backend, run, index, spec)).show()
                print_json(iteration) if as_json else print_iteration(iteration)
                return
            request = await fetch_request(backend, run, index, spec, is_to_be_sent=False)
            files = await fetch_inputs(backend, run, request.list_bodies(), Path(folder))
        shown = show_request(fill_in_body(request, files))
    print_json(shown) if as_json else print_request(shown)
