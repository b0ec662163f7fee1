"""`oku server`: reads the flags of a delay server into its settings and serves until it is stopped."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from oku_cli.options.daemon.process_options import log_options
from oku_cli.options.option_group import GroupedCommand, OptionGroup, Parsed, naming, option
from oku_core.errors import UserError
from oku_core.spec.values.delay import parse_delay
from oku_core.spec.values.quantity import parse_count
from oku_server.behaviour.fault import FaultRates, parse_fraction
from oku_server.settings import DEFAULT_BODY, DEFAULT_HOST, DEFAULT_PORT, ServerSettings, parse_body_setting

_MAX_PROCESSES = 1024
_MAX_SEED = 2**63 - 1


def _whole(low: int, high: int) -> Parsed:
    def parse(value: str) -> int:
        number = parse_count(value)
        if not low <= number <= high:
            raise ValueError(f"{value} is not between {low} and {high}")
        return number

    return Parsed("N", parse)


def _rate(flag: str, meaning: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    return option(
        OptionGroup.FAULTS,
        flag,
        default="0",
        show_default=True,
        type=Parsed("RATE", parse_fraction),
        help=meaning,
    )


@click.command("server", cls=GroupedCommand)
@option(
    OptionGroup.LISTENING,
    "--host",
    envvar="OKU_HOST",
    default=DEFAULT_HOST,
    show_default=True,
    help="Address to listen on; * for all.",
)
@option(
    OptionGroup.LISTENING,
    "--port",
    default=str(DEFAULT_PORT),
    show_default=True,
    type=_whole(0, 65535),
    help="Port to listen on; 0 for any free one.",
)
@option(
    OptionGroup.LISTENING,
    "--listen-fd",
    "listen_fds",
    type=click.IntRange(min=0),
    multiple=True,
    metavar="N",
    help="Inherited socket that already listens, instead of --host and --port; one for each process.",
)
@option(
    OptionGroup.LISTENING,
    "--processes",
    default="1",
    show_default=True,
    type=_whole(1, _MAX_PROCESSES),
    help="How many processes share the port.",
)
@option(
    OptionGroup.RESPONSES,
    "--delay",
    default="0s",
    show_default=True,
    type=Parsed("DELAY", parse_delay),
    help="Delay before each response: 20ms, 0..3s, 5ms..80ms, exp:50ms, lognormal:40ms,0.5. "
    "The same /N, N a number, always gets the same delay.",
)
@option(
    OptionGroup.RESPONSES,
    "--seed",
    default="0",
    show_default=True,
    type=_whole(0, _MAX_SEED),
    help="Seed of the delays and faults of each /N.",
)
@option(
    OptionGroup.RESPONSES,
    "--body",
    default=DEFAULT_BODY.decode(),
    show_default=True,
    type=Parsed("BODY", parse_body_setting),
    help="Response body: @FILE for the content of a file, a size such as 512B, 4KiB or 1MB, or the text "
    "itself.",
)
@_rate("--error-rate", "Fraction of requests (0 to 1) answered with status 500.")
@_rate("--reset-rate", "Fraction of requests whose connection is reset.")
@_rate("--stall-rate", "Fraction of requests that are never answered.")
@_rate("--truncate-rate", "Fraction of requests answered with half of the body.")
@option(
    OptionGroup.COUNTS,
    "--counts-dir",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder that keeps the counts of requests by run across a crash; default: memory only. "
    "GET /-/served?run=NAME returns them.",
)
@option(
    OptionGroup.COUNTS,
    "--trust-counts-dir",
    "trusts_counts_dir",
    is_flag=True,
    help="Do not check who owns the folder and who may write it, as for a volume that nothing else mounts.",
)
@option(
    OptionGroup.LISTENING,
    "--ready-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File that gets HOST:PORT once the server listens.",
)
@log_options
def command(**given: Any) -> None:
    """Run a delay server: a target that answers after a delay.

    Every GET /NAME is answered after a delay with status 200, the delay in seconds in the header Delay,
    and a body; the rates below add faults. Requests are counted by run, which their header Oku-Run names.
    """
    from oku_server.process import serve  # noqa: PLC0415  # an event loop takes long to load

    if given["listen_fds"] and len(given["listen_fds"]) != given["processes"]:
        raise UserError(f"--listen-fd: {len(given['listen_fds'])} is not the number of --processes")
    rates = {name: given.pop(f"{name}_rate") for name in ("error", "reset", "stall", "truncate")}
    with naming("--error-rate, --reset-rate, --stall-rate, --truncate-rate"):
        faults = FaultRates(**rates)
    with naming("--truncate-rate"):
        settings = ServerSettings(faults=faults, **given)
    serve(settings)
