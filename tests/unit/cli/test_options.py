from typing import Any

import pytest
from click.testing import CliRunner

from oku_cli.commands.run import command
from oku_cli.options import build_endpoint, pick_spec_values, refuse_local_shape
from oku_core.errors import UserError
from oku_core.spec import Spec
from oku_core.spec_fields import FIELDS


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
    assert build_endpoint(None, None) is None
    endpoint = build_endpoint("http://h:1/", "t")
    assert endpoint is not None
    assert (endpoint.url, endpoint.token) == ("http://h:1", "t")
    with pytest.raises(UserError, match="--token: "):
        build_endpoint("http://h:1", None)
    with pytest.raises(UserError, match="--coordinator: h:1 is not a URL"):
        build_endpoint("h:1", "t")


@pytest.mark.parametrize("spec", [Spec(delay="1s"), Spec(seed=1), Spec(servers=2)])
def test_what_shapes_a_local_stack_is_refused_for_one_elsewhere(spec: Spec) -> None:
    """Rather than be ignored without a word."""
    with pytest.raises(UserError, match="does not go together with --coordinator"):
        refuse_local_shape(spec)
    refuse_local_shape(Spec(workers=3))
