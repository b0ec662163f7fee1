"""The folder of the files of runs, each named by its SHA-256 digest and the proof that a caller has it.

An upload grows under a temporary name. It gets its final name once it is completely on the disk and matches
its digest and proof. So a file with its final name is complete, even after a crash, and an interrupted upload
continues where it stopped. A caller without the right proof finds neither files nor parts of them.
"""

import hmac
import os
import shutil
import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from oku_coordinator.settings import FileLimits
from oku_core.errors import UserError
from oku_core.process.clock import Clock
from oku_core.process.private_files import make_private_folder, open_private
from oku_core.spec.values.file_reference import FileClaim, FileHash, is_digest

_PROOF_MARK, _PART = ".", ".part"
_READ_BYTES = 1 << 20
_KEPT_FREE = 256 << 20
"""Bytes of the disk that stay free for the ledger: without space for it, every run stops."""


class FileName(NamedTuple):
    """The name of a file in the folder: digest and proof, with a mark while it is incomplete."""

    claim: FileClaim
    is_part: bool = False

    def __str__(self) -> str:
        """Format it."""
        return f"{_PROOF_MARK.join(self.claim)}{_PART if self.is_part else ''}"


def read_name(name: str) -> FileName | None:
    """Parse a name; None if it does not name a file of a run."""
    whole = name.removesuffix(_PART)
    digest, _, proof = whole.partition(_PROOF_MARK)
    if not (is_digest(digest) and is_digest(proof)):
        return None
    return FileName(FileClaim(digest, proof), is_part=whole != name)


def find_stored_file(folder: Path, digest: str) -> Path | None:
    """The file with a digest in the folder of a coordinator that is not running; None if it is missing."""
    for path in folder.glob(f"{digest}*"):
        name = read_name(path.name)
        if name is not None and not name.is_part:
            return path
    return None


class FileTooLargeError(UserError):
    """A file, or all files together, would exceed the limit of the operator."""


class NoRoomError(UserError):
    """The disk has no room for a file."""


class DigestError(UserError):
    """The upload has another digest or proof."""


class UnknownFileError(UserError):
    """The file is not here, or incomplete."""


@dataclass(frozen=True)
class StoredFile:
    """The state of a file, as callers see it."""

    digest: str
    received: int
    """The number of its bytes that have arrived."""
    is_complete: bool
    """Whether it is complete and verified."""


class _Complete(NamedTuple):
    size: int
    """In bytes."""
    proof: str


class FileStore:
    """Keeps files; one process at a time uses a folder.

    Args:
        folder: the folder; it is created with the first file.
        measure_free: measures the free bytes on the disk of a folder.
        clock: Unix time, as of the file system.
    """

    def __init__(
        self,
        folder: Path,
        limits: FileLimits | None = None,
        measure_free: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
        clock: Clock = time.time,
    ) -> None:
        self._folder = folder
        self._limits = limits or FileLimits()
        self._measure_free = measure_free
        self._clock = clock
        self._complete: dict[str, _Complete] = {}
        self._partial: dict[FileClaim, int] = {}
        """Bytes that have arrived of each incomplete file."""
        self._announced: dict[FileClaim, int] = {}
        """Final sizes of the files that are being uploaded."""
        self._wanted: dict[str, float] = {}
        """When a command last asked about a file for its next run, by digest."""
        self._list()

    @property
    def limits(self) -> FileLimits:
        """The limits on sizes and numbers of files."""
        return self._limits

    def describe(self, claim: FileClaim) -> StoredFile:
        """The state of a file. A complete one is kept for a while, as its caller is about to use it."""
        if self.is_proven(claim):
            self._wanted[claim.digest] = self._clock()
            return StoredFile(claim.digest, self._complete[claim.digest].size, is_complete=True)
        return StoredFile(claim.digest, self._partial.get(claim, 0), is_complete=False)

    def is_proven(self, claim: FileClaim) -> bool:
        """Whether a file is complete and has this proof."""
        stored = self._complete.get(claim.digest)
        return stored is not None and hmac.compare_digest(stored.proof, claim.proof)

    def find(self, digest: str) -> Path:
        """The path of a complete file; raises `UnknownFileError` if there is none."""
        if digest not in self._complete:
            raise UnknownFileError(f"no such file: {digest}")
        return self._path(FileClaim(digest, self._complete[digest].proof))

    def admit(self, claim: FileClaim, size: int) -> None:
        """Check that there is room for a file of this size.

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
        incoming = self._partial | self._announced | {claim: size}
        total = sum(stored.size for stored in self._complete.values()) + sum(incoming.values())
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
        if free - (size - self._partial.get(claim, 0)) < _KEPT_FREE:
            raise NoRoomError(
                f"the disk of the coordinator has {free:,} bytes left, and the file has {size:,};"
                f" {_KEPT_FREE >> 20} MiB are kept free for the ledger"
            )
        self._announced[claim] = size

    def append(self, claim: FileClaim, content: bytes) -> None:
        """Append to an upload; blocking. Raises `NoRoomError` if it does not fit, and may leave a part."""
        path = self._path(claim, is_part=True)
        try:
            file = os.open(path, os.O_WRONLY | os.O_APPEND) if claim in self._partial else _create(path)
            try:
                rest = memoryview(content)
                while rest:
                    written = os.write(file, rest)
                    self._partial[claim] = self._partial.get(claim, 0) + written
                    rest = rest[written:]
            finally:
                os.close(file)
        except OSError as error:
            raise NoRoomError(f"the file cannot be written at the coordinator: {error.strerror}") from error

    def complete(self, claim: FileClaim) -> None:
        """Verify a complete upload and give it its final name; blocking, because it reads the whole file.

        Raises:
            DigestError: it has another digest or proof, and was deleted.
            NoRoomError: the disk is full.
        """
        path = self._path(claim, is_part=True)
        try:
            with os.fdopen(open_private(path, os.O_RDWR | os.O_CREAT), "rb+") as file:
                os.fsync(file.fileno())
                found = FileHash()
                while piece := file.read(_READ_BYTES):
                    found.update(piece)
            if found.claim != claim:
                self._forget_partial(claim)
                raise DigestError(f"what was uploaded does not have the digest {claim.digest} and its proof")
            path.rename(self._path(claim))
            _sync_folder(self._folder)
        except OSError as error:
            raise NoRoomError(f"the file cannot be written at the coordinator: {error.strerror}") from error
        self._announced.pop(claim, None)
        self._complete[claim.digest] = _Complete(self._partial.pop(claim, 0), claim.proof)
        self._wanted[claim.digest] = self._clock()

    def abandon(self, claim: FileClaim) -> None:
        """Pause an upload; its part is kept for a while."""
        self._announced.pop(claim, None)

    def claim_whole(self, digest: str) -> int | None:
        """The size of a complete file, None if there is none; the caller's run keeps it from now on."""
        self._wanted.pop(digest, None)
        stored = self._complete.get(digest)
        return None if stored is None else stored.size

    def delete(self, digest: str) -> None:
        """Delete a file that no run uses, unless another run is about to use it."""
        if digest not in self._wanted:
            self._remove(digest)

    def sweep(self, used: AbstractSet[str]) -> None:
        """Delete files that no run uses and that were not requested or extended for a while."""
        before = self._clock() - self._limits.unused_s
        for digest in [*self._complete]:
            is_wanted = digest in used or self._wanted.get(digest, before) > before
            if not is_wanted and not self._is_newer(self.find(digest), before):
                self._wanted.pop(digest, None)
                self._remove(digest)
        for claim in [*self._partial]:
            path = self._path(claim, is_part=True)
            if claim not in self._announced and not self._is_newer(path, before):
                self._forget_partial(claim)

    def _is_newer(self, path: Path, than: float) -> bool:
        try:
            return path.stat().st_mtime > than
        except FileNotFoundError:
            return False

    def _remove(self, digest: str) -> None:
        if (stored := self._complete.pop(digest, None)) is not None:
            self._path(FileClaim(digest, stored.proof)).unlink(missing_ok=True)

    def _forget_partial(self, claim: FileClaim) -> None:
        self._path(claim, is_part=True).unlink(missing_ok=True)
        self._partial.pop(claim, None)
        self._announced.pop(claim, None)

    def _list(self) -> None:
        try:
            found = list(os.scandir(self._folder))
        except FileNotFoundError:
            return
        for entry in found:
            if (name := read_name(entry.name)) is None:
                continue
            size, (digest, proof) = entry.stat(follow_symlinks=False).st_size, name.claim
            if name.is_part:
                self._partial[name.claim] = size
            else:
                self._complete[digest] = _Complete(size, proof)

    def _path(self, claim: FileClaim, *, is_part: bool = False) -> Path:
        return self._folder / str(FileName(claim, is_part))


def _create(path: Path) -> int:
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
