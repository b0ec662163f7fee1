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
    folder = Path() if source.label == STANDARD_INPUT_LABEL else Path(source.label).parent
    path = folder / name
    try:
        is_beside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # a loop of links, or a NUL
        is_beside = False
    if not is_beside:
        other = f"; only the command line may name such a file, with {flag}" if flag else ""
        raise UserError(
            f"{place}: {format_value(name)} is not in the folder of the spec file or below it{other}"
        )
    return str(path.absolute())
