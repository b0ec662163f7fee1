"""Builds the references of the command line and of its variables from the commands themselves."""

import inspect
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import click
from docs.tools.generated_parts import build_table

from oku_cli.main import COMMANDS, oku
from oku_core.spec.fields import FIELDS

_DEFAULT = re.compile(r"\s+\[default: (.*)\]$")
_SPEC_NOTE = "Each [key of a spec](spec.md#keys) is an option of it, too."
_SPEC_FLAGS = {f"--{field.long_flag}" for field in FIELDS}
_OTHER_VARIABLES = {
    "OKU_MESSAGE_KEY": ("the key itself, instead of `--message-key-file`", ("worker", "coordinator")),
}
"""Those that are no option's."""
_NOT_RUN = {
    "compare": "it names runs of two versions of a service",
    "import": "it names files of a browser",
    "replay": "it names a request of your own run",
}
"""Why a test cannot type the examples of a command."""

Row = tuple[str, ...]
Groups = Mapping[str, tuple[Row, ...]]


def build_commands() -> str:
    """Each command with its arguments and options; the groups of options that commands share stand once."""
    commands = load_commands()
    groups = {name: _build_groups(command) for name, command in commands.items()}
    times = Counter(group for each in groups.values() for group in each.items())
    shared = {name: rows for (name, rows), count in times.items() if count > 1}
    contents = build_table(
        ["command", "does"],
        (
            (f"[`oku {name}`](#oku-{name})", command.get_short_help_str(200))
            for name, command in commands.items()
        ),
    )
    parts = [contents, *(_build_command(commands[name], groups[name], shared) for name in commands)]
    parts += [
        "## Options that commands share",
        *(f"### {name}\n\n{_build_options({'': rows})}" for name, rows in shared.items()),
    ]
    return "\n\n".join(parts)


def build_variables() -> str:
    """Each variable with the option that it stands for and the commands that read it."""
    meanings: dict[str, str] = {}
    readers: dict[str, list[str]] = defaultdict(list)
    for name, command in load_commands().items():
        for option in _list_options(command):
            for variable in _list_variables(option):
                meanings.setdefault(variable, f"`{option.opts[-1]}`")
                readers[variable].append(name)
    for variable, (meaning, commands) in _OTHER_VARIABLES.items():
        meanings[variable] = meaning
        readers[variable] = list(commands)
    rows = (
        [f"`{variable}`", meanings[variable], ", ".join(f"`{name}`" for name in readers[variable])]
        for variable in sorted(meanings)
    )
    return build_table(["variable", "stands for", "of"], rows)


def load_commands() -> Mapping[str, click.Command]:
    """The commands by name, in the order in which help lists them."""
    context = click.Context(oku)
    return {name: command for name in COMMANDS if (command := oku.get_command(context, name))}


def _build_command(command: click.Command, groups: Groups, shared: Groups) -> str:
    usage = " ".join(command.collect_usage_pieces(click.Context(command)))
    own = {name: rows for name, rows in groups.items() if shared.get(name) != rows}
    others = [f"[{name}](#{name.lower().replace(' ', '-')})" for name in groups if name not in own]
    parts = [
        f"## oku {command.name}",
        f"`oku {command.name} {usage}`",
        _read_help(command),
        *([_build_options(own)] if own else []),
        *([f"Also the options under {', '.join(others)}."] if others else []),
        *_build_examples(command),
    ]
    return "\n\n".join(parts)


def _build_examples(command: click.Command) -> Iterator[str]:
    if examples := getattr(command, "examples", None):
        width = max(map(len, examples.values()))
        lines = (f"{line:{width}}  # {meaning[0].lower()}{meaning[1:]}" for meaning, line in examples.items())
        marks = [f"<!-- not run: {_NOT_RUN[command.name]} -->"] if command.name in _NOT_RUN else []
        yield "\n".join([*marks, "```sh", *lines, "```"])


def _read_help(command: click.Command) -> str:
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    # What click prints as it stands is for a terminal.
    texts = [" ".join(each.split()) for each in paragraphs if not each.startswith("\b")]
    return "\n\n".join([*texts, _SPEC_NOTE] if command.name == "run" else texts)


def _build_options(groups: Groups) -> str:
    rows: list[Sequence[str]] = []
    for name, options in groups.items():
        rows += [[f"**{name}**", "", "", ""], *options] if name else options
    return build_table(["option", "default", "variable", "meaning"], rows)


def _build_groups(command: click.Command) -> Groups:
    """The rows of its options under their headings; those of a spec are described by its own page."""
    groups: dict[str, tuple[Row, ...]] = {}
    for option in _list_options(command):
        if command.name != "run" or not _SPEC_FLAGS.intersection(option.opts):
            name = getattr(option, "group", "")
            groups[name] = (*groups.get(name, ()), _build_row(option))
    return groups


def _list_options(command: click.Command) -> list[click.Option]:
    return [each for each in command.params if isinstance(each, click.Option) and not each.hidden]


def _list_variables(option: click.Option) -> Sequence[str]:
    return [option.envvar] if isinstance(option.envvar, str) else option.envvar or []


def _build_row(option: click.Option) -> Row:
    flags = " ".join(f"`{name}`" for name in option.opts)
    if not option.is_flag:
        flags = f"{flags[:-1]} {option.make_metavar(click.Context(click.Command(None)))}`"
    meaning, default = option.help or "", ""
    if found := _DEFAULT.search(meaning):
        default, meaning = found[1], meaning[: found.start()]
    elif option.show_default:
        default = str(option.default)
    if option.multiple and "epeatable" not in meaning:
        meaning += " Repeatable."
    return flags, default, " ".join(f"`{name}`" for name in _list_variables(option)), meaning
