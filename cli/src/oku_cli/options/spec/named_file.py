"""Where a file is that a source of a spec names.

A spec file may be somebody else's, and what it names would be sent to the target that it names, too. So it
may name files beside itself only, and in folders there; the command line may name any.
"""

from pathlib import Path

from oku_cli.options.spec.input_file import STANDARD_INPUT_LABEL, expand_home
from oku_core.errors import UserError, format_value
from oku_core.spec.parser import Source


def find_file(source: Source, name: str, place: str, flag: str) -> str:
    """The path of a file.

    Args:
        source: what names it.
        name: its path as it stands there; in a spec file, from the folder of that.
        place: how a message says where it stands.
        flag: the flag with which the command line may name it; empty if there is none.

    Raises:
        UserError: a spec file names one that is neither in its folder nor below it.
    """
    if source.label is None:
        return expand_home(name)
    path = _find_folder(source.label) / name
    if not may_name(source, path):
        other = f"; only the command line may name such a file, with {flag}" if flag else ""
        raise UserError(
            f"{place}: {format_value(name)} is not in the folder of the spec file or below it{other}"
        )
    return str(path.absolute())


def may_name(source: Source, path: Path) -> bool:
    """Whether a source may name a file: the command line any, a spec file what is beside it or below."""
    if source.label is None:
        return True
    try:
        return path.resolve().is_relative_to(_find_folder(source.label).resolve())
    except (OSError, RuntimeError, ValueError):  # a loop of links, or a NUL
        return False


def _find_folder(label: str) -> Path:
    return Path() if label == STANDARD_INPUT_LABEL else Path(label).parent
