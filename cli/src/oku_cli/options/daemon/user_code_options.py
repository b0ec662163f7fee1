"""The options for user code: its environment, its limits, and its confinement."""

import functools
import re
from collections.abc import Callable
from typing import Any, cast

import click

from oku_cli.options.option_group import CommandT, OptionGroup, Parsed, option
from oku_core.errors import UserError, format_value
from oku_core.process.landlock import Confinement
from oku_core.spec.values.quantity import parse_size


def confinement_options(*, serves_others: bool) -> Callable[[CommandT], CommandT]:
    """`--confine-user-code` and `--require-confinement`; the command gets them as one, `confinement`.

    Args:
        serves_others: whether the user code may be that of others. It is confined by default then, and
            variables can say so, too. A user's own code may read and write what its user may.
    """

    def add(command: CommandT) -> CommandT:
        @functools.wraps(command)
        def take(*arguments: Any, **options: Any) -> Any:
            confined, required = options.pop("confine_user_code"), options.pop("require_confinement")
            if required and confined is False:
                raise UserError("--require-confinement: cannot be combined with --no-confine-user-code")
            if required:
                confinement = Confinement.REQUIRED
            else:
                is_on = serves_others if confined is None else confined
                confinement = Confinement.ON if is_on else Confinement.OFF
            return command(*arguments, confinement=confinement, **options)

        take = option(
            OptionGroup.USER_CODE, "--require-confinement", is_flag=True,
            envvar="OKU_REQUIRE_CONFINEMENT" if serves_others else None,
            help="Confine user code, and run nothing where the kernel has no Landlock.",
        )(take)  # fmt: skip
        off = "/--no-confine-user-code" if serves_others else ""
        default = "; default: it is confined" if serves_others else ""
        return option(
            OptionGroup.USER_CODE, f"--confine-user-code{off}", is_flag=True, default=None,
            envvar="OKU_CONFINE_USER_CODE" if serves_others else None,
            help=f"Confine user code to its own files and processes, where the kernel has Landlock{default}.",
        )(cast("CommandT", take))  # fmt: skip

    return add


def refuse_confinement(confinement: Confinement) -> None:
    """Remote workers are told by their operator."""
    if confinement is not Confinement.OFF:
        flag = "require-confinement" if confinement is Confinement.REQUIRED else "confine-user-code"
        raise UserError(f"--{flag}: is for a local stack; remote workers have their own settings")


_LEAST_MEMORY = 128_000_000
"""An interpreter that has loaded a host and its libraries holds less than this."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|\*")
_OWN = ("OKU_", "CELERY_")


def user_code_options(command: CommandT) -> CommandT:
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
