"""Files of this machine that become files of a run: read once, and uploaded before it is submitted.

A file that changes meanwhile is refused. What the coordinator has already is not sent again.
"""

import asyncio
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from oku_cli.backends.client import Client, WrongDigestError
from oku_cli.backends.coordinator_ref import UnreachableError
from oku_core.errors import UserError, format_value
from oku_core.spec.values.file_reference import FileClaim, FileHash, FileRef

if TYPE_CHECKING:
    from oku_cli.terminal.upload_bar import UploadBar

_READ_BYTES = 1 << 20


class _Stamp(NamedTuple):
    """The attributes of a file that change when it is changed or replaced."""

    device: int
    number: int
    size: int
    changed_ns: int


@dataclass(frozen=True)
class LocalFile:
    """A file that a run uses.

    Args:
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
        """The claim that the coordinator gets before the content."""
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
    """Read a file once for its digest; it may be larger than memory.

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


_PIECE_BYTES = 4 << 20
_PATIENCE_S = 60.0
"""How long a coordinator may be away before the upload is given up; another one goes on where it ended."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0


async def upload_files(client: Client, files: Iterable[LocalFile], *, quiet: bool = False) -> None:
    """Upload files, with a progress bar in a terminal unless `quiet`.

    Raises:
        UserError: a file changes meanwhile, or the coordinator does not take it.
        UnreachableError: the coordinator does not answer for long.
    """
    by_digest = {file.reference.digest: file for file in files}
    if not by_digest:
        return
    from oku_cli.terminal.upload_bar import UploadBar  # noqa: PLC0415  # rich takes long to load

    with UploadBar(quiet=quiet) as bar:
        for file in by_digest.values():
            try:
                await _upload(client, file, bar)
            except WrongDigestError:
                # The coordinator has dropped it: once more from the beginning, if the file is as it was.
                try:
                    await _upload(client, file, bar)
                except WrongDigestError:
                    raise file.build_change_error() from None


async def _upload(client: Client, file: LocalFile, bar: "UploadBar") -> None:
    reference = file.reference
    answered_at, pause_s = time.monotonic(), _FIRST_PAUSE_S
    offset: int | None = None
    with file.open() as opened:
        while True:
            piece = b""
            if offset is not None:
                piece = await asyncio.to_thread(os.pread, opened, _PIECE_BYTES, offset)
                file.check(opened)
            try:
                if offset is None:
                    stored = await client.fetch_file(file.claim)
                else:
                    stored = await client.send_piece(file.claim, reference.size, offset, piece)
            except UnreachableError:
                if time.monotonic() - answered_at > _PATIENCE_S:
                    raise
                await asyncio.sleep(pause_s)
                offset, pause_s = None, min(pause_s * 2, _LONGEST_PAUSE_S)
                continue
            except UserError as error:
                raise type(error)(f"{file.label}: {error}") from None
            if stored.is_complete:
                bar.show(reference.name, reference.size, reference.size)
                return
            answered_at, pause_s, offset = time.monotonic(), _FIRST_PAUSE_S, stored.received
            bar.show(reference.name, stored.received, reference.size)
