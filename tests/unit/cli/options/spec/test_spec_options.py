import re
from typing import Any

import pytest
from click.testing import CliRunner

from oku_cli.commands.run import command
from oku_cli.options.spec.spec_options import pick_spec_values
from oku_core.spec.fields import FIELDS
from oku_core.spec.parser import Source, SpecError, parse_spec


def test_every_field_of_a_spec_is_a_flag_of_the_same_name() -> None:
    """One table makes flags and keys; where they differ, it says so."""
    flags = {option for parameter in command.params for option in parameter.opts}

    assert {f"--{field.long_flag}" for field in FIELDS if not field.file_only} <= flags
    assert not flags & {f"--{field.long_flag}" for field in FIELDS if field.file_only}
    assert [field.key for field in FIELDS if field.file_only] == ["targets", "hooks"]
    assert {field.key: field.long_flag for field in FIELDS if field.flag} == {
        "stages": "stage", "keepalive": "no-keepalive", "thresholds": "threshold",
        "user-classes": "user-class", "tags": "tag", "exclude-tags": "exclude-tag",
    }  # fmt: skip


def test_a_flag_of_a_switch_says_the_opposite_of_its_default() -> None:
    """`--no-keepalive` is `keepalive: false` in a file."""
    context = command.make_context("run", ["--no-keepalive", "--insecure", "--stage", "1m:5/s"])

    assert pick_spec_values(context.params) == {"stages": ("1m:5/s",), "insecure": True, "keepalive": False}


def test_what_is_expected_of_answers_can_be_said_with_flags() -> None:
    """Each is repeatable but the time, and means what the same text means in a file."""
    words = [
        "--expect-body", "ok", "--expect-body", "5", "--expect-match", "[0-9]+", "--expect-json", "/id=17",
        "--expect-header", "ETag:", "--expect-size", "> 0", "--expect-within", "500ms",
        "--expect-status", "2xx",
    ]  # fmt: skip
    values = pick_spec_values(command.make_context("run", words).params)
    assert values == {
        "expect-status": ("2xx",), "expect-body": ("ok", "5"), "expect-match": ("[0-9]+",),
        "expect-json": ("/id=17",), "expect-header": ("ETag:",), "expect-size": ("> 0",),
        "expect-within": "500ms",
    }  # fmt: skip
    assert parse_spec(Source(None, values)) == parse_spec(Source("spec.yaml", values))


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--expect-body", ""], "--expect-body: '' is in every body"),
        (["--expect-match", "("], "--expect-match: ( is not a regular expression of RE2: missing ): ("),
        (["--expect-json", "id=1"], "--expect-json: id=1 is not a JSON pointer and its value"),
        (["--expect-header", "ETag"], "--expect-header: ETag is not of the form 'Name: value'"),
        (["--expect-size", "<"], "--expect-size: < is not a size such as 1kB, > 0 or <= 10kB"),
        (["--expect-within", "0"], "--expect-within: 0 is not between 1ms and 1h"),
        (["--base-url", "http://h"], "--base-url: is what comes before the URLs of targets"),
    ],
)
def test_a_wrong_expectation_ends_the_command_with_a_line(words: list[str], fault: str) -> None:
    """Nothing is started."""
    values = pick_spec_values(command.make_context("run", words).params)
    with pytest.raises(SpecError, match=f"^{re.escape(fault)}"):
        parse_spec(Source(None, values))


def test_help_shows_defaults_as_one_would_write_them() -> None:
    """It shows `10s`, not `10.0`."""
    text = " ".join(CliRunner().invoke(command, ["--help"]).output.split())

    assert "including connecting. [default: 10s]" in text
    assert "[default: 200]" in text
    assert (
        "[default: 1000 with a URL, 100000 without; the rows of --data; none with --duration or --stage]"
        in text
    )


def test_only_what_was_given_overrides_a_file() -> None:
    """A flag that was left out has no value."""
    options: dict[str, Any] = {
        field.key.replace("-", "_"): () if field.repeatable else None
        for field in FIELDS
        if not field.file_only
    }
    options["requests"], options["url"] = "5", ("http://h/",)
    options["other"] = "x"

    assert pick_spec_values(options) == {"requests": "5", "url": ("http://h/",)}
    assert options == {"other": "x"}
