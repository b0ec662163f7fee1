"""`oku show`: the summary of a run as it stands, for people or as JSON."""

from pathlib import Path

import click

from oku_cli.backends.run_backend import open_backend
from oku_cli.backends.run_lookup import find_run
from oku_cli.comparison.seconds_reader import add_intervals
from oku_cli.exit_code import ExitCode
from oku_cli.options.backend_options import backend_options
from oku_cli.options.grafana_option import grafana_option
from oku_cli.options.json_option import json_option
from oku_cli.options.option_group import GroupedCommand
from oku_cli.options.run_argument import run_argument
from oku_cli.process.interrupt_hints import InterruptHints
from oku_cli.remote.endpoint import CoordinatorRef
from oku_cli.remote.follow import Watch, run_async
from oku_cli.terminal.console import Terminal
from oku_cli.terminal.json_output import print_json
from oku_cli.views.summary_view import print_summary
from oku_core.results.summary import is_unbalanced


@click.command(name="show", cls=GroupedCommand)
@run_argument()
@json_option("the summary")
@grafana_option
@backend_options
def command(
    run: str,
    as_json: bool,  # noqa: FBT001  # click passes flags so
    grafana: str | None,
    data_dir: Path,
    coordinator: CoordinatorRef | None,
) -> int:
    """Show the summary of a run in any state.

    RUN is latest, an id, a name, or any unique part of an id.
    """
    watch = Watch(as_json=as_json, grafana=grafana)
    return run_async(_show(run, data_dir, coordinator, watch))


async def _show(run: str, data_dir: Path, coordinator: CoordinatorRef | None, watch: Watch) -> ExitCode:
    async with open_backend(coordinator, data_dir) as backend:
        run = await find_run(backend, run, takes_newest=True)
        summary = await add_intervals(backend, await backend.fetch_summary(run))
    if watch.as_json:
        print_json(summary)
    else:
        hints = InterruptHints(backend.flags)
        hint = hints.describe_resume(summary.run, summary.state, is_broken=is_unbalanced(summary))
        print_summary(Terminal(), summary, hint=hint)
    watch.print_dashboard_link(summary)
    return ExitCode.COMPLETED
