"""Options under headings: commands go in whose options name their group, help goes out that lists them so.

Click lists all options in a row. What it lacks is small, and no library is loaded for it each time that a
command begins.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from oku_cli.options.plain_words import keep_plain_words

_Command = TypeVar("_Command", bound=Callable[..., Any])
_WIDEST_FLAGS = 28
_LEAST_TEXT = 24
"""Columns for the meaning of an option; in a narrow terminal it begins below long flags instead of beside."""


COMPLETION_VARIABLE = "_OKU_COMPLETE"
"""Is set by a shell that asks how a word may go on."""
_PATH_KINDS = {"FILE": "file", "FILE|FOLDER": "file", "FOLDER": "dir"}
"""What a shell calls that which an option calls so."""


class OptionGroup(StrEnum):
    """The headings of options beside those of a spec, which `FieldGroup` has."""

    OUTPUT = "Output"
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
        """Complete files and folders where the help says that there is one, else plain words."""
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


def option(group: str, *declarations: str, **attributes: Any) -> Callable[[_Command], _Command]:
    """As `click.option`, under a heading."""
    return click.option(*declarations, cls=GroupedOption, group=group, **attributes)


def write_examples(examples: Mapping[str, str], formatter: click.HelpFormatter) -> None:
    """Write command lines, each in a line of its own however long it is."""
    if not examples:
        return
    with formatter.section("Examples"):
        for meaning, line in examples.items():
            formatter.write_text(f"{meaning}:")
            formatter.write(f"{'':>{formatter.current_indent}}  {line}\n")
