import shlex
from importlib import import_module

import click
import pytest
from click.testing import CliRunner

from oku_cli.main import COMMANDS, MODULES
from oku_cli.options.option_group import GroupedCommand, GroupedOption, OptionGroup
from oku_core.spec.fields import FieldGroup

HEADINGS = {
    "run": [
        *FieldGroup, "Where runs are", "Loki and Grafana", "Stops and restarts", "Files and secrets", "Help",
    ],
    "resume": [
        "Load", "Delay servers", "Where runs are", "Output", "Thresholds", "Loki and Grafana",
        "Stops and restarts", "Files and secrets", "User code", "Help",
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
    command: click.Command = import_module(f"oku_cli.commands.{MODULES.get(name, name)}").command
    return command


def read_help(name: str, columns: int = 80) -> list[str]:
    """The lines of its help on a terminal of so many columns."""
    command = find_command(name)
    context = click.Context(
        command, info_name=f"oku {name}", terminal_width=columns, help_option_names=["-h", "--help"]
    )
    return command.get_help(context).splitlines()


@pytest.mark.parametrize("name", HEADINGS)
def test_help_lists_options_under_headings(name: str) -> None:
    """What a newcomer needs comes first, the help option last."""
    headings = [line[:-1] for line in read_help(name) if line.endswith(":") and not line.startswith(" ")]
    assert [heading for heading in headings if heading != "Examples"] == HEADINGS[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_heading(name: str) -> None:
    """Nothing is left over but the help."""
    command = find_command(name)
    assert isinstance(command, GroupedCommand)
    options = [each for each in command.params if isinstance(each, click.Option)]
    assert [each.name for each in options if not isinstance(each, GroupedOption)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_every_variable(name: str) -> None:
    """What can be set by the environment says so."""
    text = " ".join(" ".join(read_help(name)).split())
    for each in find_command(name).params:
        assert not each.envvar or f"[env var: {each.envvar}" in text


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


def test_headings_of_both_tables_are_the_same_where_they_meet() -> None:
    """The name of a run stands with the other options of its output."""
    assert OptionGroup.OUTPUT.value == FieldGroup.OUTPUT.value


@pytest.mark.parametrize("name", [name for name in COMMANDS if getattr(find_command(name), "examples", {})])
def test_examples_are_commands_that_exist(name: str) -> None:
    """They can be pasted."""
    command = find_command(name)
    assert isinstance(command, GroupedCommand)
    for line in command.examples.values():
        program, used, *arguments = shlex.split(line)
        assert (program, used) == ("oku", name)
        command.make_context(name, arguments)


@pytest.mark.parametrize(
    ("arguments", "variables", "hint"),
    [
        (["--level", "loud"], {}, "'--level': 'loud'"),
        ([], {"LEVEL": "loud"}, "'--level' (env var: 'LEVEL'): 'loud'"),
    ],
)
def test_an_error_names_the_variable_that_gave_the_value(
    arguments: list[str], variables: dict[str, str], hint: str
) -> None:
    """Whoever wrote a flag has no use for it."""
    command = click.Command(
        "x",
        params=[
            GroupedOption(["--level"], group="Logs", envvar="LEVEL", type=click.Choice(["low"])),
        ],
    )
    ended = CliRunner().invoke(command, arguments, env=variables)
    assert f"Invalid value for {hint} is not" in ended.output
