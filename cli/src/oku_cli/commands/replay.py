"""`oku replay`: one request of a run is sent once more, from here, and shown with its answer."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
import msgspec

from oku_cli.backends.run_backend import RunBackend, RunPlace, find_run
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import as_command
from oku_cli.options.daemon.allow_options import secret_options
from oku_cli.options.option_group import GroupedCommand, OptionGroup, Parsed, json_option, option
from oku_cli.options.run_options import place_options, run_argument
from oku_cli.terminal.json_output import print_json
from oku_cli.views.replay_view import print_iteration, print_iteration_outcome, print_outcome, print_request
from oku_core.accounting.outcome import Outcome
from oku_core.errors import UserError
from oku_core.spec.secrets import SecretSource, SpecSources

if TYPE_CHECKING:
    from oku_cli.replay.run_iteration import RunIteration


_OWN_FILE = Parsed("file", lambda name: str(Path(name).absolute()))


@click.command(
    name="replay",
    cls=GroupedCommand,
    examples={"See what becomes of request 4711 of the newest run": "oku replay latest 4711"},
)
@run_argument()
@click.argument("index", type=click.IntRange(min=0))
@json_option("request, answer and outcome")
@place_options
@option(
    OptionGroup.SECRETS, "--key", metavar="FILE", type=_OWN_FILE,
    help="Private key, instead of that of the run.",
)  # fmt: skip
@option(
    OptionGroup.SECRETS, "--cert", metavar="FILE", type=_OWN_FILE,
    help="Client certificate, instead of that of the run.",
)  # fmt: skip
@option(
    OptionGroup.SECRETS, "--cacert", metavar="FILE", type=_OWN_FILE,
    help="Authority, instead of that of the run.",
)  # fmt: skip
@secret_options(has_variables=False)
@as_command
async def command(
    run: str, index: int, place: RunPlace, secrets: SecretSource, *, as_json: bool, **certificates: str | None
) -> ExitCode:
    """Send one request of a run once, from here, and show it with its answer.

    Of a run of user code, it makes one iteration. It is counted nowhere. RUN is latest, an id, a name, or
    any unique part of an id.
    """
    # These load the engines.
    from oku_cli.replay.engine_run import prepare, send_once  # noqa: PLC0415
    from oku_cli.replay.run_iteration import fetch_iteration  # noqa: PLC0415
    from oku_cli.replay.run_request import (  # noqa: PLC0415
        fetch_inputs,
        fetch_request,
        fetch_spec_of_index,
        fill_in_body,
        replace_certificates,
        show_request,
    )

    with TemporaryDirectory(prefix="oku-") as folder:
        async with place.open() as backend:
            run = await find_run(backend, run, takes_newest=True)
            spec = await fetch_spec_of_index(backend, run, index, "INDEX")
            if spec.runs_user_code:
                if place.coordinator is not None:
                    raise UserError(
                        f"run {run} runs user code of whoever has submitted it; only that of runs in a data "
                        "folder of your own is replayed"
                    )
                iteration = await fetch_iteration(backend, run, index, spec)
                return await _iterate(backend, iteration, Path(folder), secrets, as_json=as_json)
            request = await fetch_request(backend, run, index, spec, is_to_be_sent=True)
            own = {key: path for key, path in certificates.items() if path is not None}
            request = replace_certificates(request, own)
            wanted = [*request.list_bodies(), *request.list_certificates()]
            files = await fetch_inputs(backend, run, wanted, Path(folder))
        request = fill_in_body(request, files)
        shown = show_request(request)
        prepared = await prepare(request, SpecSources(files, secrets))
    if not as_json:
        print_request(shown)
    outcome = await send_once(prepared)
    if as_json:
        print_json({"request": shown, **msgspec.structs.asdict(outcome)})
    else:
        print_outcome(outcome)
    return ExitCode.COMPLETED if outcome.outcome is Outcome.OK else ExitCode.NOT_PASSED


async def _iterate(
    backend: RunBackend, iteration: "RunIteration", folder: Path, secrets: SecretSource, *, as_json: bool
) -> ExitCode:
    from oku_cli.replay.engine_run import iterate_once  # noqa: PLC0415
    from oku_cli.replay.run_iteration import prepare_iteration, refuse_setup  # noqa: PLC0415

    refuse_setup(iteration)
    spec, files = await prepare_iteration(backend, iteration, folder)
    filled = secrets.fill_in(spec)
    shown = iteration.show()
    if not as_json:
        print_iteration(shown)
    outcome = await iterate_once(iteration, filled, secrets, files)
    if as_json:
        print_json({"iteration": shown, **msgspec.structs.asdict(outcome)})
    else:
        print_iteration_outcome(outcome)
    return ExitCode.COMPLETED if outcome.outcome is Outcome.OK else ExitCode.NOT_PASSED
