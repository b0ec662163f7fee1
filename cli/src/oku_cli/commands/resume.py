"""`oku resume`: goes on with a run exactly where its ledger stands."""

from pathlib import Path

import click
import msgspec

from oku_cli.client import Client
from oku_cli.data_dir import DataDir, Endpoint
from oku_cli.drive import Driver, Watch, build_hint, run_async
from oku_cli.exit_code import ExitCode
from oku_cli.local import build_plan, run_locally
from oku_cli.options import build_endpoint, data_dir_option, remote_options, watch_options
from oku_core.errors import UserError
from oku_core.run import FINAL_STATES
from oku_core.spec import Spec
from oku_core.spec_parser import Source, parse_spec


@click.command(name="resume")
@click.argument("run")
@click.option("--workers", metavar="N", help="Another number of workers than before.")
@click.option("--servers", metavar="N", help="Another number of delay server processes than before.")
@data_dir_option
@remote_options
@watch_options
def command(
    run: str,
    data_dir: Path,
    coordinator: str | None,
    token: str | None,
    json_file: str | None,
    quiet: bool,  # noqa: FBT001  # click passes flags so
    **shape: str | None,
) -> int:
    """Go on with a paused or interrupted RUN, also days later."""
    watch = Watch(json_file, quiet)
    watch.check()
    given = parse_spec(Source(None, {key: value for key, value in shape.items() if value is not None}))
    endpoint = build_endpoint(coordinator, token) or DataDir(data_dir).find_endpoint()
    if endpoint is not None:
        return run_async(_resume_at(endpoint, run, watch))
    return run_async(_resume_here(DataDir(data_dir), run, given, watch))


async def _resume_at(endpoint: Endpoint, run: str, watch: Watch) -> ExitCode:
    async with Client(endpoint) as client:
        await client.act(run, "resume")
        driver = Driver(client, watch, build_hint("resume", "{run}"))
        return driver.finish(await driver.follow(run, run))


async def _resume_here(data_dir: DataDir, run: str, given: Spec, watch: Watch) -> ExitCode:
    spec = _fetch_spec(data_dir, run)
    plan = build_plan(
        msgspec.structs.replace(
            spec, workers=given.workers or spec.workers, servers=given.servers or spec.servers
        )
    )

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
    if record.state in FINAL_STATES:
        raise UserError(f"run {run} is {record.state}, it cannot be resumed")
    return record.spec
