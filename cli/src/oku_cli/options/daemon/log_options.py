"""The options that say how a process logs, and how much."""

from collections.abc import Callable
from typing import Any

import click

from oku_cli.options.option_group import OptionGroup, option
from oku_cli.process import logs

_Command = Callable[..., Any]


def log_options(command: _Command) -> _Command:
    """`--log-format` and `--log-level`, which take effect before other options are read."""
    command = option(
        OptionGroup.LOGS, "--log-level", type=click.Choice(list(logs.LEVELS)),
        default="info", show_default=True,
        envvar="OKU_LOG_LEVEL", is_eager=True, expose_value=False,
        callback=_take_level,
        help="Lowest level to log; libraries log only warnings and errors, with debug more.",
    )(command)  # fmt: skip
    add = option(
        OptionGroup.LOGS, "--log-format", type=click.Choice(logs.FORMATS), default="auto", show_default=True,
        envvar="OKU_LOG_FORMAT", is_eager=True, expose_value=False,
        callback=_take_format,
        help="Log format on standard error; auto is text in a terminal, otherwise JSON.",
    )  # fmt: skip
    return add(command)


def _take_level(context: click.Context, _: click.Parameter, value: str) -> None:
    if not context.resilient_parsing:  # a shell that completes a command changes nothing
        logs.set_level(value)


def _take_format(context: click.Context, _: click.Parameter, value: str) -> None:
    if not context.resilient_parsing:
        logs.set_format(value)
