"""Where a file is that a source of a spec names.

A spec may be somebody else's, and what it names would be sent to the target that it names, too. So a spec
file may name files beside itself only, and in folders there. A spec that is streamed has no folder: it may
name files only below one that the command line allows. The command line may name any.
"""

from dataclasses import dataclass
from pathlib import Path

from oku_cli.options.spec.input_file import expand_home
from oku_core.errors import UserError, format_value
from oku_core.spec.parser import Source

FILES_DIR = "--files-dir"


@dataclass(frozen=True)
class StreamedSpec(Source):
    """A spec that comes from standard input, or through another open file.

    Attributes:
        files_dir: the folder whose files it may name; None if it may name none.
    """

    files_dir: Path | None = None


def find_file(source: Source, name: str, place: str, flag: str) -> str:
    """The path of a file.

    Args:
        source: what names it.
        name: its path as it stands there; in a spec, from the folder whose files that may name.
        place: how a message says where it stands.
        flag: the flag with which the command line may name it; empty if there is none.

    Raises:
        UserError: a spec names one that it may not name.
    """
    if source.label is None:
        return expand_home(name)
    folder = _find_folder(source)
    if folder is None:
        raise UserError(
            f"{place}: {format_value(name)} is a file, and {source.label} may name files only "
            f"with {FILES_DIR} FOLDER"
        )
    path = folder / name
    if not may_name(source, path):
        other = f"; only the command line may name such a file, with {flag}" if flag else ""
        raise UserError(f"{place}: {format_value(name)} {describe_fault(source)}{other}")
    return str(path.absolute())


def may_name(source: Source, path: Path) -> bool:
    """Whether a source may name a file: the command line any, a spec what is in its folder or below."""
    if source.label is None:
        return True
    folder = _find_folder(source)
    try:
        return folder is not None and path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # a loop of links, or a NUL
        return False


def describe_fault(source: Source) -> str:
    """What a message says of a file that a spec may not name."""
    folder = f"{FILES_DIR}" if isinstance(source, StreamedSpec) else "the spec file"
    return f"is not in the folder of {folder} or below it"


def _find_folder(source: Source) -> Path | None:
    if isinstance(source, StreamedSpec):
        return source.files_dir
    return None if source.label is None else Path(source.label).parent
