from typing import Any

from click.testing import CliRunner

from oku_cli.commands.run import command
from oku_cli.options.spec.spec_options import pick_spec_values
from oku_core.spec.fields import FIELDS


def test_every_field_of_a_spec_is_a_flag_of_the_same_name() -> None:
    """One table makes flags and keys, so they cannot differ."""
    flags = {option for parameter in command.params for option in parameter.opts}

    assert {f"--{field.key}" for field in FIELDS} <= flags


def test_help_shows_defaults_as_one_would_write_them() -> None:
    """It shows `10s`, not `10.0`."""
    text = " ".join(CliRunner().invoke(command, ["--help"]).output.split())

    assert "including connecting. [default: 10s]" in text
    assert "[default: 200]" in text
    assert "[default: 1000 with a URL, 100000 without]" in text


def test_only_what_was_given_overrides_a_file() -> None:
    """A flag that was left out has no value."""
    options: dict[str, Any] = {
        field.key.replace("-", "_"): () if field.repeatable else None for field in FIELDS
    }
    options["requests"], options["url"] = "5", ("http://h/",)
    options["other"] = "x"

    assert pick_spec_values(options) == {"requests": "5", "url": ("http://h/",)}
    assert options == {"other": "x"}
