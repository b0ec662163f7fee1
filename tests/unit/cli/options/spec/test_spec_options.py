from typing import Any

from click.testing import CliRunner

from oku_cli.commands.run import command
from oku_cli.options.spec.spec_options import pick_spec_values
from oku_core.spec.fields import FIELDS


def test_every_field_of_a_spec_is_a_flag_of_the_same_name() -> None:
    """One table makes flags and keys; where they differ, it says so."""
    flags = {option for parameter in command.params for option in parameter.opts}

    assert {f"--{field.long_flag}" for field in FIELDS} <= flags
    assert {field.key: field.long_flag for field in FIELDS if field.flag} == {
        "stages": "stage", "keepalive": "no-keepalive",
    }  # fmt: skip


def test_a_flag_of_a_switch_says_the_opposite_of_its_default() -> None:
    """`--no-keepalive` is `keepalive: false` in a file."""
    context = command.make_context("run", ["--no-keepalive", "--insecure", "--stage", "1m:5/s"])

    assert pick_spec_values(context.params) == {"stages": ("1m:5/s",), "insecure": True, "keepalive": False}


def test_help_shows_defaults_as_one_would_write_them() -> None:
    """It shows `10s`, not `10.0`."""
    text = " ".join(CliRunner().invoke(command, ["--help"]).output.split())

    assert "including connecting. [default: 10s]" in text
    assert "[default: 200]" in text
    assert "[default: 1000 with a URL, 100000 without; none with --duration or --stage]" in text


def test_only_what_was_given_overrides_a_file() -> None:
    """A flag that was left out has no value."""
    options: dict[str, Any] = {
        field.key.replace("-", "_"): () if field.repeatable else None for field in FIELDS
    }
    options["requests"], options["url"] = "5", ("http://h/",)
    options["other"] = "x"

    assert pick_spec_values(options) == {"requests": "5", "url": ("http://h/",)}
    assert options == {"other": "x"}
