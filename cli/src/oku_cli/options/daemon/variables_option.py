"""`--variables-fd`: the socket by which the local stack hands its processes keys, tokens and passwords."""

import os
from collections.abc import Callable
from typing import Any

import click

from oku_cli.options.option_group import OptionGroup, option
from oku_cli.process.secret_variables import FLAG, receive


def variables_option(command: Callable[..., Any]) -> Callable[..., Any]:
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
