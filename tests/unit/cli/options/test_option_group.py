"""What completion offers is put into a command line as it is, and Enter runs that."""

import json
import shlex
from pathlib import Path

import click
import pytest
from click.shell_completion import CompletionItem, ShellComplete
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.transactions import change

from oku_cli.main import COMMANDS, oku
from oku_cli.options.option_group import (
    GroupedCommand,
    GroupedOption,
    OptionGroup,
    is_plain_word,
    keep_plain_words,
)
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError
from oku_core.spec.fields import FieldGroup
from oku_core.spec.spec import Spec

HOSTILE = (
    "$(touch pwned)", "`id`", "${PATH}", "$PATH", "a;id", "a|id", "a&id", "a>b", "a<b", "a b", "a\tb",
    "a\nplain,b", "*", "a?", "[a]", "{a,b}", "!1", "^a^b", "~root", "=ls", "#a", "'a", '"a', "a\\", "(a)",
    "-rf", "--all", "", "a\u2028b", "a\x1b[2J",
)  # fmt: skip
PLAIN = ("cart", "auth:login", "a-b_c.d", "@orders/new.json", "@~/new.json", "/etc/a", "50%", "größe", "購入")
LOCUSTFILE = "from locust import HttpUser, tag\nclass Buyer(HttpUser):\n" + "".join(
    f"  @tag({text!r})\n  def f{number}(self): pass\n" for number, text in enumerate((*HOSTILE, *PLAIN))
)


@given(st.text(st.characters(codec="ascii")))
def test_a_plain_word_needs_no_quotes(text: str) -> None:
    """Python would put none around it either."""
    if is_plain_word(text):
        assert shlex.quote(text.replace("@~/", "@/")) == text.replace("@~/", "@/")
        assert not text.startswith(("-", "~", "="))


def test_what_a_shell_would_take_apart_is_no_plain_word() -> None:
    """Nor is what it would replace, and what a command would take for a flag."""
    assert [text for text in HOSTILE if is_plain_word(text)] == []
    assert [text for text in PLAIN if not is_plain_word(text)] == []
    # Files that the shell completes are left to it.
    items = [CompletionItem("$(a", type="file"), CompletionItem("a b", type="dir"), CompletionItem("$(a)")]
    assert [item.type for item in keep_plain_words(items)] == ["file", "dir"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where runs, files, tags and modules have names of somebody else's."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "locustfile.py").write_text(LOCUSTFILE)
    for text in HOSTILE:
        if text and "/" not in text:
            (tmp_path / text).write_text("")
    data = tmp_path / ".oku"
    data.mkdir(mode=0o700)
    ledger = open_ledger(data / "ledger.sqlite3")
    for number, text in enumerate((*HOSTILE, "nightly")):
        change(ledger, create_run, f"261101-{number:04}", Spec(requests=5, name=text), float(number))
        change(ledger, change_state, f"261101-{number:04}", RunState.CANCELLED, 10.0)
    ledger.close()
    return tmp_path


def list_offered(*words: str) -> list[CompletionItem[str]]:
    """What a shell offers for the last of these words."""
    return ShellComplete(oku, {}, "oku", "_OKU_COMPLETE").get_completions([*words[:-1]], words[-1])


def test_no_parameter_of_any_command_offers_anything_else(folder: Path) -> None:
    """Own words and foreign ones, whatever was typed of them."""
    offered = set()
    with click.Context(oku) as context:
        commands = {name: oku.get_command(context, name) for name in COMMANDS}
    for name, command in commands.items():
        assert command is not None
        flags = [
            [each.opts[0]] for each in command.params if isinstance(each, click.Option) and not each.is_flag
        ]
        before = ["locustfile.py"] if name == "run" else []
        for words in ([], *flags):
            for begun in ("", "@"):
                for item in list_offered(name, *before, *words, begun):
                    assert (item.help or "").isprintable()
                    if item.type == "plain":
                        assert is_plain_word(item.value), (name, words)
                        offered.add(item.value)
    assert offered >= {"cart", "auth:login", "Buyer", "nightly", "latest", "261101-0000", "@locustfile.py"}
    assert not offered & set(HOSTILE)


HEADINGS = {
    "run": [
        *FieldGroup, "Where runs are", "Loki and Grafana", "Stops and restarts", "Files and secrets",
        "Broker", "Help",
    ],
    "resume": [
        "Load", "Delay servers", "Where runs are", "Output", "Thresholds", "Loki and Grafana",
        "Stops and restarts", "Broker", "Files and secrets", "User code", "Help",
    ],
    "report": ["Output", "Where runs are", "Help"],
    "worker": ["Broker", "Life of the process", "Files and secrets", "User code", "Logs", "Help"],
    "coordinator": [
        "Broker", "Ledger", "Listening", "Workers and delay servers", "Queue of runs", "User code",
        "Loki and Grafana", "Kubernetes", "Files and secrets", "Logs", "Help",
    ],
    "server": ["Listening", "Responses", "Faults", "Counts of requests", "Logs", "Help"],
}  # fmt: skip


def find_command(name: str) -> click.Command:
    """One command of `oku`."""
    command = oku.get_command(click.Context(oku), name)
    assert command is not None
    return command


def read_help(name: str, columns: int = 80) -> list[str]:
    """The lines of its help on a terminal of so many columns."""
    command = find_command(name)
    context = click.Context(
        command, info_name=f"oku {name}", terminal_width=columns, help_option_names=["-h", "--help"]
    )
    return command.get_help(context).splitlines()


@pytest.mark.parametrize("columns", [55, 80, 200])
@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_the_terminal(name: str, columns: int) -> None:
    """Only examples may be longer: they are to be pasted."""
    lines = read_help(name, columns)
    end = lines.index("Examples:") if "Examples:" in lines else len(lines)
    assert max(map(len, lines[:end])) <= columns


@pytest.mark.parametrize("name", COMMANDS)
def test_all_meanings_begin_in_one_column(name: str) -> None:
    """Flags that are too long have their meaning below, in the same column."""
    lines = [line for line in read_help(name) if line.startswith(("  -", "      --"))]
    columns = {line.rindex("  ") + 2 for line in lines if "  " in line.strip() and "[" not in line}
    assert len(columns) == 1


def test_help_lists_options_under_headings() -> None:
    """What a newcomer needs comes first, the help option last."""
    for name, expected in HEADINGS.items():
        headings = [line[:-1] for line in read_help(name) if line.endswith(":") and not line.startswith(" ")]
        assert [heading for heading in headings if heading != "Examples"] == expected
    # Headings of both tables are the same where they meet.
    assert OptionGroup.OUTPUT.value == FieldGroup.OUTPUT.value


def test_help_is_complete_in_every_command() -> None:
    """Nothing is left over but the help."""
    for name in COMMANDS:
        command = find_command(name)
        assert isinstance(command, GroupedCommand)
        options = [each for each in command.params if isinstance(each, click.Option)]
        assert [each.name for each in options if not isinstance(each, GroupedOption)] == []
    for name in COMMANDS:
        # Help names every variable. What can be set by the environment says so.
        text = " ".join(" ".join(read_help(name)).split())
        for each in find_command(name).params:
            assert not each.envvar or f"[env var: {each.envvar}" in text
    for name in [name for name in COMMANDS if getattr(find_command(name), "examples", {})]:
        # Examples are commands that exist. They can be pasted.
        command = find_command(name)
        assert isinstance(command, GroupedCommand)
        for line in command.examples.values():
            program, used, *arguments = shlex.split(line)
            assert (program, used) == ("oku", name)
            command.make_context(name, arguments)


def test_an_error_names_the_variable_that_gave_the_value() -> None:
    """It names the flag alone if that gave it."""
    level = GroupedOption(["--level"], group="Logs", envvar="LEVEL", type=click.Choice(["low"]))
    command = click.Command("x", params=[level])
    for arguments, variables, source in (
        (["--level", "loud"], {}, "'--level'"),
        ([], {"LEVEL": "loud"}, "'--level' (env var: 'LEVEL')"),
    ):
        ended = CliRunner().invoke(command, arguments, env=variables)
        assert f"Invalid value for {source}: 'loud' is not" in ended.output


def test_json_takes_no_value_in_any_command() -> None:
    """A word has one meaning, whichever command it is given to."""
    for name in ["run", "resume", "show", "report", "runs"]:
        options = {flag: each for each in find_command(name).params for flag in each.opts}
        option = options["--json"]
        assert isinstance(option, click.Option)
        assert option.is_flag
    for name, arguments, hint in [
        ("run", ["--json", "-"], "--summary-json FILE"),
        ("run", ["spec.yaml", "--json", "summary.json"], "--summary-json FILE"),
        ("resume", ["r1", "--json", "summary.json"], "--summary-json FILE"),
        ("report", ["r1", "--json", "r1.json"], "redirect it"),
    ]:
        # A file after json is refused. A summary that was meant to be written must not be read as a spec.
        result = CliRunner().invoke(find_command(name), arguments)
        assert isinstance(result.exception, UserError)
        assert str(result.exception).startswith(
            f"--json: prints to standard output and takes no file; {hint}"
        )


def test_runs_are_listed_as_json(tmp_path: Path) -> None:
    """The list is that of the API, newest first and as long as it was asked for."""
    folder = tmp_path / "data"
    command, place = find_command("runs"), ["--json", "--data-dir", str(folder)]
    result = CliRunner().invoke(command, place, standalone_mode=False)
    assert json.loads(result.stdout) == []
    folder.mkdir(mode=0o700)
    ledger = Ledger(folder / "ledger.sqlite3")
    for second, name in enumerate(("r1", "r2")):
        change(ledger, create_run, name, Spec(requests=5), float(second))
    ledger.close()
    result = CliRunner().invoke(command, [*place, "--limit", "1"], standalone_mode=False)
    assert [(listed["run"], listed["requests"]) for listed in json.loads(result.stdout)] == [("r2", 5)]
    assert result.stderr == "these are the newest 1; --all lists all of them\n"
