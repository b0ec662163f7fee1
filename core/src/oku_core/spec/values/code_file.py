"""A file of user code, or one that user code reads: a file of the run with a path of its own.

All of them stand in one folder when the code runs, under the paths that they had beside it.
"""

from pathlib import PurePosixPath
from typing import Self

from oku_core.errors import format_value
from oku_core.spec.values.file_reference import FileRef

_LONGEST_PATH = 400
_MARK = "@sha256:"
CODE_PATH = f"a path of up to {_LONGEST_PATH} printable characters without {_MARK}"
"""What `is_code_path` asks for, beside that it stays in its folder."""


class CodeFile(str):
    """A file with its path; as a string `PATH@sha256:DIGEST:SIZE:NAME`.

    Attributes:
        path: where it stands in the folder of the user code, with `/` between folders.
        file: the file of the run.
    """

    __slots__ = ("file", "path")
    path: str
    file: FileRef

    def __new__(cls, text: str) -> Self:
        """Read one; raise `ValueError` if it is none."""
        path, mark, rest = text.partition(_MARK)
        if not is_code_path(path):
            raise ValueError(f"{format_value(text)} is not of the form PATH@sha256:DIGEST:SIZE:NAME")
        code_file = super().__new__(cls, text)
        code_file.path, code_file.file = path, FileRef(f"{mark}{rest}")
        return code_file

    @classmethod
    def build(cls, path: str, file: FileRef) -> Self:
        """A file of the run at a path."""
        return cls(f"{path}{file}")


def is_code_path(path: str) -> bool:
    """Whether a path is one that a file of user code may have: relative, and nowhere else."""
    parts = PurePosixPath(path).parts
    return (
        0 < len(path) <= _LONGEST_PATH
        and path.isprintable()
        and _MARK not in path
        and bool(parts)
        and path == "/".join(parts)
        and not path.startswith("/")
        and not {"..", "."} & set(parts)
    )


def parse_code_file(value: object) -> CodeFile:
    """Parse a file of user code that a command has read; `ValueError` if it is only named."""
    if not isinstance(value, str) or _MARK not in value:
        raise ValueError(f"{format_value(value)} is not PATH@sha256:DIGEST:SIZE:NAME; oku run reads a file")
    return CodeFile(value)


def parse_code_files(value: object) -> tuple[CodeFile, ...]:
    """Parse several of them, or one; `ValueError` if two have the same path."""
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    files = tuple(parse_code_file(item) for item in items)
    if len({file.path for file in files}) != len(files):
        raise ValueError("two files have the same path")
    return files
