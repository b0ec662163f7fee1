"""The options of a coordinator that runs in a Kubernetes cluster: what it may scale."""

from typing import TYPE_CHECKING, Any

import click

from oku_cli.options.option_group import OptionGroup, add_options, build_duration, option
from oku_core.errors import UserError

if TYPE_CHECKING:
    from oku_coordinator.settings import KubeSettings


IDLE = build_duration("10s", "24h")
"""The delay servers are asked for their counts within the first."""


_PODS: dict[str, Any] = {"type": click.IntRange(0, 10_000), "metavar": "N", "show_default": True}

kube_options = add_options(
    option(
        OptionGroup.KUBERNETES, "--kube-workers", envvar="OKU_KUBE_WORKERS", default="", metavar="NAME",
        help="Deployment of the workers to scale for runs; default: nothing is scaled.",
    ),
    option(
        OptionGroup.KUBERNETES, "--kube-servers", envvar="OKU_KUBE_SERVERS", default="", metavar="NAME",
        help="Deployment of the delay servers, whose headless Service --server-url names; default: none.",
    ),
    option(
        OptionGroup.KUBERNETES, "--kube-namespace", envvar="OKU_KUBE_NAMESPACE",
        default="", metavar="NAME",
        help="Namespace of these Deployments.",
    ),
    option(
        OptionGroup.KUBERNETES, "--kube-default-workers", envvar="OKU_KUBE_DEFAULT_WORKERS",
        default=2, **_PODS,
        help="Workers of a run that does not say how many.",
    ),
    option(
        OptionGroup.KUBERNETES, "--kube-max-workers", envvar="OKU_KUBE_MAX_WORKERS", default=20, **_PODS,
        help="Most workers of a run.",
    ),
    option(
        OptionGroup.KUBERNETES, "--kube-servers-min", envvar="OKU_KUBE_SERVERS_MIN", default=0, **_PODS,
        help="Fewest delay servers, also at rest.",
    ),
    option(
        OptionGroup.KUBERNETES, "--kube-servers-max", envvar="OKU_KUBE_SERVERS_MAX", default=10, **_PODS,
        help="Most delay servers of a run.",
    ),
    option(
        OptionGroup.KUBERNETES, "--kube-idle", envvar="OKU_KUBE_IDLE", default="60s",
        show_default=True, type=IDLE,
        help="How long after the last run workers are scaled to 0.",
    ),
)  # fmt: skip


def pick_kube_settings(options: dict[str, Any]) -> "KubeSettings | None":
    """Take these options out of all options of a command; None when nothing is to be scaled."""
    from oku_coordinator.settings import KubeSettings  # noqa: PLC0415  # its package takes long to load

    settings = KubeSettings(
        namespace=options.pop("kube_namespace"),
        workers=options.pop("kube_workers"),
        servers=options.pop("kube_servers"),
        default_workers=options.pop("kube_default_workers"),
        max_workers=options.pop("kube_max_workers"),
        min_servers=options.pop("kube_servers_min"),
        max_servers=options.pop("kube_servers_max"),
        idle_s=options.pop("kube_idle"),
    )
    if not settings.workers:
        return None
    if not settings.namespace:
        raise UserError("--kube-namespace: is required by --kube-workers")
    if settings.servers and not options["server_urls"]:
        raise UserError("--server-url: is required by --kube-servers")
    if settings.min_servers > settings.max_servers:
        raise UserError(f"--kube-servers-min: {settings.min_servers} is more than --kube-servers-max")
    if not 1 <= settings.default_workers <= settings.max_workers:
        raise UserError(
            f"--kube-default-workers: {settings.default_workers} is not between 1 and --kube-max-workers"
        )
    return settings
