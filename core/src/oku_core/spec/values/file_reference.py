"""How a spec names a file of its run: by what is in it, so that every worker gets the same bytes.

Such a file was uploaded to the coordinator, which keeps it as long as a run uses it. A path, by contrast, is
one of the workers' machine, and only they know what is there.
"""

import re
from typing import Self

from oku_core.errors import format_value

FILE_MARK = "@"
"""With it begins, where a user writes the value of a key, the name of a file whose content is meant."""
_BEGIN = f"{FILE_MARK}sha256:"
_REFERENCE = re.compile(
    rf"{_BEGIN}(?P<digest>[0-9a-f]{{64}}):(?P<size>[0-9]{{1,15}}):(?P<name>[^/]{{1,100}})"
)
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LONGEST_NAME = 100


class FileRef(str):
    """A file of a run; as a string `@sha256:DIGEST:SIZE:NAME`.

    Attributes:
        digest: the SHA-256 of its content, in hexadecimal.
        size: its length in bytes.
        name: what the user calls it, without folders; it is for people, and need not be unique.
    """

    __slots__ = ("digest", "name", "size")
    digest: str
    size: int
    name: str

    def __new__(cls, text: str) -> Self:
        """Read a reference; raise `ValueError` if it is none."""
        match = _REFERENCE.fullmatch(text)
        if match is None or not match["name"].isprintable():
            raise ValueError(f"{format_value(text)} is not of the form {_BEGIN}DIGEST:SIZE:NAME")
        reference = super().__new__(cls, text)
        reference.digest, reference.size, reference.name = match["digest"], int(match["size"]), match["name"]
        return reference

    @classmethod
    def build(cls, digest: str, size: int, name: str) -> Self:
        """The reference of a file; characters that no name may have are replaced, and a long name is cut."""
        clean = "".join(char if char.isprintable() and char != "/" else "_" for char in name)
        return cls(f"{_BEGIN}{digest}:{size}:{clean[:_LONGEST_NAME] or '_'}")


def find_file_reference(text: str | None) -> FileRef | None:
    """The file of the run that a value of a spec names; None if it is a path, or a text of its own.

    Raises:
        ValueError: it begins as a reference does, but is none.
    """
    if text is None or not text.startswith(_BEGIN):
        return None
    return FileRef(text)


def describe_file(text: str) -> str:
    """How messages name a file: by its path, or as the user wrote it."""
    reference = find_file_reference(text)
    return text if reference is None else f"{FILE_MARK}{reference.name}"


def is_digest(text: str) -> bool:
    """Whether a text is a SHA-256 in hexadecimal, as files of runs are called."""
    return bool(_DIGEST.fullmatch(text))
