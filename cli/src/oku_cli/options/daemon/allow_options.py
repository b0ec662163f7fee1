"""The options by which an operator limits specs, and the rights of their user code."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from oku_cli.options.option_group import (
    CommandT,
    OptionGroup,
    Parsed,
    add_joined_options,
    add_options,
    option,
)
from oku_core.errors import UserError, format_value
from oku_core.process.landlock import Confinement
from oku_core.spec.files import SpecFiles
from oku_core.spec.secrets import SecretSource
from oku_core.spec.values.quantity import parse_size

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWN = ("OKU_", "CELERY_")
"""Of settings, which no spec needs: the broker's password among them."""
_LEAST_MEMORY = 128_000_000
"""An interpreter that has loaded a host and its libraries holds less than this."""


def _check_variable(flag: str, name: str, who: str) -> None:
    if not _VARIABLE.fullmatch(name):
        raise UserError(f"{flag}: {format_value(name)} is not the name of a variable")
    if name.startswith(_OWN):
        raise UserError(f"{flag}: {name} is a setting of Oku's own, which {who}")


def _build_files(_context: click.Context, _parameter: click.Parameter, folders: tuple[str, ...]) -> SpecFiles:
    for folder in folders:
        if not Path(folder).is_absolute():
            raise UserError(f"--files-dir: {folder or 'an empty text'} is not the full path of a folder")
    return SpecFiles(tuple(map(Path, folders)))


files_dir_option = option(
    OptionGroup.SECRETS, "--files-dir", "files", metavar="FOLDER", envvar="OKU_FILES_DIR",
    multiple=True, type=click.Path(), callback=_build_files,
    help="Folder whose files a spec may name (cacert, cert, key); repeatable. Default: none.",
)  # fmt: skip
"""`--files-dir`; the command gets it as `files`."""


def secret_options(*, has_variables: bool) -> Callable[[CommandT], CommandT]:
    """`--allow-env` and `--secrets-dir`; the command gets them as one, `secrets`.

    Args:
        has_variables: whether variables can set them, too. A user allows secrets for each run of his own
            anew: the next spec may come from another person.
    """
    return add_joined_options(
        "secrets",
        _pick_secrets,
        option(
            OptionGroup.SECRETS, "--allow-env", metavar="NAME",
            envvar="OKU_ALLOW_ENV" if has_variables else None, multiple=True,
            help="Environment variable that a spec may use as {env:NAME}; repeatable.",
        ),
        option(
            OptionGroup.SECRETS, "--secrets-dir", metavar="FOLDER",
            envvar="OKU_SECRETS_DIR" if has_variables else None,
            type=click.Path(path_type=Path), help="Folder whose files a spec may use as {file:NAME}.",
        ),
    )  # fmt: skip


def _pick_secrets(options: dict[str, Any]) -> SecretSource:
    names: tuple[str, ...] = options.pop("allow_env")
    folder: Path | None = options.pop("secrets_dir")
    for name in names:
        _check_variable("--allow-env", name, "no spec may name")
    if folder is not None and not folder.is_dir():
        raise UserError(f"--secrets-dir: {folder} is not a folder here")
    return SecretSource(names, None if folder is None else folder.absolute())


def confinement_options(*, serves_others: bool) -> Callable[[CommandT], CommandT]:
    """`--confine-user-code` and `--require-confinement`; the command gets them as one, `confinement`.

    Args:
        serves_others: whether the user code may come from others. It is confined by default then, and
            variables can set that, too. A user's own code has the user's rights.
    """

    def pick(options: dict[str, Any]) -> Confinement:
        confined, required = options.pop("confine_user_code"), options.pop("require_confinement")
        if required and confined is False:
            raise UserError("--require-confinement: cannot be combined with --no-confine-user-code")
        if required:
            return Confinement.REQUIRED
        is_on = serves_others if confined is None else confined
        return Confinement.ON if is_on else Confinement.OFF

    off = "/--no-confine-user-code" if serves_others else ""
    default = "; default: it is confined" if serves_others else ""
    return add_joined_options(
        "confinement",
        pick,
        option(
            OptionGroup.USER_CODE, f"--confine-user-code{off}", is_flag=True, default=None,
            envvar="OKU_CONFINE_USER_CODE" if serves_others else None,
            help=f"Confine user code to its own files and processes, where the kernel has Landlock{default}.",
        ),
        option(
            OptionGroup.USER_CODE, "--require-confinement", is_flag=True,
            envvar="OKU_REQUIRE_CONFINEMENT" if serves_others else None,
            help="Confine user code, and run nothing where the kernel has no Landlock.",
        ),
    )  # fmt: skip


def _parse_memory(text: str) -> int:
    size = parse_size(text)
    if 0 < size < _LEAST_MEMORY:
        raise ValueError(f"{format_value(text)} is not at least 128MB")
    return size


def _check_inherited(
    _context: click.Context, _parameter: click.Parameter, names: tuple[str, ...]
) -> tuple[str, ...]:
    for name in names:
        if name != "*":
            _check_variable("--inherit-env", name, "no user code sees")
    return names


user_code_options = add_options(
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
        envvar="OKU_INHERIT_ENV", multiple=True, callback=_check_inherited,
        help="Environment variable that user code sees, or * for all but Oku's; repeatable. "
        "Default: only those such as PATH, HOME, LANG and TZ.",
    ),
)  # fmt: skip
"""The options of a worker."""
