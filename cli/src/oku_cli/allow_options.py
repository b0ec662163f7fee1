"""The options by which an operator says what a spec may name where coordinator and workers run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from oku_core.errors import UserError
from oku_core.spec_files import SpecFiles

_Command = Callable[..., Any]


def files_dir_option(command: _Command) -> _Command:
    """`--files-dir`; the command gets it as `files`."""
    option = click.option(
        "--files-dir", "files", metavar="FOLDER", envvar="OKU_FILES_DIR", multiple=True, type=click.Path(),
        callback=lambda _context, _parameter, folders: _build_files(folders),
        help="Folder of files that a spec may name (cacert, cert, key), several times if need be; else none.",
    )  # fmt: skip
    return option(command)


def _build_files(folders: tuple[str, ...]) -> SpecFiles:
    for folder in folders:
        if not Path(folder).is_absolute():
            raise UserError(f"--files-dir: {folder or 'an empty text'} is not the full path of a folder")
    return SpecFiles(tuple(map(Path, folders)))
