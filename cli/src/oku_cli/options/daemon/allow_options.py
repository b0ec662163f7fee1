"""The options by which an operator says what a spec may name where coordinator and workers run."""

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import click

from oku_cli.options.option_group import CommandT, OptionGroup, option
from oku_core.errors import UserError, format_value
from oku_core.spec.files import SpecFiles
from oku_core.spec.secrets import SecretSource

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWN = ("OKU_", "CELERY_")
"""Of settings, which no spec needs: the broker's password among them."""


def files_dir_option(command: CommandT) -> CommandT:
    """`--files-dir`; the command gets it as `files`."""
    add = option(
        OptionGroup.SECRETS, "--files-dir", "files", metavar="FOLDER", envvar="OKU_FILES_DIR",
        multiple=True, type=click.Path(),
        callback=lambda _context, _parameter, folders: _build_files(folders),
        help="Folder whose files a spec may name (cacert, cert, key); repeatable. Default: none.",
    )  # fmt: skip
    return add(command)


def _build_files(folders: tuple[str, ...]) -> SpecFiles:
    for folder in folders:
        if not Path(folder).is_absolute():
            raise UserError(f"--files-dir: {folder or 'an empty text'} is not the full path of a folder")
    return SpecFiles(tuple(map(Path, folders)))


def secret_options(*, has_variables: bool) -> Callable[[CommandT], CommandT]:
    """`--allow-env` and `--secrets-dir`; the command gets them as one, `secrets`.

    Args:
        has_variables: whether they can be said by variables, too. What a user allows for a run of his own is
            said anew for each: the next spec may be somebody else's.
    """

    def add(command: CommandT) -> CommandT:
        @functools.wraps(command)
        def take(*arguments: Any, **options: Any) -> Any:
            secrets = _build_secrets(options.pop("allow_env"), options.pop("secrets_dir"))
            return command(*arguments, secrets=secrets, **options)

        take = option(
            OptionGroup.SECRETS, "--secrets-dir", metavar="FOLDER",
            envvar="OKU_SECRETS_DIR" if has_variables else None,
            type=click.Path(path_type=Path), help="Folder whose files a spec may use as {file:NAME}.",
        )(take)  # fmt: skip
        return option(
            OptionGroup.SECRETS, "--allow-env", metavar="NAME",
            envvar="OKU_ALLOW_ENV" if has_variables else None, multiple=True,
            help="Environment variable that a spec may use as {env:NAME}; repeatable.",
        )(cast("CommandT", take))  # fmt: skip

    return add


def refuse_secrets(secrets: SecretSource) -> None:
    """Remote workers have secrets of their own."""
    for flag, given in (("allow-env", secrets.variables), ("secrets-dir", secrets.folder)):
        if given:
            raise UserError(f"--{flag}: is for a local stack; remote workers have their own settings")


def _build_secrets(names: tuple[str, ...], folder: Path | None) -> SecretSource:
    for name in names:
        if not _VARIABLE.fullmatch(name):
            raise UserError(f"--allow-env: {format_value(name)} is not the name of a variable")
        if name.startswith(_OWN):
            raise UserError(f"--allow-env: {name} is a setting of Oku's own, which no spec may name")
    if folder is not None and not folder.is_dir():
        raise UserError(f"--secrets-dir: {folder} is not a folder here")
    return SecretSource(names, None if folder is None else folder.absolute())
