"""`oku resume`: goes on with a run exactly where its ledger stands."""

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
from oku_cli.options.spec_options import data_dir_option, remote_options, watch_options
from oku_cli.process.interrupt import Interrupts
from oku_cli.process.interrupt_hints import InterruptHints, describe_unbegun
from oku_cli.remote.client import Client, CoordinatorRef
from oku_cli.remote.follow import Driver, Watch, run_async
from oku_core.accounting.run_state import FINAL_STATES, is_resumable
from oku_core.errors import UserError
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.secrets import SecretSource
from oku_core.spec.spec import Spec


@click.command(name="resume")
@click.argument("run")
@click.option("--workers", metavar="N", help="Another number of workers than before.")
@click.option("--servers", metavar="N", help="Another number of delay server processes than before.")
@data_dir_option
@remote_options
@watch_options
@loki_options
@secret_options(has_variables=False)
def command(
    run: str,
    data_dir: Path,
    elsewhere: CoordinatorRef | None,
    json_file: str | None,
    quiet: bool,  # noqa: FBT001  # click passes flags so
    secrets: SecretSource,
    **options: Any,
) -> int:
    """Go on with a paused or interrupted RUN, also days later."""
    watch = Watch(json_file, quiet)
    watch.check()
    loki = pick_loki_options(options)
    given = parse_spec(Source(None, {key: value for key, value in options.items() if value is not None}))
    folder = DataDir(data_dir)
    place = elsewhere or folder.find_endpoint()
    if place is not None:
        refuse_loki(loki)
        refuse_secrets(secrets)
        refuse_shape(given, elsewhere)
        parting = InterruptHints((elsewhere or folder).flags, outlives=True)
        return run_async(_resume_at(place, run, watch, parting))
    spec = _fetch_spec(folder, run)
    shape = msgspec.structs.replace(
        spec, workers=given.workers or spec.workers, servers=given.servers or spec.servers
    )
    plan = replace(build_plan(shape, loki), secrets=check_secrets(spec, secrets))
    return run_async(_resume_here(folder, run, spec, plan, watch))


def refuse_shape(given: Spec, elsewhere: CoordinatorRef | None) -> None:
    """A coordinator elsewhere resumes a run with what its spec says."""
    for key in ("workers", "servers"):
        if elsewhere is not None and getattr(given, key) is not None:
            raise UserError(f"--{key}: shapes a local stack, it does not go together with --coordinator")


async def _resume_at(place: CoordinatorRef, run: str, watch: Watch, parting: InterruptHints) -> ExitCode:
    interrupts = Interrupts()
    async with AsyncExitStack() as open_client:
        opening = open_client.enter_async_context(Client(place))
        client = await interrupts.cut(opening, describe_unbegun(run))
        await interrupts.let_end(client.act(run, "resume"), parting.describe_unanswered(run))
        driver = Driver(client, watch, parting, interrupts)
        return driver.finish(await driver.follow(run, run))


async def _resume_here(data_dir: DataDir, run: str, spec: Spec, plan: StackPlan, watch: Watch) -> ExitCode:
    async def begin(client: Client) -> str:
        await client.act(run, "resume")
        return run

    data_dir.hold()
    try:
        return await run_locally(data_dir, spec.name, plan, watch, begin, resumed=run)
    finally:
        data_dir.release()


def _fetch_spec(data_dir: DataDir, run: str) -> Spec:
    record = data_dir.require_run(run)
    if record.state in FINAL_STATES and not is_resumable(record.state, is_broken=record.is_broken):
        raise UserError(f"run {run} is {record.state}, it cannot be resumed")
    return record.spec
