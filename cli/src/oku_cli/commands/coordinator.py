"""`oku coordinator`: the coordinator alone, as a pod runs it."""

import logging
import os
import secrets
from pathlib import Path
from typing import Any

import click

from oku_cli.backends.coordinator_ref import read_own_token
from oku_cli.options.daemon.allow_options import files_dir_option
from oku_cli.options.daemon.broker_options import broker_options, read_message_key
from oku_cli.options.daemon.file_options import address_options, file_limit_options, pick_addresses
from oku_cli.options.daemon.kube_options import kube_options, pick_kube_settings
from oku_cli.options.daemon.process_options import log_options, variables_option
from oku_cli.options.daemon.retention_options import retention_options
from oku_cli.options.loki_options import loki_options, pick_loki_options
from oku_cli.options.option_group import GroupedCommand, OptionGroup, build_duration, option
from oku_cli.process.secret_variables import forget_secrets
from oku_core.process.private_files import DATA_FOLDER

_log = logging.getLogger(__name__)


@click.command(name="coordinator", cls=GroupedCommand)
@broker_options
@option(
    OptionGroup.LEDGER,
    "--data-dir",
    metavar="FOLDER",
    envvar="OKU_DATA_DIR",
    type=click.Path(path_type=Path),
    default=Path(DATA_FOLDER),
    show_default=True,
    help="Folder of the ledger.",
)
@option(
    OptionGroup.LEDGER,
    "--trust-data-dir",
    "trusts_data_dir",
    envvar="OKU_TRUST_DATA_DIR",
    is_flag=True,
    help="Do not check who owns the folder and who may write it, as for a volume that nothing else mounts.",
)
@option(
    OptionGroup.LISTENING,
    "--token",
    envvar="OKU_TOKEN",
    help="Token that API calls must carry, of at least 16 characters; default: a new one, which is logged. "
    "Prefer OKU_TOKEN, flags are visible to others.",
)
@option(
    OptionGroup.LISTENING,
    "--close-metrics",
    "closes_metrics",
    envvar="OKU_CLOSE_METRICS",
    is_flag=True,
    help="Ask for the token at /metrics, too, as on a machine with other users.",
)
@option(
    OptionGroup.LISTENING,
    "--host",
    envvar="OKU_HOST",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; * for all.",
)
@option(
    OptionGroup.LISTENING,
    "--port",
    envvar="OKU_PORT",
    metavar="N",
    type=click.IntRange(0, 65535),
    default=8700,
    show_default=True,
    help="Port to listen on; 0 for any free one.",
)
@option(
    OptionGroup.LISTENING,
    "--listen-fd",
    type=click.IntRange(min=0),
    metavar="N",
    help="Inherited socket that already listens, instead of --host and --port.",
)
@option(
    OptionGroup.LISTENING,
    "--broker-listen-fd",
    type=click.IntRange(min=0),
    metavar="N",
    help="Inherited Unix socket that already listens at the path of --broker-url.",
)
@address_options
@file_limit_options
@option(
    OptionGroup.WORKERS,
    "--server-url",
    "server_urls",
    metavar="URL",
    envvar="OKU_SERVER_URLS",
    multiple=True,
    help="URL of Oku's own delay servers; repeatable.",
)
@option(
    OptionGroup.WORKERS,
    "--worker-timeout",
    "worker_timeout_s",
    type=build_duration("1s", "2h"),
    envvar="OKU_WORKER_TIMEOUT",
    default="10s",
    show_default=True,
    help="How long a worker may be silent before it counts as dead.",
)
@option(
    OptionGroup.QUEUE,
    "--start-within",
    "start_within_s",
    type=build_duration("1s", "24h"),
    envvar="OKU_START_WITHIN",
    help="How long a run waits for its workers if its spec does not say; then it begins with those that are "
    "there, or with none gives its turn to the next; default: 10s, with --kube-workers 1m.",
)
@option(
    OptionGroup.QUEUE,
    "--expect-worker",
    "expected_workers",
    metavar="NAME",
    envvar="OKU_EXPECT_WORKERS",
    multiple=True,
    help="Worker that a run waits for if its spec does not say how many; repeatable.",
)
@option(
    OptionGroup.QUEUE,
    "--max-queued-runs",
    "most_queued",
    envvar="OKU_MAX_QUEUED_RUNS",
    metavar="N",
    type=click.IntRange(min=1),
    default=500,
    show_default=True,
    help="How many runs may wait, including the active one.",
)
@option(
    OptionGroup.USER_CODE,
    "--allow-user-code",
    "allows_user_code",
    envvar="OKU_ALLOW_USER_CODE",
    is_flag=True,
    help="Accept runs that bring their own code, Python scenarios and locustfiles, which workers carry out.",
)
@retention_options
@variables_option
@loki_options
@kube_options
@files_dir_option
@option(
    OptionGroup.LISTENING,
    "--ready-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="File that gets HOST:PORT once the API listens.",
)
@log_options
def command(token: str | None, message_key_file: Path | None, **settings: Any) -> None:
    """Run the coordinator: the ledger, the leases and the HTTP API."""
    from oku_coordinator.process import serve_runs  # noqa: PLC0415  # Celery and aiohttp take a second to load
    from oku_coordinator.settings import (  # noqa: PLC0415
        KUBE_START_WITHIN_S,
        START_WITHIN_S,
        CoordinatorSettings,
    )

    settings |= pick_addresses(settings)
    loki = pick_loki_options(settings)
    kube = pick_kube_settings(settings)
    if settings["start_within_s"] is None:
        settings["start_within_s"] = START_WITHIN_S if kube is None else KUBE_START_WITHIN_S
    own = CoordinatorSettings(
        message_key=read_message_key(message_key_file),
        token=_choose_token(token),
        loki=loki.build_target(),
        most_outbox_bytes=loki.loki_outbox,
        kube=kube,
        **settings,
    )
    forget_secrets()
    serve_runs(own)


def _choose_token(given: str | None) -> str:
    if given is None:
        given = os.environ.get("OKU_TOKEN")  # to click an empty one is none: a Secret that lacks it, perhaps
    if given is not None:
        return read_own_token(given)
    token = secrets.token_urlsafe(24)
    _log.warning("no token was given; API calls must carry %s until this process ends", token)
    return token
