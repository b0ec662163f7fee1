"""The options about addresses and room: where workers ask for the clock and files, how much files take."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from oku_cli.options.option_group import OptionGroup, Parsed, add_joined_options, add_options, option
from oku_core.errors import format_value
from oku_core.spec.values.quantity import parse_size

if TYPE_CHECKING:
    from oku_coordinator.settings import FileLimits


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


_SIZE = Parsed("size", parse_size)


def _pick_file_limits(options: dict[str, Any]) -> "FileLimits":
    from oku_coordinator.settings import FileLimits  # noqa: PLC0415  # loads the ledger

    return FileLimits(
        most_file_bytes=options.pop("max_file_bytes"),
        most_bytes=options.pop("max_files_bytes"),
        most_per_run=options.pop("max_run_files"),
    )


file_limit_options = add_joined_options(
    "file_limits",
    _pick_file_limits,
    option(
        OptionGroup.LEDGER, "--max-file-bytes", metavar="SIZE", envvar="OKU_MAX_FILE_BYTES",
        type=_SIZE, default="4GB", show_default=True, help="Limit for a file of a run.",
    ),
    option(
        OptionGroup.LEDGER, "--max-files-bytes", metavar="SIZE", envvar="OKU_MAX_FILES_BYTES",
        type=_SIZE, default="20GB", show_default=True, help="Limit for the files of all runs together.",
    ),
    option(
        OptionGroup.LEDGER, "--max-run-files", metavar="N", envvar="OKU_MAX_RUN_FILES",
        type=click.IntRange(min=0), default=100, show_default=True, help="Limit for the files of a run.",
    ),
)  # fmt: skip

address_options = add_options(
    option(
        OptionGroup.LISTENING, "--clock-address", metavar="HOST[:PORT]", envvar="OKU_CLOCK_ADDRESS",
        type=Parsed("address", parse_host_port),
        help="Where workers on other machines ask what time it is here, by UDP; default: --host, or the "
        "host name, and --port.",
    ),
    option(
        OptionGroup.LISTENING, "--files-port", metavar="N", envvar="OKU_FILES_PORT",
        type=click.IntRange(0, _HIGHEST_PORT),
        help="Port at which workers fetch the files of runs; default: the one after --port.",
    ),
    option(
        OptionGroup.LISTENING, "--files-listen-fd", metavar="N", type=click.IntRange(min=0),
        help="Inherited socket that already listens, instead of --files-port.",
    ),
    option(
        OptionGroup.LISTENING, "--files-address", metavar="HOST[:PORT]", envvar="OKU_FILES_ADDRESS",
        type=Parsed("address", parse_host_port),
        help="Where workers on other machines fetch them; default: --host, or the host name, and "
        "--files-port.",
    ),
)  # fmt: skip


def pick_addresses(options: dict[str, Any]) -> dict[str, Any]:
    """Take where workers ask for the clock and for files out of the options, as settings of a coordinator."""
    clock_host, clock_port = options.pop("clock_address") or (None, None)
    files_host, address_port = options.pop("files_address") or (None, None)
    port = options.pop("files_port")
    if port is None:
        following = options["port"] + 1
        port = following if 1 < following <= _HIGHEST_PORT and options["listen_fd"] is None else 0
    return {
        "clock_host": clock_host,
        "clock_port": clock_port,
        "files_port": port,
        "files_host": files_host,
        "files_address_port": address_port,
    }


files_cache_options = add_options(
    option(
        OptionGroup.LIFE, "--files-cache", metavar="FOLDER", envvar="OKU_FILES_CACHE",
        type=click.Path(path_type=Path, file_okay=False),
        help="Folder for the files of runs, which workers of one machine may share; default: one in the "
        "folder of temporary files.",
    ),
    option(
        OptionGroup.LIFE, "--max-cache-bytes", "most_cache_bytes", metavar="SIZE",
        envvar="OKU_MAX_CACHE_BYTES", type=_SIZE, default="20GB", show_default=True,
        help="Limit for the files in it.",
    ),
)  # fmt: skip
"""The options of a worker."""
