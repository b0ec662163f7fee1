"""The options that all daemons have: how they log, and the socket that brings secrets from a local stack."""

import os

import click

from oku_cli.options.option_group import CommandT, OptionGroup, option
from oku_cli.process import logs
from oku_cli.process.secret_variables import FLAG, receive


def log_options(command: CommandT) -> CommandT:
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


def variables_option(command: CommandT) -> CommandT:
    """`--variables-fd`, which takes effect before other options are read."""
    add = option(
        OptionGroup.BROKER, FLAG, metavar="N", type=click.IntRange(min=0),
        is_eager=True, expose_value=False, callback=_take,
        help="Inherited socket that brings environment variables such as OKU_TOKEN, with zero bytes between "
        "them: nobody else can read them there.",
    )  # fmt: skip
    return add(command)


def _take(context: click.Context, _: click.Parameter, value: int | None) -> None:
    if value is not None and not context.resilient_parsing:
        os.environ.update(receive(value))
