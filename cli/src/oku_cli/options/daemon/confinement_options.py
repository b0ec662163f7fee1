"""The options that say whether user code is confined to its own files."""

import functools
from collections.abc import Callable
from typing import Any

from oku_cli.options.option_group import OptionGroup, option
from oku_core.errors import UserError
from oku_core.process.landlock import Confinement

_Command = Callable[..., Any]


def confinement_options(*, serves_others: bool) -> Callable[[_Command], _Command]:
    """`--confine-user-code` and `--require-confinement`; the command gets them as one, `confinement`.

    Args:
        serves_others: whether the user code may be that of others. It is confined by default then, and
            variables can say so, too. A user's own code may read and write what its user may.
    """

    def add(command: _Command) -> _Command:
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
        )(take)  # fmt: skip

    return add


def refuse_confinement(confinement: Confinement) -> None:
    """Remote workers are told by their operator."""
    if confinement is not Confinement.OFF:
        flag = "require-confinement" if confinement is Confinement.REQUIRED else "confine-user-code"
        raise UserError(f"--{flag}: is for a local stack; remote workers have their own settings")
