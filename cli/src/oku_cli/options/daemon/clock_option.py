"""`--clock-address`: where workers on other machines ask for the clock of a coordinator."""

import re
from typing import Any, NamedTuple, TypeVar

from oku_cli.options.option_group import OptionGroup, option
from oku_cli.options.option_parser import Parsed
from oku_core.errors import format_value

_Command = TypeVar("_Command", bound=Any)

_HOST_PORT = re.compile(r"(?P<host>[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::(?P<port>[0-9]{1,5}))?")
_HIGHEST_PORT = 65535


class HostPort(NamedTuple):
    """A host, and a port if one was named."""

    host: str
    port: int | None


def parse_host_port(text: str) -> HostPort:
    """Read `HOST` or `HOST:PORT`, with brackets around IPv6; raise `ValueError` for anything else."""
    match = _HOST_PORT.fullmatch(text)
    port = int(match["port"]) if match and match["port"] else None
    if match is None or (port is not None and not 0 < port <= _HIGHEST_PORT):
        raise ValueError(f"{format_value(text)} is not HOST or HOST:PORT")
    return HostPort(match["host"].strip("[]"), port)


def clock_option(command: _Command) -> _Command:
    """`--clock-address`."""
    add = option(
        OptionGroup.LISTENING,
        "--clock-address",
        metavar="HOST[:PORT]",
        envvar="OKU_CLOCK_ADDRESS",
        type=Parsed("address", parse_host_port),
        help="Where workers on other machines ask what time it is here, by UDP; default: --host, or the "
        "host name, and --port.",
    )
    decorated: _Command = add(command)
    return decorated
