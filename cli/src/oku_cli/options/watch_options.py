"""The options that say how a run is shown while it goes on, and where its summary goes."""

from collections.abc import Callable
from typing import Any

import click

from oku_cli.options.json_option import json_option

FILE_HINT = "--summary-json FILE writes one (a spec in JSON goes before --json)"
_Command = Callable[..., Any]


def watch_options(command: _Command) -> _Command:
    """`--json`, `--summary-json` and `--quiet`."""
    command = click.option("--quiet", is_flag=True, help="Show no progress.")(command)
    command = click.option(
        "--summary-json", "summary_file", metavar="FILE", help="Also write the summary as JSON to FILE."
    )(command)
    return json_option("the summary")(command)
