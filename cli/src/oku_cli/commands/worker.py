"""`oku worker`: a single worker, as a pod runs it."""

import ipaddress
import platform
from pathlib import Path
from typing import Any

import click

from oku_cli.options.daemon.allow_options import (
    confinement_options,
    files_dir_option,
    secret_options,
    user_code_options,
)
from oku_cli.options.daemon.broker_options import broker_options, read_message_key
from oku_cli.options.daemon.file_options import files_cache_options
from oku_cli.options.daemon.process_options import log_options, variables_option
from oku_cli.options.option_group import GroupedCommand, OptionGroup, Parsed, option
from oku_cli.process.logs import add_context
from oku_cli.process.secret_variables import forget_secrets
from oku_core.errors import UserError
from oku_core.process.landlock import Confinement
from oku_core.spec.files import SpecFiles
from oku_core.spec.secrets import SecretSource, SpecSources
from oku_core.spec.values.quantity import parse_duration_s


def _parse_address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ValueError(f"{text} is not an IP address") from None


@click.command(name="worker", cls=GroupedCommand)
@broker_options
@option(
    OptionGroup.LIFE,
    "--name",
    envvar="OKU_WORKER_NAME",
    default=platform.node,
    help="Unique name of the worker; default: the host's name.",
)
@option(
    OptionGroup.LIFE,
    "--grace",
    "grace_s",
    envvar="OKU_GRACE",
    type=Parsed("duration", parse_duration_s),
    default="20s",
    show_default=True,
    help="How long requests in flight may go on after SIGTERM.",
)
@option(
    OptionGroup.LIFE,
    "--local-address",
    envvar="OKU_LOCAL_ADDRESS",
    type=Parsed("address", _parse_address),
    help="Local address to send from; default: the system's choice.",
)
@option(
    OptionGroup.LIFE,
    "--ready-file",
    envvar="OKU_READY_FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File that exists while the worker takes leases.",
)
@option(
    OptionGroup.LIFE,
    "--health-port",
    envvar="OKU_HEALTH_PORT",
    metavar="N",
    type=click.IntRange(1, 65535),
    help="Port for probes by HTTP: /healthz while the worker is not stuck, /readyz once it has heard from its"
    " coordinator; default: none.",
)
@option(
    OptionGroup.LIFE,
    "--host",
    "health_host",
    envvar="OKU_HOST",
    default="127.0.0.1",
    show_default=True,
    help="Address that --health-port is on; * for all.",
)
@files_cache_options
@files_dir_option
@secret_options(has_variables=True)
@user_code_options
@confinement_options(serves_others=True)
@variables_option
@log_options
def command(
    name: str,
    files: SpecFiles,
    secrets: SecretSource,
    message_key_file: Path | None,
    files_cache: Path | None,
    confinement: Confinement,
    **settings: Any,
) -> None:
    """Run a worker, which takes leases and sends their requests.

    On SIGTERM it takes nothing more, lets requests in flight finish for up to --grace, gives back the rest,
    and ends.
    """
    from oku_workers.process import serve  # noqa: PLC0415  # Celery and aiohttp take a second to load
    from oku_workers.settings import WorkerSettings  # noqa: PLC0415

    add_context(worker=name)
    confinement.check()
    for folder in files.folders:
        if not folder.is_dir():
            raise UserError(f"--files-dir: {folder} is not a folder here")
    if files_cache is not None:
        settings["files_cache"] = files_cache.absolute()
    sources = SpecSources(files, secrets)
    key = read_message_key(message_key_file)
    own = WorkerSettings(message_key=key, name=name, sources=sources, confinement=confinement, **settings)
    forget_secrets()
    serve(own)
