"""The folder in which a worker has the files of its runs; several workers of one machine may share it.

A file grows under a temporary name and gets its own, its SHA-256, once it is whole. Locks between processes
mark its writer (exclusive) and its users (shared), and end with their process: only one process fetches a
file, none removes a file that another uses, and the next worker finds the leftovers of a killed one. A lock
of the folder is held from the check of a name to its change, so that no file gets it in between.
"""

import fcntl
import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from oku_core.process.private_files import make_private_folder, open_private
from oku_core.spec.values.file_reference import FileRef, is_digest

_PART = ".part"
_READ_BYTES = 1 << 20


class FileError(Exception):
    """A worker cannot have a file; the message gives the reason."""


class WrongContentError(FileError):
    """The content of a fetched file is wrong."""


class HeldFile:
    """A file that is whole, and stays as long as it is held, unless another program removes or changes it.

    Args:
        opened: its file descriptor, which has the shared lock.
    """

    def __init__(self, path: Path, opened: int) -> None:
        self.path = path
        self._opened = opened
        self._content = _read_version(opened)

    @property
    def is_changed(self) -> bool:
        """Whether another program has written to it."""
        return _read_version(self._opened) != self._content

    @property
    def is_whole(self) -> bool:
        """Whether its path still leads to it, and it is unchanged."""
        return not self.is_changed and _is_still(self.path, self._opened)

    def release(self) -> None:
        """Let go of it; the last holder removes it."""
        try:
            with _naming(self.path.parent):
                if _lock(self._opened, fcntl.LOCK_EX) and _is_still(self.path, self._opened):
                    self.path.unlink(missing_ok=True)
        finally:
            os.close(self._opened)


class PartialFile:
    """A file that is being fetched by this process alone.

    Args:
        file: what it will be.
        path: where it will be.
        opened: the file descriptor of what there is of it, which has the exclusive lock.

    Attributes:
        received: how many bytes of it are there.
    """

    def __init__(self, file: FileRef, path: Path, opened: int) -> None:
        self._file = file
        self._path = path
        self._opened = opened
        self._hash = hashlib.sha256()
        self._mutex = threading.Lock()
        """A task that waits for a writing thread may be cancelled, and close the file meanwhile."""
        self.received = 0
        while piece := os.pread(opened, _READ_BYTES, self.received):
            self._hash.update(piece)
            self.received += len(piece)

    def append(self, content: bytes) -> None:
        """Add to it; this blocks. `FileError` if it cannot be written, or grows too large."""
        if self.received + len(content) > self._file.size:
            self.restart()
            raise WrongContentError(f"more than {self._file.size:,} bytes came")
        with self._mutex:
            try:
                rest = memoryview(content)
                while rest:
                    rest = rest[os.pwrite(self._opened, rest, self.received + len(content) - len(rest)) :]
            except OSError as error:
                raise FileError(f"it cannot be written here: {error.strerror}") from error
            self._hash.update(content)
            self.received += len(content)

    def restart(self) -> None:
        """Begin again with nothing."""
        with self._mutex:
            os.ftruncate(self._opened, 0)
            self._hash, self.received = hashlib.sha256(), 0

    def finish(self) -> HeldFile:
        """Give it its name, and hold it; this blocks.

        Raises:
            FileNotFoundError: another program has removed it.
            WrongContentError: its content is wrong.
            FileError: it cannot be written.
        """
        if self._hash.hexdigest() != self._file.digest:
            self.restart()
            raise WrongContentError("what came does not have its digest")
        with self._mutex:
            try:
                os.fsync(self._opened)
                with _naming(self._path.parent):
                    if not _is_still(_part_of(self._path), self._opened):
                        raise FileNotFoundError(f"{self._path.name}{_PART} was removed while it was fetched")
                    _part_of(self._path).rename(self._path)
                    fcntl.flock(self._opened, fcntl.LOCK_SH)
            except FileNotFoundError:
                raise
            except OSError as error:
                raise FileError(f"it cannot be written here: {error.strerror}") from error
            held, self._opened = HeldFile(self._path, self._opened), -1
        return held

    def close(self) -> None:
        """Leave it as it is, for a process that continues it."""
        with self._mutex:
            if self._opened >= 0:
                os.close(self._opened)
                self._opened = -1


class FileCache:
    """A folder of files; unused ones are removed when others need their room.

    Args:
        folder: where they are; it is made when the first one comes.
        most_bytes: how large all of them may be together.
    """

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder = folder
        self._most_bytes = most_bytes

    def hold(self, file: FileRef) -> HeldFile | None:
        """Hold a file that is whole; None if there is none. This reads all of it, and blocks meanwhile."""
        path = self._folder / file.digest
        while True:
            try:
                opened = open_private(path, os.O_RDONLY)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise FileError(f"{path} cannot be used: {error.strerror}") from error
            fcntl.flock(opened, fcntl.LOCK_SH)  # only for a moment has anybody another lock
            if os.fstat(opened).st_nlink and self._is_intact(file, opened):
                return HeldFile(path, opened)
            # It was removed meanwhile, or is damaged: a damaged file must not be found again, even one in
            # use.
            with _naming(self._folder):
                if _is_still(path, opened):
                    path.unlink(missing_ok=True)
            os.close(opened)

    def open_partial(self, file: FileRef) -> PartialFile | None:
        """Begin to fetch a file, or go on with it; None while another process does. This blocks.

        Raises:
            FileError: there is no room for it, or the folder cannot be used.
        """
        path = self._folder / file.digest
        try:
            make_private_folder(self._folder)
            opened = open_private(_part_of(path), os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise FileError(f"{error.filename or self._folder}: {error.strerror}") from error
        try:
            if not _lock(opened, fcntl.LOCK_EX) or not _is_still(_part_of(path), opened):
                os.close(opened)
                return None
            partial = PartialFile(file, path, opened)
            self._make_room(file.size - partial.received)
        except BaseException:
            os.close(opened)
            raise
        return partial

    def clear(self) -> None:
        """Remove what no process uses."""
        self._remove_unused(needed=None)

    def _is_intact(self, file: FileRef, opened: int) -> bool:
        """Whether a file that another process has fetched has the right content."""
        if os.fstat(opened).st_size != file.size:
            return False
        with os.fdopen(os.dup(opened), "rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest() == file.digest

    def _make_room(self, needed: int) -> None:
        if self._measure() + needed > self._most_bytes:
            self._remove_unused(needed)
        if self._measure() + needed > self._most_bytes:
            raise FileError(
                f"there is no room: {needed:,} more bytes are needed, {self._measure():,} are in use, and at"
                f" most {self._most_bytes:,} are allowed here (--max-cache-bytes of the worker)"
            )

    def _remove_unused(self, needed: int | None) -> None:
        for path in self._list():
            if needed is not None and self._measure() + needed <= self._most_bytes:
                return
            try:
                opened = open_private(path, os.O_RDONLY)
            except OSError:
                continue  # gone, or not ours
            try:
                with _naming(self._folder):
                    if _lock(opened, fcntl.LOCK_EX) and _is_still(path, opened):
                        path.unlink(missing_ok=True)
            finally:
                os.close(opened)

    def _measure(self) -> int:
        return sum(path.stat().st_size for path in self._list() if path.exists())

    def _list(self) -> list[Path]:
        try:
            return [path for path in self._folder.iterdir() if is_digest(path.name.removesuffix(_PART))]
        except OSError:
            return []


@contextmanager
def _naming(folder: Path) -> Iterator[None]:
    """Keep others from changing a name in a folder meanwhile; a folder that is gone has no names."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def _part_of(path: Path) -> Path:
    return path.with_name(f"{path.name}{_PART}")


def _lock(opened: int, operation: int) -> bool:
    """Lock a file, unless that had to wait for another process."""
    try:
        fcntl.flock(opened, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_version(opened: int) -> tuple[int, int]:
    """The version of a file: its size, and when it was last written."""
    found = os.fstat(opened)
    return found.st_size, found.st_mtime_ns


def _is_still(path: Path, opened: int) -> bool:
    """Whether a path still leads to an open file: another process may have finished or removed it."""
    try:
        found = path.stat()
    except OSError:
        return False
    return os.path.samestat(found, os.fstat(opened))
