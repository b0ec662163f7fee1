"""The options that all daemons have: how they log, and the socket that brings secrets from a local stack."""

import os

import click

from oku_cli.options.option_group import OptionGroup, add_options, option
from oku_cli.process import logs
from oku_cli.process.secret_variables import FLAG, receive


# These take effect before other options are read, but for a shell that completes a command.
def _take_level(context: click.Context, _: click.Parameter, value: str) -> None:
    if not context.resilient_parsing:
        logs.set_level(value)


def _take_format(context: click.Context, _: click.Parameter, value: str) -> None:
    if not context.resilient_parsing:
        logs.set_format(value)


def _take_variables(context: click.Context, _: click.Parameter, value: int | None) -> None:
    if value is not None and not context.resilient_parsing:
        os.environ.update(receive(value))


log_options = add_options(
    option(
        OptionGroup.LOGS, "--log-format", type=click.Choice(logs.FORMATS), default="auto", show_default=True,
        envvar="OKU_LOG_FORMAT", is_eager=True, expose_value=False, callback=_take_format,
        help="Log format on standard error; auto is text in a terminal, otherwise JSON.",
    ),
    option(
        OptionGroup.LOGS, "--log-level", type=click.Choice(list(logs.LEVELS)),
        default="info", show_default=True,
        envvar="OKU_LOG_LEVEL", is_eager=True, expose_value=False, callback=_take_level,
        help="Lowest level to log; libraries log only warnings and errors, with debug more.",
    ),
)  # fmt: skip

variables_option = option(
    OptionGroup.BROKER, FLAG, metavar="N", type=click.IntRange(min=0),
    is_eager=True, expose_value=False, callback=_take_variables,
    help="Inherited socket that brings environment variables such as OKU_TOKEN, with zero bytes between "
    "them: nobody else can read them there.",
)  # fmt: skip
