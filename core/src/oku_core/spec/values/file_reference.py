"""Names the files of a run in its spec: by a digest of their content, so every worker gets the same bytes.

Digests appear in specs, reports and responses, so they prove nothing. A caller proves that it has a file by a
second digest, with a key, which appears nowhere. Files of user code have a path as well, by which the code
opens them.
"""

import hashlib
import hmac
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Self

from oku_core.errors import format_value
from oku_core.spec.values.scalar import wrap_list

FILE_MARK = "@"
"""With it begins, where a user writes the value of a key, the name of a file whose content is meant."""
REFERENCE_MARK = f"{FILE_MARK}sha256:"
"""With it begins the reference of a file of a run."""
_REFERENCE = re.compile(
    rf"{REFERENCE_MARK}(?P<digest>[0-9a-f]{{64}}):(?P<size>[0-9]{{1,15}}):(?P<name>[^/]{{1,100}})"
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
            raise ValueError(f"{format_value(text)} is not of the form {REFERENCE_MARK}DIGEST:SIZE:NAME")
        reference = super().__new__(cls, text)
        reference.digest, reference.size, reference.name = match["digest"], int(match["size"]), match["name"]
        return reference

    @classmethod
    def build(cls, digest: str, size: int, name: str) -> Self:
        """The reference of a file; characters that no name may have are replaced, and a long name is cut."""
        clean = "".join(char if char.isprintable() and char != "/" else "_" for char in name)
        return cls(f"{REFERENCE_MARK}{digest}:{size}:{clean[:_LONGEST_NAME] or '_'}")


FindFile = Callable[[str], Path]
"""Gives the path of a file of a run by its digest; `OSError` or a `UserError` if it is not here."""


def find_file_reference(text: str | None) -> FileRef | None:
    """The file of the run that a value of a spec names; None if it is a path, or a text of its own.

    Raises:
        ValueError: it begins as a reference does, but is none.
    """
    if text is None or not text.startswith(REFERENCE_MARK):
        return None
    return FileRef(text)


def describe_file(text: str) -> str:
    """How messages name a file: by its path, or as the user wrote it."""
    reference = find_file_reference(text)
    return text if reference is None else f"{FILE_MARK}{reference.name}"


def is_digest(text: str) -> bool:
    """Whether a text is a SHA-256 in hexadecimal, as files of runs are called."""
    return bool(_DIGEST.fullmatch(text))


PROOF_HEADER = "Oku-File-Proof"
"""Has the proof in calls about one file; a call that submits a run has it in its body, as `PROOFS`."""
PROOFS = "proofs"
PROOF_KEY = b"oku-file-proof"


class FileClaim(NamedTuple):
    """What a caller knows of a file.

    Attributes:
        digest: the SHA-256 of its content, in hexadecimal.
        proof: the HMAC-SHA-256 of its content with `PROOF_KEY`, in hexadecimal.
    """

    digest: str
    proof: str

    @classmethod
    def read(cls, digest: str, proof: object) -> Self:
        """A claim as a caller gives it; raise `ValueError` if it is none, without showing the proof."""
        if not is_digest(digest):
            raise ValueError(f"{format_value(digest)} is not a SHA-256 in hexadecimal")
        if not isinstance(proof, str) or not is_digest(proof):
            raise ValueError(f"the proof of {digest} is not an HMAC-SHA-256 in hexadecimal")
        return cls(digest, proof)


class FileHash:
    """Reads a file piece by piece for digest and proof."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._proof = hmac.new(PROOF_KEY, digestmod="sha256")

    def update(self, piece: bytes) -> None:
        """The next piece of the content."""
        self._digest.update(piece)
        self._proof.update(piece)

    @property
    def claim(self) -> FileClaim:
        """Digest and proof of the content so far."""
        return FileClaim(self._digest.hexdigest(), self._proof.hexdigest())


_LONGEST_PATH = 400
CODE_PATH = f"a path of up to {_LONGEST_PATH} printable characters without {REFERENCE_MARK}"
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
        path, mark, rest = text.partition(REFERENCE_MARK)
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
        and REFERENCE_MARK not in path
        and bool(parts)
        and path == "/".join(parts)
        and not path.startswith("/")
        and not {"..", "."} & set(parts)
    )


def parse_code_file(value: object) -> CodeFile:
    """Parse a file of user code that a command has read; `ValueError` if it is only named."""
    if not isinstance(value, str) or REFERENCE_MARK not in value:
        raise ValueError(f"{format_value(value)} is not PATH@sha256:DIGEST:SIZE:NAME; oku run reads a file")
    return CodeFile(value)


def parse_code_files(value: object) -> tuple[CodeFile, ...]:
    """Parse several of them, or one; `ValueError` if two have the same path."""
    files = tuple(map(parse_code_file, wrap_list(value)))
    if len({file.path for file in files}) != len(files):
        raise ValueError("two files have the same path")
    return files
