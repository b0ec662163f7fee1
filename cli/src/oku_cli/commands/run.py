"""`oku run`: makes a spec of file and flags, and carries it out here or at a coordinator elsewhere."""

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import msgspec

from oku_cli.exit_code import ExitCode
from oku_cli.local.data_dir import DataDir
from oku_cli.local.local_run import build_plan, check_secrets, run_locally
from oku_cli.local.stack import StackPlan
from oku_cli.options.allow_options import refuse_secrets, secret_options
from oku_cli.options.loki_options import loki_options, pick_loki_options, refuse_loki
from oku_cli.options.spec_file import read_spec_file
from oku_cli.options.spec_options import (
    data_dir_option,
    pick_spec_values,
    refuse_servers,
    remote_options,
    spec_options,
    watch_options,
)
from oku_cli.process.interrupt import Interrupts
from oku_cli.process.interrupt_hints import InterruptHints, describe_unbegun
from oku_cli.remote.client import Client, CoordinatorRef
from oku_cli.remote.follow import Driver, Watch, run_async
from oku_core.errors import UserError
from oku_core.spec.files import EVERYWHERE
from oku_core.spec.parser import Source, build_mapping, parse_spec
from oku_core.spec.secrets import SecretSource
from oku_core.spec.spec import Spec
from oku_workers.engines.tls import build_tls

_FILES = ("cacert", "cert", "key")


@click.command(name="run")
@click.argument("targets", nargs=-1, metavar="[SPEC.YAML | URL...]")
@spec_options
@data_dir_option
@remote_options
@watch_options
@loki_options
@secret_options(has_variables=False)
def command(
    targets: tuple[str, ...],
    data_dir: Path,
    elsewhere: CoordinatorRef | None,
    json_file: str | None,
    quiet: bool,  # noqa: FBT001  # click passes flags so
    secrets: SecretSource,
    **options: Any,
) -> int:
    """Make requests to URL, or to delay servers of its own, and account for every one.

    The spec comes from a file (- is standard input), from flags, or both: flags override the file. Ctrl-C
    stops taking requests and says how to resume; a second one stops at once, or leaves a run elsewhere to
    its coordinator.
    """
    files = [target for target in targets if not _is_url(target)]
    if len(files) > 1:
        raise UserError(f"{files[1]}: one spec file is enough, {files[0]} was given before")
    options["url"] = (*options["url"], *filter(_is_url, targets))
    loki = pick_loki_options(options)
    spec = parse_spec(*map(read_spec_file, files), Source(None, pick_spec_values(options)))
    watch = Watch(json_file, quiet)
    watch.check()
    if elsewhere is not None:
        refuse_loki(loki)
        refuse_secrets(secrets)
        return run_async(_run_remotely(elsewhere, spec, watch))
    spec = find_files(spec)
    plan = replace(build_plan(spec, loki), secrets=check_secrets(spec, secrets))
    return run_async(_run_here(DataDir(data_dir), spec, plan, watch))


def _is_url(target: str) -> bool:
    return target.lower().startswith(("http://", "https://"))


def find_files(spec: Spec) -> Spec:
    """Name the files of a spec in full, so that it is the same from any folder; `UserError` if unusable."""
    paths = {key: Path(path).expanduser() for key in _FILES if (path := getattr(spec, key)) is not None}
    spec = msgspec.structs.replace(spec, **{key: str(path.absolute()) for key, path in paths.items()})
    build_tls(spec, EVERYWHERE)
    return spec


async def _run_here(data_dir: DataDir, spec: Spec, plan: StackPlan, watch: Watch) -> ExitCode:
    data_dir.hold()
    try:
        return await run_locally(
            data_dir, spec.name, plan, watch, lambda client: client.submit(build_mapping(spec))
        )
    finally:
        data_dir.release()


async def _run_remotely(place: CoordinatorRef, spec: Spec, watch: Watch) -> ExitCode:
    interrupts, parting = Interrupts(), InterruptHints(place.flags, outlives=True)
    async with AsyncExitStack() as open_client:
        opening = open_client.enter_async_context(Client(place))
        client = await interrupts.cut(opening, describe_unbegun(None))
        if spec.servers is not None:
            scaling = await interrupts.cut(client.fetch_scaling(), describe_unbegun(None))
            if scaling is None:
                refuse_servers(spec)
        submitting = client.submit(build_mapping(spec))
        run = await interrupts.let_end(submitting, parting.describe_unanswered(None))
        driver = Driver(client, watch, parting, interrupts)
        return driver.finish(await driver.follow(run, spec.name or run))
