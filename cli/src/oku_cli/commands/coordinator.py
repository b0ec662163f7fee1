"""`oku coordinator`: the coordinator by itself, as a pod runs it."""

import logging
import os
import secrets
from pathlib import Path
from typing import Any

import click

from oku_cli.options.allow_options import files_dir_option
from oku_cli.options.kube_options import kube_options, pick_kube_settings
from oku_cli.options.loki_options import loki_options, pick_loki_options
from oku_cli.options.message_key import message_key_option, read_message_key
from oku_cli.options.option_parser import build_duration
from oku_cli.options.retention_options import pick_retention, retention_options
from oku_cli.process.logs import log_options
from oku_cli.remote.api_token import read_token

_log = logging.getLogger(__name__)


@click.command(name="coordinator")
@click.option(
    "--broker-url",
    envvar="OKU_BROKER_URL",
    required=True,
    help="Broker: redis://, rediss://, redis+socket:// or amqp://.",
)
@click.option(
    "--data-dir",
    envvar="OKU_DATA_DIR",
    type=click.Path(path_type=Path),
    default=Path(".oku"),
    show_default=True,
    help="Folder of the ledger.",
)
@click.option(
    "--trust-data-dir",
    "trusts_data_dir",
    envvar="OKU_TRUST_DATA_DIR",
    is_flag=True,
    help="Take that folder as it is, whoever owns it and may write it: a volume that nobody else mounts.",
)
@click.option(
    "--token",
    envvar="OKU_TOKEN",
    help="Token that API calls must bear; one is made and printed unless given. Others see flags, not the "
    "environment.",
)
@click.option(
    "--host",
    envvar="OKU_HOST",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; * is all.",
)
@click.option(
    "--port",
    envvar="OKU_PORT",
    type=click.IntRange(0, 65535),
    default=8700,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option(
    "--listen-fd",
    type=click.IntRange(min=0),
    metavar="N",
    help="Number of an inherited socket that listens already, instead of --host and --port.",
)
@click.option(
    "--server-url",
    "server_urls",
    envvar="OKU_SERVER_URLS",
    multiple=True,
    help="Where Oku's own delay servers are.",
)
@click.option(
    "--worker-timeout",
    "worker_timeout_s",
    type=build_duration("1s", "2h"),
    envvar="OKU_WORKER_TIMEOUT",
    default="10s",
    show_default=True,
    help="A worker that is silent for longer is dead.",
)
@click.option(
    "--start-within",
    "start_within_s",
    type=build_duration("1s", "24h"),
    envvar="OKU_START_WITHIN",
    default="10m",
    show_default=True,
    help="A run that has its turn, and has not begun after so long, gives it to the next.",
)
@click.option(
    "--max-queued-runs",
    "most_queued",
    envvar="OKU_MAX_QUEUED_RUNS",
    type=click.IntRange(min=1),
    default=500,
    show_default=True,
    help="So many runs may wait, the active one included.",
)
@retention_options
@message_key_option
@loki_options
@kube_options
@files_dir_option
@click.option(
    "--ready-file", type=click.Path(path_type=Path), help="File to write host:port into once it listens."
)
@log_options
def command(token: str | None, message_key_file: Path | None, **settings: Any) -> None:
    """Keep the ledger, deal out the ranges of runs, answer the HTTP API."""
    from oku_coordinator.process import serve  # noqa: PLC0415  # Celery and aiohttp take a second to load
    from oku_coordinator.settings import CoordinatorSettings  # noqa: PLC0415

    retention = pick_retention(settings)
    loki = pick_loki_options(settings)
    kube = pick_kube_settings(settings)
    serve(
        CoordinatorSettings(
            message_key=read_message_key(message_key_file),
            token=_choose_token(token),
            retention=retention,
            loki=loki.build_target(),
            most_outbox_bytes=loki.loki_outbox,
            kube=kube,
            **settings,
        )
    )


def _choose_token(given: str | None) -> str:
    if given is None:
        given = os.environ.get("OKU_TOKEN")  # to click an empty one is none: a Secret that lacks it, perhaps
    if given is not None:
        return read_token(given)
    token = secrets.token_urlsafe(24)
    _log.warning("no token is given, API calls must bear %s until this process ends", token)
    return token
