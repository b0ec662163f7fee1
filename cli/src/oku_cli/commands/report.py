"""`oku report`: a run as one HTML file, and for other tools as JSON, CSV and HdrHistogram text."""

import time
from functools import partial
from pathlib import Path

import click

from oku_cli.exit_code import ExitCode
from oku_cli.local.data_dir import DataDir
from oku_cli.local.local_report import read_run_history
from oku_cli.options.spec_options import data_dir_option, remote_options
from oku_cli.remote.client import Client, CoordinatorRef
from oku_cli.remote.follow import run_async
from oku_cli.report.exports import build_csv, build_hgrm_text
from oku_cli.report.output_files import STANDARD_OUTPUT, OutputFile, ReportWriter
from oku_cli.report.page import build_page
from oku_core.errors import UserError


@click.command(name="report")
@click.argument("run")
@click.option("--output", "-o", metavar="FILE", help="Where the page goes; oku-report-RUN.html unless given.")
@click.option("--json", "json_file", metavar="FILE", help="Write all that is kept of the run as JSON.")
@click.option("--csv", "csv_file", metavar="FILE", help="Write its seconds as CSV.")
@click.option("--hgrm", "hgrm_file", metavar="FILE", help="Write its latencies as HdrHistogram text, in ms.")
@click.option("--show-secrets", is_flag=True, help="Show values of headers and queries, and bodies, too.")
@data_dir_option
@remote_options
def command(
    run: str,
    data_dir: Path,
    elsewhere: CoordinatorRef | None,
    show_secrets: bool,  # noqa: FBT001  # click passes flags so
    **files: str | None,
) -> int:
    """Make a report of RUN, whatever its state: one HTML file that needs no network.

    With --json, --csv or --hgrm, only what was asked for is written. FILE may be -, standard output.
    """
    outputs = _choose_outputs(run, show_secrets=show_secrets, **files)
    folder = DataDir(data_dir)
    place = elsewhere or folder.find_endpoint()
    if place is not None:
        return run_async(_report_at(place, run, outputs, show_secrets=show_secrets))
    folder.require_run(run)
    with ReportWriter(outputs, show_secrets=show_secrets) as writer:
        for line in read_run_history(folder, run, time.time()):
            writer.take(line)
        writer.finish()
    return ExitCode.COMPLETED


async def _report_at(
    place: CoordinatorRef, run: str, outputs: list[OutputFile], *, show_secrets: bool
) -> ExitCode:
    with ReportWriter(outputs, show_secrets=show_secrets) as writer:
        async with Client(place) as client:
            async for line in client.read_run_history(run):
                writer.take(line)
        writer.finish()
    return ExitCode.COMPLETED


def _choose_outputs(
    run: str,
    *,
    show_secrets: bool,
    output: str | None,
    json_file: str | None,
    csv_file: str | None,
    hgrm_file: str | None,
) -> list[OutputFile]:
    """What is to be written; what can be known to be impossible is found out here."""
    build_own_page = partial(build_page, show_secrets=show_secrets)
    asked = [
        OutputFile("--output", output, build_own_page),
        OutputFile("--json", json_file, None),
        OutputFile("--csv", csv_file, build_csv),
        OutputFile("--hgrm", hgrm_file, build_hgrm_text),
    ]
    wanted = [each for each in asked if each.path is not None]
    if sum(each.path == STANDARD_OUTPUT for each in wanted) > 1:
        raise UserError(f"{wanted[-1].flag}: {STANDARD_OUTPUT} can be given only once")
    for each in wanted:
        each.check()
    return wanted or [OutputFile("--output", f"oku-report-{run}.html", build_own_page)]
