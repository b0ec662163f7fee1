"""Options under headings, what all options share, and `--json`.

An option names its group, and help lists options by group. What a parser of `oku_core` refuses is reported in
one line with the flag. Every command that has `--json` prints its result, and nothing else, to standard
output.
"""

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from itertools import pairwise
from typing import Any, TypeVar, cast

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from oku_core.errors import UserError
from oku_core.spec.values.quantity import parse_duration_between

_PLAIN_WORD = re.compile(r"(?:@~/)?[\w.@%+:/][\w.@%+:/-]*")
"""What no shell takes for anything but text, and no command for a flag."""


def is_plain_word(text: str) -> bool:
    """Whether a shell takes a text as one word, without changes."""
    return bool(_PLAIN_WORD.fullmatch(text))


def keep_plain_words(items: Sequence[CompletionItem[str]]) -> list[CompletionItem[str]]:
    """The items without the words that a shell would take apart; files and folders it completes by itself."""
    return [item for item in items if item.type != "plain" or is_plain_word(str(item.value))]


CommandT = TypeVar("CommandT", bound=Callable[..., Any])
"""A command, which a decorator returns with options."""
_WIDEST_FLAGS = 28
_LEAST_TEXT = 24
"""Columns for the meaning of an option; in a narrow terminal it begins below long flags instead of beside."""


COMPLETION_VARIABLE = "_OKU_COMPLETE"
"""Is set by a shell that asks how a word may go on."""
_PATH_KINDS = {"FILE": "file", "FILE|FOLDER": "file", "FOLDER": "dir"}
"""What a shell calls that which an option calls so."""


class OptionGroup(StrEnum):
    """The headings of options that are not keys of a spec (`FieldGroup`)."""

    OUTPUT = "Output"
    FAILURES = "Which failures"
    RUNS = "Where runs are"
    STOPPING = "Stops and restarts"
    LOKI = "Loki and Grafana"
    SECRETS = "Files and secrets"
    USER_CODE = "User code"
    BROKER = "Broker"
    LISTENING = "Listening"
    LEDGER = "Ledger"
    QUEUE = "Queue of runs"
    WORKERS = "Workers and delay servers"
    KUBERNETES = "Kubernetes"
    LIFE = "Life of the process"
    RESPONSES = "Responses"
    FAULTS = "Faults"
    COUNTS = "Counts of requests"
    LOGS = "Logs"


class GroupedOption(click.Option):
    """An option that knows its heading, and whose help names its variable."""

    def __init__(self, *declarations: Any, group: str, **attributes: Any) -> None:
        super().__init__(*declarations, **{"show_envvar": True, **attributes})
        self.group = group

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """Name an option in an error, and its variable where that gave the value."""
        source = ctx.get_parameter_source(self.name) if ctx and self.name else None
        if source is ParameterSource.ENVIRONMENT:
            return super().get_error_hint(ctx)
        return click.Parameter.get_error_hint(self, ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Complete files and folders where the help names one, else plain words."""
        kind = _PATH_KINDS.get(self.metavar or "")
        if kind:
            return [CompletionItem(incomplete, type=kind)]
        return keep_plain_words(super().shell_complete(ctx, incomplete))


class GroupedCommand(click.Command):
    """A command whose help has a heading for each group of options, in the order in which they are declared.

    Args:
        examples: command lines that work when they are pasted, by what they do; shown at the end.
    """

    def __init__(self, *arguments: Any, examples: Mapping[str, str] | None = None, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.examples = examples or {}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups, and the help option as the last."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for each in self.get_params(ctx):
            if isinstance(each, click.Option) and (record := each.get_help_record(ctx)) is not None:
                flags, meaning = record
                # Long flags stand below those that have a short one before them.
                aligned = f"    {flags}" if flags.startswith("--") else flags
                groups.setdefault(getattr(each, "group", "Help"), []).append((aligned, meaning))
        widest = min(_WIDEST_FLAGS, formatter.width - _LEAST_TEXT)
        width = max(len(flags) for rows in groups.values() for flags, _ in rows if len(flags) <= widest)
        for heading, rows in groups.items():
            with formatter.section(heading):
                formatter.write_dl([(flags.ljust(width), meaning) for flags, meaning in rows], col_max=width)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are to be pasted."""
        super().format_epilog(ctx, formatter)
        write_examples(self.examples, formatter)


def option(group: str, *declarations: str, **attributes: Any) -> Callable[[CommandT], CommandT]:
    """As `click.option`, under a heading."""
    return click.option(*declarations, cls=GroupedOption, group=group, **attributes)


def add_options(*options: Callable[[Any], Any]) -> Callable[[CommandT], CommandT]:
    """Add options to a command, in the order in which its help lists them."""

    def add(command: CommandT) -> CommandT:
        return functools.reduce(lambda added, each: each(added), reversed(options), command)

    return add


def add_joined_options(
    name: str, pick: Callable[[dict[str, Any]], object], *options: Callable[[Any], Any]
) -> Callable[[CommandT], CommandT]:
    """Add options that a command gets as one value.

    Args:
        name: the parameter of the command that gets the value.
        pick: takes the options out of all of the command, and makes the value of them.
        options: as `add_options` takes them.
    """

    def add(command: CommandT) -> CommandT:
        @functools.wraps(command)
        def call(**values: Any) -> Any:
            return command(**{name: pick(values)}, **values)

        return add_options(*options)(cast("CommandT", call))

    return add


def write_examples(examples: Mapping[str, str], formatter: click.HelpFormatter) -> None:
    """Write command lines, each in a line of its own however long it is."""
    if not examples:
        return
    with formatter.section("Examples"):
        for meaning, line in examples.items():
            formatter.write_text(f"{meaning}:")
            formatter.write(f"{'':>{formatter.current_indent}}  {line}\n")


class Parsed(click.ParamType):  # type: ignore[type-arg]  # generic only since click 8.4
    """The type of such an option.

    Args:
        name: how help shows its value: `DURATION`.
        parse: reads a text; `ValueError` describes its fault in a sentence.
    """

    def __init__(self, name: str, parse: Callable[[str], object]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002  # click's signature
        """Read a text; other values were read before."""
        if not isinstance(value, str):
            return value
        with naming(param.opts[0] if param else self.name):
            return self.parse(value)


def build_duration(least: str, most: str) -> Parsed:
    """The type of a duration within bounds, in seconds."""
    return Parsed("duration", functools.partial(parse_duration_between, least=least, most=most))


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Turn a `ValueError` into a `UserError` that names the flags or the variable with the wrong value."""
    try:
        yield
    except ValueError as error:
        raise UserError(f"{source}: {error}") from error


def json_option(what: str) -> Callable[[CommandT], CommandT]:
    """`--json`, which prints this as JSON; the command gets it as `as_json`."""
    return option(OptionGroup.OUTPUT, "--json", "as_json", is_flag=True, help=f"Print {what} as JSON.")


class JsonCommand(GroupedCommand):
    """A command whose `--json` is easily taken for one that names a file, which the next word would be."""

    def __init__(self, *arguments: Any, file_hint: str, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self._file_hint = file_hint

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As ever, but refuse `--json FILE` rather than take the file for something else."""
        for flag, value in pairwise(args):
            if flag == "--json" and (value == "-" or value.endswith(".json")):
                raise UserError(f"--json: prints to standard output and takes no file; {self._file_hint}")
        return super().parse_args(ctx, args)
