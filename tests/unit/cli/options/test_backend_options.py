from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from oku_cli.backends.coordinator_ref import CoordinatorRef, Endpoint
from oku_cli.kube.kube_endpoint import KubeEndpoint
from oku_cli.options.backend_options import RemoteOptions, backend_options
from oku_core.errors import UserError


def test_a_remote_coordinator_needs_a_url_and_a_token() -> None:
    """The error asks for each by name."""
    assert RemoteOptions().build_ref() is None
    ref = RemoteOptions(coordinator="http://h:1/", token="t").build_ref()
    assert ref == Endpoint("http://h:1", "t")
    assert ref.flags == ["--coordinator", "http://h:1"]
    with pytest.raises(UserError, match="--token: "):
        RemoteOptions(coordinator="http://h:1").build_ref()
    with pytest.raises(UserError, match=r"^--token \(OKU_TOKEN\): is empty"):
        RemoteOptions(coordinator="http://h:1", token="").build_ref()
    with pytest.raises(UserError, match="--coordinator: h:1 is not a URL"):
        RemoteOptions(coordinator="h:1", token="t").build_ref()
    for url in ("http://h:1/?a=b", "http://h:1/#a"):
        with pytest.raises(UserError, match=r"--coordinator: the URL has a \? or a #"):
            RemoteOptions(coordinator=url, token="t").build_ref()


def test_a_coordinator_in_a_cluster_is_named_by_context_namespace_and_release() -> None:
    """Each of these flags may be left out."""
    assert RemoteOptions(kube=True).build_ref() == KubeEndpoint()
    given = RemoteOptions(kube=True, context="c", namespace="n", release="r", token="t")
    assert given.build_ref() == KubeEndpoint("c", "n", "r", "t")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kube": True, "coordinator": "http://h:1"}, "--kube: cannot be combined with --coordinator"),
        ({"namespace": "n"}, "--namespace: is allowed only with --kube"),
        ({"coordinator": "http://h:1", "token": "t", "release": "r"}, "--release: is allowed only with"),
        ({"context": "c"}, "--context: is allowed only with"),
    ],
)
def test_what_names_a_coordinator_twice_or_not_at_all_is_refused(
    options: dict[str, Any], message: str
) -> None:
    """None of the flags is silently ignored."""
    with pytest.raises(UserError, match=f"^{message}"):
        RemoteOptions(**options).build_ref()


def test_a_command_gets_the_coordinator_as_one() -> None:
    """It comes from flags or variables, and help shows each."""
    refs: list[CoordinatorRef | None] = []

    @click.command()
    @backend_options
    def command(coordinator: CoordinatorRef | None, data_dir: Path) -> None:
        """Do something."""
        refs.append(coordinator)

    runner = CliRunner(env={"OKU_COORDINATOR": "", "OKU_TOKEN": "t"})
    for arguments in ([], ["--kube", "--release", "r"], ["--coordinator", "http://h:1"]):
        assert runner.invoke(command, arguments, standalone_mode=False).exception is None
    assert refs == [None, KubeEndpoint(release="r", token="t"), Endpoint("http://h:1", "t")]
    assert "--namespace NAME" in runner.invoke(command, ["--help"]).output


@pytest.mark.parametrize("given", [{"kube": True}, {"coordinator": "http://h:1"}])
def test_a_token_comes_without_what_stands_around_it(given: dict[str, Any]) -> None:
    """A variable read from a file ends in a line break; a token that no header can carry is refused."""
    ref = RemoteOptions(**given, token=" t\r\n").build_ref()
    assert isinstance(ref, KubeEndpoint | Endpoint)
    assert ref.token == "t"
    for token in ("", " ", "a b", "ä"):
        with pytest.raises(UserError, match=r"^--token \(OKU_TOKEN\): "):
            RemoteOptions(**given, token=token).build_ref()
