"""`oku report`: a run as one HTML file, and for other tools as JSON, CSV and HdrHistogram text."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import click

from oku_cli.backends.run_backend import RunPlace, find_run
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import as_command
from oku_cli.options.option_group import JsonCommand, OptionGroup, json_option, option
from oku_cli.options.run_options import place_options, run_argument
from oku_cli.report.history_reader import RunHistory
from oku_cli.report.output_files import STANDARD_OUTPUT, OutputFile, ReportWriter, build_csv, build_hgrm_text
from oku_cli.report.page import build_page
from oku_cli.views.junit import build_junit
from oku_cli.views.summary_markdown import build_markdown
from oku_core.errors import UserError


@click.command(name="report", cls=JsonCommand, file_hint="redirect it: oku report RUN --json > FILE")
@run_argument()
@option(
    OptionGroup.OUTPUT,
    "--output",
    "-o",
    metavar="FILE",
    help="Write the page to FILE; default: oku-report-RUN.html.",
)
@json_option("everything kept of the run")
@option(
    OptionGroup.OUTPUT, "--csv", "csv_file", metavar="FILE", help="Write one line for each second as CSV."
)
@option(
    OptionGroup.OUTPUT,
    "--hgrm",
    "hgrm_file",
    metavar="FILE",
    help="Write latencies as HdrHistogram text, in ms.",
)
@option(
    OptionGroup.OUTPUT,
    "--junit",
    "junit_file",
    metavar="FILE",
    help="Write a test case for each threshold and each flag as JUnit XML.",
)
@option(
    OptionGroup.OUTPUT,
    "--summary-markdown",
    "markdown_file",
    metavar="FILE",
    help="Write the summary as Markdown.",
)
@option(OptionGroup.OUTPUT, "--show-secrets", is_flag=True, help="Do not mask headers, queries and bodies.")
@place_options
@as_command
async def command(run: str, place: RunPlace, *, show_secrets: bool, **files: Any) -> ExitCode:
    """Write a report of a run in any state as one HTML file.

    RUN is latest, an id, a name, or any unique part of an id.

    With any of these but --output, only the requested files are written. A FILE of - is standard output.
    """
    outputs = _choose_outputs(files, show_secrets=show_secrets)
    async with place.open() as backend:
        run = await find_run(backend, run, takes_newest=True)
        page = partial(build_page, show_secrets=show_secrets)
        usual = OutputFile("--output", f"oku-report-{run}.html", page)
        with ReportWriter(outputs or [usual], show_secrets=show_secrets) as writer:
            async for line in backend.read_run_history(run):
                writer.write_line(line)
            writer.finish()
    return ExitCode.COMPLETED


def _choose_outputs(files: Mapping[str, Any], *, show_secrets: bool) -> list[OutputFile]:
    """The requested files; `UserError` if one of them cannot be written."""
    asked = [
        OutputFile("--output", files["output"], partial(build_page, show_secrets=show_secrets)),
        OutputFile("--json", STANDARD_OUTPUT if files["as_json"] else None, None),
        OutputFile("--csv", files["csv_file"], build_csv),
        OutputFile("--hgrm", files["hgrm_file"], build_hgrm_text),
        OutputFile("--junit", files["junit_file"], _build_junit),
        OutputFile("--summary-markdown", files["markdown_file"], _build_markdown),
    ]
    wanted = [each for each in asked if each.path is not None]
    if sum(each.path == STANDARD_OUTPUT for each in wanted) > 1:
        flags = " and ".join(each.flag for each in wanted if each.path == STANDARD_OUTPUT)
        raise UserError(f"{flags}: only one of them can go to standard output")
    for each in wanted:
        each.check()
    return wanted


def _build_junit(history: RunHistory) -> bytes:
    return build_junit(history.summary)


def _build_markdown(history: RunHistory) -> bytes:
    return build_markdown(history.summary)
