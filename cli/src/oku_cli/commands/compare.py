"""`oku compare`: two runs side by side, and whether the second is faster or slower than the first."""

from collections.abc import Sequence
from typing import Any

import click

from oku_cli.backends.run_backend import RunPlace, find_run
from oku_cli.comparison.comparison import Comparison, Verdict, compare_runs
from oku_cli.comparison.comparison_tables import describe_comparison
from oku_cli.comparison.run_seconds import read_run_seconds
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import as_command
from oku_cli.options.option_group import JsonCommand, OptionGroup, json_option, option
from oku_cli.options.run_options import place_options, run_argument
from oku_cli.report.comparison_page import build_comparison_page
from oku_cli.report.masking import mask_spec
from oku_cli.report.output_files import STANDARD_OUTPUT, check_output, open_output
from oku_cli.terminal.console import Terminal
from oku_cli.terminal.json_output import print_json
from oku_cli.terminal.printable import write_error
from oku_cli.views.comparison_view import build_comparison
from oku_core.errors import UserError, format_value
from oku_core.spec.fields import FIELD_BY_KEY


@click.command(
    name="compare",
    cls=JsonCommand,
    file_hint="redirect it: oku compare A B --json > FILE",
    examples={
        "Compare the latest run with one that has a name": "oku compare checkout-before latest",
        "Judge two runs although their URLs differ": "oku compare A B --despite url",
        "Fail a pipeline if the latest run is slower": "oku compare before latest --fail-if slower",
    },
)
@run_argument("a")
@run_argument("b")
@json_option("the comparison")
@option(
    OptionGroup.OUTPUT, "--html", "html_file", metavar="FILE", help="Write the comparison as a page to FILE."
)
@option(
    OptionGroup.OUTPUT,
    "--despite",
    metavar="KEY",
    multiple=True,
    help="Judge the runs although this key of their specs differs; may be given several times.",
)
@option(
    OptionGroup.OUTPUT,
    "--fail-if",
    metavar=Verdict.SLOWER,
    type=click.Choice([str(Verdict.SLOWER)]),
    help="Exit code 1 if B is slower at any quantile, or the runs cannot be judged.",
)
@option(
    OptionGroup.OUTPUT,
    "--allow-undecided",
    "allows_undecided",
    is_flag=True,
    help="Do not let runs that cannot be judged change the exit code.",
)
@place_options
@as_command
async def command(
    a: str,
    b: str,
    despite: Sequence[str],
    place: RunPlace,
    *,
    fail_if: str | None,
    allows_undecided: bool,
    **output: Any,
) -> ExitCode:
    """Compare run B with run A, and find whether it is faster.

    Shows accounts, rates, quantiles with their intervals, and differences of the specs. Shows whether B is
    faster or slower than A, or that no difference shows, and which one would have shown. A and B are runs as
    anywhere: latest, an id, a name, or any unique part of an id.
    """
    for key in despite:
        if key not in FIELD_BY_KEY:
            raise UserError(f"--despite: {format_value(key)} is not a key of a spec, such as url")
    _check(**output)
    async with place.open() as backend:
        ids = [await find_run(backend, reference, takes_newest=True) for reference in (a, b)]
        first, second = [await read_run_seconds(backend, run) for run in ids]
    comparison = compare_runs(first, second, mask=mask_spec, despite=despite)
    _show(comparison, **output)
    if fail_if is None or not comparison.fails_as_slower(allows_undecided=allows_undecided):
        return ExitCode.COMPLETED
    write_error(f"--fail-if {fail_if}: {describe_comparison(comparison)}")
    return ExitCode.NOT_PASSED


def _check(*, as_json: bool, html_file: str | None) -> None:
    if html_file is None:
        return
    check_output("--html", html_file)
    if as_json and html_file == STANDARD_OUTPUT:
        raise UserError("--json and --html: only one of them can go to standard output")


def _show(comparison: Comparison, *, as_json: bool, html_file: str | None) -> None:
    if html_file is not None:
        with open_output("--html", html_file) as output_stream:
            output_stream.write(build_comparison_page(comparison).encode())
    if as_json:
        print_json(comparison)
    elif html_file != STANDARD_OUTPUT:
        Terminal().print(build_comparison(comparison))
