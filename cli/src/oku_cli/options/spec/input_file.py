"""Reads files that a user names, or standard input: bounded, and in bounded time.

A file that a source of a spec names is found beside that source.
"""

import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from oku_cli.terminal.printable import write_note
from oku_core.errors import UserError, format_value
from oku_core.spec.parser import Source

STANDARD_INPUT = "-"
STANDARD_INPUT_LABEL = "standard input"
LARGEST_BYTES = 1 << 20
"""As much as the API takes."""
_OPEN_FILES = Path("/dev/fd")
_MOST_LINKS = 40
"""As many as Linux follows."""


def read_input(name: str, label: str, largest: int = LARGEST_BYTES) -> bytes:
    """The content of a regular file, or of standard input, called `-`; error messages name it by its label.

    Raises:
        UserError: it cannot be read, or is too large.
    """
    try:
        if name == STANDARD_INPUT:
            if sys.stdin is None:  # Python's sign that it is closed
                raise UserError(f"{label}: is closed")
            if sys.stdin.isatty():
                write_note("type or paste the input, Ctrl-D ends it")
            return _read_bounded(sys.stdin.buffer, label, largest)
        # Without O_NONBLOCK a named pipe would be waited for.
        with os.fdopen(os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return _read_bounded(file, label, largest)
    except OSError as error:
        raise UserError(f"{label}: {error.strerror}") from error
    except ValueError as error:  # a path with a NUL
        raise UserError(f"{format_value(name)} is not the path of a file") from error
    raise UserError(f"{label}: is neither a regular file nor {STANDARD_INPUT} for standard input")


def is_stream(name: str) -> bool:
    """Whether a name stands for standard input or another open file of this process, such as `/dev/stdin`."""
    if name == STANDARD_INPUT:
        return True
    path = Path(name)
    for _ in range(_MOST_LINKS):
        try:
            folder = path.parent.resolve()
            if folder == _OPEN_FILES or (folder.parts[1:2] == ("proc",) and folder.name == _OPEN_FILES.name):
                return True
            path = folder / path.readlink()
        except (OSError, RuntimeError, ValueError):  # no link, a loop of links, or a NUL
            return False
    return False


def expand_home(name: str) -> str:
    """A path whose `~` is the user's home; the home of a user who does not exist stays as it is."""
    return os.path.expanduser(name)  # noqa: PTH111  # pathlib raises an error for ~nobody


def _read_bounded(file: BinaryIO, label: str, largest: int) -> bytes:
    content = file.read(largest + 1)
    if len(content) > largest:
        raise UserError(f"{label}: is larger than {largest >> 20} MiB")
    return content


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
        source: the command line, or a spec.
        name: its path as it stands there; in a spec, from the folder whose files that may name.
        place: its place in the words of a message.
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
    """Whether a source may name a file: the command line any, a spec those in its folder or below."""
    if source.label is None:
        return True
    folder = _find_folder(source)
    try:
        return folder is not None and path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # a loop of links, or a NUL
        return False


def describe_fault(source: Source) -> str:
    """The message about a file that a spec may not name."""
    folder = f"{FILES_DIR}" if isinstance(source, StreamedSpec) else "the spec file"
    return f"is not in the folder of {folder} or below it"


def _find_folder(source: Source) -> Path | None:
    if isinstance(source, StreamedSpec):
        return source.files_dir
    return None if source.label is None else Path(source.label).parent
