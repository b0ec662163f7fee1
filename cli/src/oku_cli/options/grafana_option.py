"""`--grafana`: where the dashboard of a run is seen."""

from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from oku_cli.options.option_group import OptionGroup, option
from oku_cli.options.option_parser import Parsed
from oku_cli.views.dashboard_link import parse_grafana_url
from oku_core.errors import UserError

_Command = Callable[..., Any]


def grafana_option(command: _Command) -> _Command:
    """`--grafana`; the command gets the address as `grafana`, or None."""
    add = option(
        OptionGroup.LOKI,
        "--grafana",
        metavar="URL",
        envvar="OKU_GRAFANA_URL",
        type=Parsed("url", parse_grafana_url),
        help="Print a link to the run's dashboard in this Grafana, such as http://127.0.0.1:3000.",
    )
    return add(command)


def drop_grafana_without_loki(grafana: str | None) -> str | None:
    """Refuse the flag for a run that writes to no Loki, whose dashboard is empty; ignore the variable."""
    source = click.get_current_context().get_parameter_source("grafana")
    if grafana is not None and source is ParameterSource.COMMANDLINE:
        raise UserError("--grafana: shows what is in a Loki; name that by --loki")
    return None
