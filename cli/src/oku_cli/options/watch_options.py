"""The options that say how a run is shown while it goes on, and where its summary goes."""

from collections.abc import Callable
from typing import Any

import click

_Command = Callable[..., Any]


def watch_options(command: _Command) -> _Command:
    """`--json` and `--quiet`."""
    command = click.option("--quiet", is_flag=True, help="Show no progress.")(command)
    option = click.option(
        "--json", "json_file", metavar="FILE", help="Write the summary as JSON; - is standard output."
    )
    return option(command)
