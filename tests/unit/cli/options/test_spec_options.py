from typing import Any

import click
import pytest
from click.testing import CliRunner

from oku_cli.commands.resume import refuse_shape
from oku_cli.commands.run import command
from oku_cli.local.data_dir import Endpoint
from oku_cli.options.spec_options import RemoteOptions, pick_spec_values, refuse_servers, remote_options
from oku_cli.remote.client import CoordinatorRef
from oku_cli.remote.kube import KubeEndpoint
from oku_core.errors import UserError
from oku_core.spec.fields import FIELDS
from oku_core.spec.spec import Spec


def test_every_field_of_a_spec_is_a_flag_of_the_same_name() -> None:
    """One table makes flags and keys, so they cannot differ."""
    flags = {option for parameter in command.params for option in parameter.opts}

    assert {f"--{field.key}" for field in FIELDS} <= flags


def test_help_shows_defaults_as_one_would_write_them() -> None:
    """`10s`, not `10.0`."""
    text = " ".join(CliRunner().invoke(command, ["--help"]).output.split())

    assert "connecting included. [default: 10s]" in text
    assert "[default: 200]" in text
    assert "[default: 100000]" in text


def test_only_what_was_given_overrides_a_file() -> None:
    """A flag that was left out is no value."""
    options: dict[str, Any] = {
        field.key.replace("-", "_"): () if field.repeatable else None for field in FIELDS
    }
    options["requests"], options["url"] = "5", ("http://h/",)
    options["other"] = "x"

    assert pick_spec_values(options) == {"requests": "5", "url": ("http://h/",)}
    assert options == {"other": "x"}


def test_a_coordinator_elsewhere_wants_a_url_and_a_token() -> None:
    """Each is asked for by name."""
    assert RemoteOptions().build_place() is None
    place = RemoteOptions(coordinator="http://h:1/", token="t").build_place()
    assert place == Endpoint("http://h:1", "t")
    assert place.flags == ["--coordinator", "http://h:1"]
    with pytest.raises(UserError, match="--token: "):
        RemoteOptions(coordinator="http://h:1").build_place()
    with pytest.raises(UserError, match=r"^--token \(OKU_TOKEN\): is empty"):
        RemoteOptions(coordinator="http://h:1", token="").build_place()
    with pytest.raises(UserError, match="--coordinator: h:1 is not a URL"):
        RemoteOptions(coordinator="h:1", token="t").build_place()


def test_a_coordinator_in_a_cluster_is_named_by_context_namespace_and_release() -> None:
    """All of which may be left out."""
    assert RemoteOptions(kube=True).build_place() == KubeEndpoint()
    given = RemoteOptions(kube=True, context="c", namespace="n", release="r", token="t")
    assert given.build_place() == KubeEndpoint("c", "n", "r", "t")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kube": True, "coordinator": "http://h:1"}, "--kube: does not go together with --coordinator"),
        ({"namespace": "n"}, "--namespace: goes together with --kube only"),
        ({"coordinator": "http://h:1", "token": "t", "release": "r"}, "--release: goes together"),
        ({"context": "c"}, "--context: goes together"),
    ],
)
def test_what_names_a_coordinator_twice_or_not_at_all_is_refused(
    options: dict[str, Any], message: str
) -> None:
    """Rather than one of them be ignored."""
    with pytest.raises(UserError, match=f"^{message}"):
        RemoteOptions(**options).build_place()


def test_a_command_gets_the_coordinator_as_one() -> None:
    """From flags or variables; help shows each."""
    places: list[CoordinatorRef | None] = []

    @click.command()
    @remote_options
    def command(elsewhere: CoordinatorRef | None) -> None:
        """Do something."""
        places.append(elsewhere)

    runner = CliRunner(env={"OKU_COORDINATOR": "", "OKU_TOKEN": "t"})
    for arguments in ([], ["--kube", "--release", "r"], ["--coordinator", "http://h:1"]):
        assert runner.invoke(command, arguments, standalone_mode=False).exception is None
    assert places == [None, KubeEndpoint(release="r", token="t"), Endpoint("http://h:1", "t")]
    assert "--namespace NAME" in runner.invoke(command, ["--help"]).output


@pytest.mark.parametrize("elsewhere", [{"kube": True}, {"coordinator": "http://h:1"}])
def test_a_token_comes_without_what_stands_around_it(elsewhere: dict[str, Any]) -> None:
    """A variable that was read from a file has a line break; one that no header can bear is refused."""
    place = RemoteOptions(**elsewhere, token=" t\r\n").build_place()
    assert isinstance(place, KubeEndpoint | Endpoint)
    assert place.token == "t"
    for token in ("", " ", "a b", "ä"):
        with pytest.raises(UserError, match=r"^--token \(OKU_TOKEN\): "):
            RemoteOptions(**elsewhere, token=token).build_place()


def test_a_coordinator_elsewhere_that_scales_nothing_has_the_servers_that_it_has() -> None:
    """Rather than their number be ignored without a word; all else of a spec goes there."""
    with pytest.raises(UserError, match="--servers: shapes a local stack, it does not go together with --co"):
        refuse_servers(Spec(servers=2))
    refuse_servers(Spec(workers=3, delay="1s", seed=1))


def test_a_run_is_resumed_elsewhere_as_its_spec_says() -> None:
    """Its shape is scaled by hand."""
    elsewhere = Endpoint("http://h:1", "t")
    with pytest.raises(UserError, match="--workers: shapes a local stack"):
        refuse_shape(Spec(workers=2), elsewhere)
    refuse_shape(Spec(workers=2), None)
    refuse_shape(Spec(), elsewhere)
