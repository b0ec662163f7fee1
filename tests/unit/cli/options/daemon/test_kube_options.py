from typing import Any

import click
import pytest
from click.testing import CliRunner

from oku_cli.options.daemon.kube_options import kube_options, pick_kube_settings
from oku_coordinator.settings import KubeSettings
from oku_core.errors import UserError


def read(*flags: str, **environment: str) -> KubeSettings | None:
    """What a coordinator makes of flags and variables."""
    picked: list[KubeSettings | None] = []

    @click.command()
    @click.option("--server-url", "server_urls", multiple=True)
    @kube_options
    def command(**options: Any) -> None:
        picked.append(pick_kube_settings(options))
        assert set(options) == {"server_urls"}

    result = CliRunner(env=environment).invoke(command, flags, standalone_mode=False)
    if result.exception:
        raise result.exception
    return picked[0]


def test_workers_are_scaled_where_a_deployment_is_named() -> None:
    """Other settings do not change that."""
    assert read() is None
    assert read("--kube-namespace", "n", OKU_KUBE_MAX_WORKERS="5") is None
    # All of it comes from the environment. Charts set variables only.
    settings = read(
        "--server-url", "http://s:8080",
        OKU_KUBE_WORKERS="w", OKU_KUBE_SERVERS="s", OKU_KUBE_NAMESPACE="n", OKU_KUBE_MAX_WORKERS="50",
        OKU_KUBE_DEFAULT_WORKERS="4", OKU_KUBE_SERVERS_MIN="1", OKU_KUBE_SERVERS_MAX="6", OKU_KUBE_IDLE="5m",
    )  # fmt: skip
    assert settings == KubeSettings(
        namespace="n", workers="w", servers="s", default_workers=4, max_workers=50, min_servers=1,
        max_servers=6, idle_s=300.0,
    )  # fmt: skip
    # An empty variable is none given. Charts set variables to nothing.
    assert read(OKU_KUBE_WORKERS="", OKU_KUBE_SERVERS="") is None


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--kube-workers", "w"], "--kube-namespace: is required by --kube-workers"),
        (
            ["--kube-workers", "w", "--kube-namespace", "n", "--kube-servers", "s"],
            "--server-url: is required",
        ),
        (["--kube-idle", "5s"], "--kube-idle: 5s is not between 10s and 24h"),
        (["--kube-idle", "long"], "--kube-idle: "),
        (
            ["--kube-workers", "w", "--kube-namespace", "n", "--kube-servers-min", "11"],
            "--kube-servers-min: 11 is more than --kube-servers-max",
        ),
        (
            ["--kube-workers", "w", "--kube-namespace", "n", "--kube-default-workers", "21"],
            "--kube-default-workers: 21 is not between 1 and --kube-max-workers",
        ),
    ],
)
def test_what_cannot_be_is_refused(flags: list[str], message: str) -> None:
    """The error names the option."""
    with pytest.raises(UserError, match=f"^{message}"):
        read(*flags)
