"""`oku replay`: one request of a run is sent once more, from here, and shown with its answer."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import click
import msgspec

from oku_cli.backends.coordinator_ref import CoordinatorRef
from oku_cli.backends.run_backend import RunBackend, find_run, open_backend
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import run_async
from oku_cli.options.backend_options import backend_options
from oku_cli.options.daemon.allow_options import secret_options
from oku_cli.options.option_group import GroupedCommand, OptionGroup, json_option, option
from oku_cli.options.run_argument import run_argument
from oku_cli.terminal.json_output import print_json
from oku_cli.views.replay_view import print_iteration, print_iteration_outcome, print_outcome, print_request
from oku_core.accounting.outcome import Outcome
from oku_core.errors import UserError
from oku_core.spec.secrets import SecretSource, SpecSources

if TYPE_CHECKING:
    from oku_cli.replay.run_iteration import RunIteration


@click.command(
    name="replay",
    cls=GroupedCommand,
    examples={"See what becomes of request 4711 of the newest run": "oku replay latest 4711"},
)
@run_argument()
@click.argument("index", type=click.IntRange(min=0))
@json_option("request, answer and outcome")
@backend_options
@option(OptionGroup.SECRETS, "--key", metavar="FILE", help="Private key, instead of that of the run.")
@option(OptionGroup.SECRETS, "--cert", metavar="FILE", help="Client certificate, instead of that of the run.")
@option(OptionGroup.SECRETS, "--cacert", metavar="FILE", help="Authority, instead of that of the run.")
@secret_options(has_variables=False)
def command(
    run: str,
    index: int,
    as_json: bool,  # noqa: FBT001  # click passes flags so
    data_dir: Path,
    coordinator: CoordinatorRef | None,
    secrets: SecretSource,
    **certificates: str | None,
) -> int:
    """Send one request of a run once, from here, and show it with its answer.

    Of a run of user code, it makes one iteration. It is counted nowhere. RUN is latest, an id, a name, or
    any unique part of an id.
    """
    own = {key: str(Path(path).absolute()) for key, path in certificates.items() if path is not None}
    return run_async(_replay(run, index, data_dir, coordinator, _Own(secrets, own), as_json=as_json))


class _Own(NamedTuple):
    """What a request gets here.

    Attributes:
        secrets: those that its spec may name.
        certificates: paths, by the keys of a spec that they replace.
    """

    secrets: SecretSource
    certificates: dict[str, str]


async def _replay(
    reference: str,
    index: int,
    data_dir: Path,
    coordinator: CoordinatorRef | None,
    own: _Own,
    *,
    as_json: bool,
) -> ExitCode:
    # These load the engines.
    from oku_cli.replay.engine_run import prepare, send_once  # noqa: PLC0415
    from oku_cli.replay.run_iteration import fetch_iteration  # noqa: PLC0415
    from oku_cli.replay.run_request import (  # noqa: PLC0415
        fetch_files,
        fetch_request,
        fetch_spec_of_index,
        fill_in_body,
        replace_certificates,
        show_request,
    )

    with TemporaryDirectory(prefix="oku-") as folder:
        async with open_backend(coordinator, data_dir) as backend:
            run = await find_run(backend, reference, takes_newest=True)
            spec = await fetch_spec_of_index(backend, run, index, "INDEX")
            if spec.runs_user_code:
                if coordinator is not None:
                    raise UserError(
                        f"run {run} runs user code of whoever has submitted it; only that of runs in a data "
                        "folder of your own is replayed"
                    )
                iteration = await fetch_iteration(backend, run, index, spec)
                return await _iterate(backend, iteration, Path(folder), own, as_json=as_json)
            request = await fetch_request(backend, run, index, spec, is_to_be_sent=True)
            request = replace_certificates(request, own.certificates)
            wanted = [*request.list_bodies(), *request.list_certificates()]
            files = await fetch_files(backend, run, wanted, Path(folder))
        request = fill_in_body(request, files)
        shown = show_request(request)
        prepared = await prepare(request, SpecSources(files, own.secrets))
    if not as_json:
        print_request(shown)
    outcome = await send_once(prepared)
    if as_json:
        print_json({"request": shown, **msgspec.structs.asdict(outcome)})
    else:
        print_outcome(outcome)
    return ExitCode.COMPLETED if outcome.outcome is Outcome.OK else ExitCode.NOT_PASSED


async def _iterate(
    backend: RunBackend, iteration: "RunIteration", folder: Path, own: _Own, *, as_json: bool
) -> ExitCode:
    from oku_cli.replay.engine_run import iterate_once  # noqa: PLC0415
    from oku_cli.replay.run_iteration import prepare_iteration, refuse_setup  # noqa: PLC0415

    refuse_setup(iteration)
    spec, files = await prepare_iteration(backend, iteration, folder)
    filled = own.secrets.fill_in(spec)
    shown = iteration.show()
    if not as_json:
        print_iteration(shown)
    outcome = await iterate_once(iteration, filled, own.secrets, files)
    if as_json:
        print_json({"iteration": shown, **msgspec.structs.asdict(outcome)})
    else:
        print_iteration_outcome(outcome)
    return ExitCode.COMPLETED if outcome.outcome is Outcome.OK else ExitCode.NOT_PASSED
