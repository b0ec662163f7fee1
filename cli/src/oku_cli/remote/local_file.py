"""A file of this machine that is to become one of a run: what it is, and whether it still is that."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from oku_core.errors import UserError, format_value
from oku_core.spec.values.file_reference import FileClaim, FileHash, FileRef

_READ_BYTES = 1 << 20


class _Stamp(NamedTuple):
    """What is different after a file was changed or replaced."""

    device: int
    number: int
    size: int
    changed_ns: int


@dataclass(frozen=True)
class LocalFile:
    """A file that a run uses.

    Args:
        reference: how the spec names it.
        path: where it is here.
        label: how an error message names it.
        stamp: its state when its digest was made.
        proof: that this command has it.
    """

    reference: FileRef
    path: Path
    label: str
    stamp: _Stamp
    proof: str = field(repr=False)

    @property
    def claim(self) -> FileClaim:
        """What the coordinator is told of it before it gets anything."""
        return FileClaim(self.reference.digest, self.proof)

    @contextmanager
    def open(self) -> Iterator[int]:
        """Open it to be read; `UserError` if it cannot be, or is another one by now."""
        with _opened(str(self.path), self.label) as file:
            self.check(file)
            yield file

    def check(self, file: int) -> None:
        """Raise `UserError` if the open file has changed since its digest was made."""
        if _read_stamp(file) != self.stamp:
            raise self.build_change_error()

    def build_change_error(self) -> UserError:
        """The error of a file that is not what it was."""
        return UserError(f"{self.label}: was changed while it was uploaded; nothing was started")


def read_local_file(name: str, label: str) -> LocalFile:
    """Read a file once to know what is in it; it may be larger than memory.

    Args:
        name: its path.
        label: how an error message names it.

    Raises:
        UserError: it is not a file that can be read, or is changed meanwhile.
    """
    with _opened(name, label) as file:
        stamp, found, size = _read_stamp(file), FileHash(), 0
        while piece := os.read(file, _READ_BYTES):
            found.update(piece)
            size += len(piece)
        claim = found.claim
        reference = FileRef.build(claim.digest, size, Path(name).name)
        local = LocalFile(reference, Path(name).absolute(), label, stamp, claim.proof)
        if size != stamp.size:
            raise local.build_change_error()
        local.check(file)
    return local


@contextmanager
def _opened(name: str, label: str) -> Iterator[int]:
    try:
        # Without O_NONBLOCK a named pipe would be waited for.
        file = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(f"{label}: {error.strerror}") from error
    except ValueError as error:  # a path with a NUL
        raise UserError(f"{format_value(name)} is not the path of a file") from error
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise UserError(f"{label}: is not a regular file")
        yield file
    except OSError as error:
        raise UserError(f"{label}: {error.strerror}") from error
    finally:
        os.close(file)


def _read_stamp(file: int) -> _Stamp:
    state = os.fstat(file)
    return _Stamp(state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)
