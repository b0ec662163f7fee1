"""`--json`: every command that has it prints its result, and nothing else, to standard output."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import click

from oku_cli.options.option_group import GroupedCommand, OptionGroup, option
from oku_core.errors import UserError

_Command = Callable[..., Any]


def json_option(what: str) -> Callable[[_Command], _Command]:
    """`--json`; the command gets it as `as_json`.

    Args:
        what: the result: `the summary`.
    """
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
