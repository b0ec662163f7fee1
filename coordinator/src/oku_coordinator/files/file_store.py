"""The folder with the files of runs, each called by the SHA-256 of what is in it.

What is uploaded grows under a temporary name, and gets its own once all of it is there, is on the disk and
has that digest. So a file that has its name is whole, whatever has died meanwhile, and what is there of
another one need not be sent again.
"""

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from oku_coordinator.settings import FileLimits
from oku_core.errors import UserError
from oku_core.process.private_files import make_private_folder, open_private
from oku_core.spec.values.file_reference import is_digest

_PART = ".part"
_KEPT_FREE = 256 << 20
"""So many bytes of the disk stay free for the ledger: without room in it, every run stands still."""


class FileTooLargeError(UserError):
    """A file, or all files together, would be larger than the operator allows."""


class NoRoomError(UserError):
    """The disk has no room for a file."""


class DigestError(UserError):
    """What was uploaded is not what its name says."""


class UnknownFileError(UserError):
    """There is no such file here, or not all of it."""


@dataclass(frozen=True)
class StoredFile:
    """What there is of a file.

    Attributes:
        digest: the SHA-256 that names it.
        received: how many bytes of it are here.
        is_complete: whether that is all of it, and checked.
    """

    digest: str
    received: int
    is_complete: bool


class FileStore:
    """Keeps files; one process at a time uses a folder.

    Args:
        folder: where they are; it is made when the first one comes.
        limits: how large they may be.
        measure_free: how many bytes are free on the disk of a folder.
        clock: Unix time, as that of files.
    """

    def __init__(
        self,
        folder: Path,
        limits: FileLimits | None = None,
        measure_free: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._limits = limits or FileLimits()
        self._measure_free = measure_free
        self._clock = clock
        self._complete: dict[str, int] = {}
        self._partial: dict[str, int] = {}
        """By digest, how many bytes are there of those that are not complete."""
        self._announced: dict[str, int] = {}
        """By digest, how large those will be that are coming in."""
        self._wanted: dict[str, float] = {}
        """When a command was told about what it is about to submit a run with, by digest."""
        self._list()

    @property
    def limits(self) -> FileLimits:
        """How large files may be, and how many a run may have."""
        return self._limits

    def describe(self, digest: str) -> StoredFile:
        """What there is of a file. Whoever asks wants it: it stays for a while, used or not."""
        if digest in self._complete:
            self._wanted[digest] = self._clock()
            return StoredFile(digest, self._complete[digest], is_complete=True)
        return StoredFile(digest, self._partial.get(digest, 0), is_complete=False)

    def find(self, digest: str) -> Path:
        """The path of a file that is complete; `UnknownFileError` if there is none."""
        if digest not in self._complete:
            raise UnknownFileError(f"no such file: {digest}")
        return self._folder / digest

    def admit(self, digest: str, size: int) -> None:
        """Make sure that a file of this size may come in.

        Raises:
            FileTooLargeError: the operator does not allow it.
            NoRoomError: the disk has no room for it.
        """
        limits = self._limits
        if size > limits.most_file_bytes:
            raise FileTooLargeError(
                f"the file has {size:,} bytes, and at most {limits.most_file_bytes:,} are allowed"
                " (--max-file-bytes of the coordinator)"
            )
        incoming = self._partial | self._announced | {digest: size}
        total = sum(self._complete.values()) + sum(incoming.values())
        if total > limits.most_bytes:
            raise FileTooLargeError(
                f"with this file, those of all runs would have {total:,} bytes, and at most"
                f" {limits.most_bytes:,} are allowed (--max-files-bytes of the coordinator): delete old runs"
            )
        try:
            make_private_folder(self._folder)
            free = self._measure_free(self._folder)
        except OSError as error:
            raise NoRoomError(f"the coordinator cannot keep files: {error.strerror}") from error
        if free - (size - self._partial.get(digest, 0)) < _KEPT_FREE:
            raise NoRoomError(
                f"the disk of the coordinator has {free:,} bytes left, and the file has {size:,};"
                f" {_KEPT_FREE >> 20} MiB are kept free for the ledger"
            )
        self._announced[digest] = size

    def append(self, digest: str, content: bytes) -> None:
        """Add to a file that is coming in; this blocks. `NoRoomError` if it does not fit: a part may stay."""
        path = self._folder / f"{digest}{_PART}"
        try:
            file = os.open(path, os.O_WRONLY | os.O_APPEND) if digest in self._partial else _create(path)
            try:
                rest = memoryview(content)
                while rest:
                    written = os.write(file, rest)
                    self._partial[digest] = self._partial.get(digest, 0) + written
                    rest = rest[written:]
            finally:
                os.close(file)
        except OSError as error:
            raise NoRoomError(f"the file cannot be written at the coordinator: {error.strerror}") from error

    def complete(self, digest: str) -> None:
        """Give a file its name, now that all of it is here; this blocks, as all of it is read.

        Raises:
            DigestError: it has another digest; nothing is left of it.
            NoRoomError: the disk does not take it.
        """
        path = self._folder / f"{digest}{_PART}"
        try:
            with os.fdopen(open_private(path, os.O_RDWR | os.O_CREAT), "rb+") as file:
                os.fsync(file.fileno())
                is_right = hashlib.file_digest(file, "sha256").hexdigest() == digest
            if not is_right:
                self._forget_partial(digest)
                raise DigestError(f"what was uploaded does not have the digest {digest}")
            path.rename(self._folder / digest)
            _sync_folder(self._folder)
        except OSError as error:
            raise NoRoomError(f"the file cannot be written at the coordinator: {error.strerror}") from error
        self._announced.pop(digest, None)
        self._complete[digest] = self._partial.pop(digest, 0)
        self._wanted[digest] = self._clock()

    def abandon(self, digest: str) -> None:
        """Nothing more comes of a file for now; what is there stays for a while."""
        self._announced.pop(digest, None)

    def hand_over(self, digest: str) -> int | None:
        """How many bytes a file has that is complete, None if there is none; from now on a run keeps it."""
        self._wanted.pop(digest, None)
        return self._complete.get(digest)

    def delete(self, digest: str) -> None:
        """Remove a file that no run uses any more, unless another is about to use it."""
        if digest not in self._wanted:
            self._remove(digest)

    def sweep(self, used: AbstractSet[str]) -> None:
        """Remove what no run uses, and nobody has sent anything of, or asked for, for a while."""
        before = self._clock() - self._limits.unused_s
        for digest in [*self._complete, *self._partial]:
            if digest in used or digest in self._announced or self._wanted.get(digest, before) > before:
                continue
            name = digest if digest in self._complete else f"{digest}{_PART}"
            with contextlib.suppress(FileNotFoundError):
                if (self._folder / name).stat().st_mtime > before:
                    continue
            self._wanted.pop(digest, None)
            self._remove(digest)

    def _remove(self, digest: str) -> None:
        (self._folder / digest).unlink(missing_ok=True)
        self._complete.pop(digest, None)
        self._forget_partial(digest)

    def _forget_partial(self, digest: str) -> None:
        (self._folder / f"{digest}{_PART}").unlink(missing_ok=True)
        self._partial.pop(digest, None)
        self._announced.pop(digest, None)

    def _list(self) -> None:
        try:
            found = list(os.scandir(self._folder))
        except FileNotFoundError:
            return
        for entry in found:
            digest = entry.name.removesuffix(_PART)
            if is_digest(digest):
                known = self._complete if digest == entry.name else self._partial
                known[digest] = entry.stat(follow_symlinks=False).st_size


def _create(path: Path) -> int:
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
