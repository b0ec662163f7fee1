import logging
import re
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import CompletionItem, ShellComplete
from click.testing import CliRunner

from oku_cli.commands.run import command
from oku_cli.main import oku
from oku_cli.options.spec.spec_options import pick_spec_values
from oku_core.spec.fields import FIELDS
from oku_core.spec.parser import Source, SpecError, parse_spec
from oku_core.spec.spec import Engine


def complete(*arguments: str) -> list[CompletionItem[str]]:
    """What a shell offers for the last of these words."""
    return ShellComplete(oku, {}, "oku", "_OKU_COMPLETE").get_completions([*arguments[:-1]], arguments[-1])


def list_words(*arguments: str) -> list[str]:
    """Those words alone."""
    return [str(item.value) for item in complete(*arguments)]


def test_names_of_a_locustfile_are_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the one that stands in the command; one that is not there, or not written to its end, has none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(
        "from locust import HttpUser, tag\nclass Buyer(HttpUser):\n  @tag('cart')\n  def f(self): pass\n"
    )
    (tmp_path / "b.py").write_text("class (")
    assert list_words("run", "a.py", "--user-class", "") == ["Buyer"]
    assert list_words("run", "--scenario", "a.py", "--user-class", "B") == ["Buyer"]
    assert list_words("run", "a.py", "--user-class", "C") == []
    assert (
        list_words("run", "a.py", "--tag", "c") == list_words("run", "a.py", "--exclude-tag", "") == ["cart"]
    )
    for other in ("b.py", "none.py", "http://h/a.py"):
        assert list_words("run", other, "--user-class", "") == []


def test_completion_offers_words_and_leaves_files_to_the_shell() -> None:
    """Engines, methods, arrivals, and what commands choose from."""
    assert list_words("run", "--arrivals", "p") == ["poisson"]
    assert list_words("run", "--engine", "") == ["auto", *Engine]
    assert list_words("run", "--engine", "h") == ["httptools"]
    assert list_words("run", "-m", "p") == ["POST", "PUT", "PATCH"]
    assert list_words("completion", "") == ["bash", "zsh", "fish"]
    assert "--grafana" in list_words("run", "--gra")
    # Completing a command does nothing of it. The levels of logs are what they were.
    before = logging.getLogger("oku_core").level
    assert list_words("worker", "--log-format", "json", "--log-level", "w") == ["warning"]
    assert logging.getLogger("oku_core").level == before
    for arguments in [
        ("run", "sp"),
        ("run", "--cacert", "sp"),
        ("run", "--scenario", "sp"),
        ("run", "--include", "sp"),
        ("run", "--summary-json", "sp"),
        ("run", "--loki-ca", "sp"),
        ("report", "latest", "-o", "sp"),
        ("report", "latest", "--csv", "sp"),
    ]:
        # Files are left to the shell. It knows how to walk through folders.
        assert [(item.value, item.type) for item in complete(*arguments)] == [("sp", "file")]
    # Folders are left to the shell. No files are offered for them.
    assert [item.type for item in complete("show", "--data-dir", "d")] == ["dir"]


def test_the_file_of_a_body_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only folder is opened at once, hidden files are offered to those who begin one, and nothing that a
    shell would run or take apart is.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bodies").mkdir()
    for name in ("one.json", "two.json", "two words", "$(id)"):
        (tmp_path / "bodies" / name).write_text("")
    for name in ("a.json", ".hidden"):
        (tmp_path / name).write_text("")
    assert list_words("run", "-d", "@") == ["@a.json", "@bodies/"]
    assert list_words("run", "-d", "@b") == ["@bodies/", "@bodies/one.json", "@bodies/two.json"]
    assert list_words("run", "--body", "@bodies/o") == ["@bodies/one.json"]
    assert list_words("run", "-d", "@.h") == ["@.hidden"]
    assert list_words("run", "-d", f"@{tmp_path}/a") == [f"@{tmp_path}/a.json"]
    assert list_words("run", "-d", "@nowhere/") == []
    assert list_words("run", "-d", "text") == []


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
    assert "[default: 2xx]" in text
    assert (
        "[default: 1000 with a URL, 100000 without; the rows of --data; none with --duration or --stage]"
        in text
    )


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
    # A flag of a switch says the opposite of its default.
    context = command.make_context("run", ["--no-keepalive", "--insecure", "--stage", "1m:5/s"])
    assert pick_spec_values(context.params) == {"stages": ("1m:5/s",), "insecure": True, "keepalive": False}
    # Only what was given overrides a file. A flag that was left out has no value.
    options: dict[str, Any] = {
        field.key.replace("-", "_"): () if field.repeatable else None
        for field in FIELDS
        if not field.file_only
    }
    options["requests"], options["url"] = "5", ("http://h/",)
    options["other"] = "x"
    assert pick_spec_values(options) == {"requests": "5", "url": ("http://h/",)}
    assert options == {"other": "x"}
