"""The options of a worker about user code: what it sees of the worker, and how much it may take."""

import re
from collections.abc import Callable
from typing import Any

import click

from oku_cli.options.option_group import OptionGroup, option
from oku_cli.options.option_parser import Parsed
from oku_core.errors import UserError, format_value
from oku_core.spec.values.quantity import parse_size

_Command = Callable[..., Any]
_LEAST_MEMORY = 128_000_000
"""An interpreter that has loaded a host and its libraries holds less than this."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|\*")
_OWN = ("OKU_", "CELERY_")


def user_code_options(command: _Command) -> _Command:
    """Those of a worker."""
    options = (
        option(
            OptionGroup.USER_CODE, "--user-code-memory", metavar="SIZE", envvar="OKU_USER_CODE_MEMORY",
            type=Parsed("size", _parse_memory), default=0,
            help="Limit for the memory that a process of user code holds, from 128MB on; default: none.",
        ),
        option(
            OptionGroup.USER_CODE, "--user-code-niceness", metavar="N", envvar="OKU_USER_CODE_NICENESS",
            type=click.IntRange(0, 19), default=0, show_default=True,
            help="How much user code gives way to its worker where both want the same processor.",
        ),
        option(
            OptionGroup.USER_CODE, "--inherit-env", "inherited_variables", metavar="NAME",
            envvar="OKU_INHERIT_ENV", multiple=True,
            callback=lambda _context, _parameter, names: _check_names(names),
            help="Environment variable that user code sees, or * for all but Oku's; repeatable. "
            "Default: only those such as PATH, HOME, LANG and TZ.",
        ),
    )  # fmt: skip
    for add in reversed(options):
        command = add(command)
    return command


def _parse_memory(text: str) -> int:
    size = parse_size(text)
    if 0 < size < _LEAST_MEMORY:
        raise ValueError(f"{format_value(text)} is not at least 128MB")
    return size


def _check_names(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if not _VARIABLE.fullmatch(name):
            raise UserError(f"--inherit-env: {format_value(name)} is not the name of a variable")
        if name.startswith(_OWN):
            raise UserError(f"--inherit-env: {name} is a setting of Oku's own, which no user code sees")
    return names
