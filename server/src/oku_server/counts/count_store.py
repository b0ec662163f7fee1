"""The storage of a server's count tables and of its registry of runs, and the sums over the tables.

`MemoryCountStore` is memory that the processes share; it is gone when the server ends. `FileCountStore` is a
directory with one file for each process; it survives `kill -9`, but not a power cut, because nothing is
synced. Several servers may share the directory. Each process has a locked file of its own, and the lock ends
with its holder.
A new process continues with a file that no living process has locked, and the sum covers all files.
"""

import contextlib
import fcntl
import itertools
import mmap
import os
import secrets
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from oku_core.errors import UserError
from oku_core.process.private_files import make_data_folder, open_private, write_private
from oku_server.counts.count_table import (
    EMPTY_TABLE,
    TABLE_BYTES,
    is_run,
    is_table,
    read_count,
    read_forgotten,
)
from oku_server.counts.run_registry import EMPTY_REGISTRY, RunRegistry, is_registry


class Sum(NamedTuple):
    """The counts of all processes for a run.

    Attributes:
        served: the number of requests received.
        id: the same for all servers whose requests are in the sum, and different for any other server; it
            changes when the count of the run starts anew.
        is_kept: whether the run has a place that no other name can take.
        forgotten: how many names without an announcement have lost their counts.
    """

    served: int
    id: str
    is_kept: bool
    forgotten: int


class CountStore(Protocol):
    """The tables of one server."""

    @property
    def blocks(self) -> Sequence[mmap.mmap]:
        """One block for each process of the server, made before the processes are forked."""

    @property
    def registry(self) -> RunRegistry:
        """The announced runs, which all processes share."""

    def sum_up(self, run: str) -> Sum:
        """What all processes have counted for a run."""


class MemoryCountStore:
    """Tables in memory that forked processes share."""

    def __init__(self, processes: int) -> None:
        self._id = secrets.token_hex(8)
        self.blocks = [_map_memory(EMPTY_TABLE) for _ in range(processes)]
        self.registry = RunRegistry(_map_memory(EMPTY_REGISTRY), _open_lock_file())

    def sum_up(self, run: str) -> Sum:
        """What all processes have counted for a run."""
        return _sum_up(self.blocks, run, self.registry, self._id)


class FileCountStore:
    """Tables in the files `served-0.bin`, `served-1.bin` … of a directory, and the registry in `runs.bin`.

    Args:
        directory: where the files are; it is created if it does not exist.
        processes: how many tables to take.
        is_trusted: whether to accept the directory no matter who owns it or may write to it.

    Raises:
        UserError: the directory cannot be used, or one of these files holds something else.
    """

    def __init__(self, directory: Path, processes: int, *, is_trusted: bool = False) -> None:
        self._directory = directory
        try:
            make_data_folder(directory, is_trusted=is_trusted)
            self._id = _read_id(directory / "served-id")
            self.registry = _map_registry(directory / "runs.bin")
            free = (block for number in itertools.count() if (block := _map_free(self._path(number))))
            self.blocks = list(itertools.islice(free, processes))
        except OSError as error:
            raise UserError(f"--counts-dir: {directory} cannot be used: {error.strerror}") from error

    def sum_up(self, run: str) -> Sum:
        """What all processes of all servers that use the directory have counted for a run."""
        return _sum_up(_read_tables(self._directory), run, self.registry, self._id)

    def _path(self, number: int) -> Path:
        return self._directory / f"served-{number}.bin"


def read_served(directory: Path, run: str) -> int:
    """How many requests of `run` the tables of a directory have counted; its servers may be running."""
    path = directory / "runs.bin"
    content = path.read_bytes() if path.exists() else b""
    entry = RunRegistry(bytearray(content), -1).find(run) if is_registry(content) else None
    return sum(read_count(table, run, entry) for table in _read_tables(directory))


def _read_tables(directory: Path) -> list[bytes]:
    contents = (path.read_bytes() for path in directory.glob("served-*.bin"))
    return [content for content in contents if is_table(content)]


def _sum_up(tables: Iterable[bytes | mmap.mmap], run: str, registry: RunRegistry, store_id: str) -> Sum:
    if not is_run(run):
        return Sum(0, store_id, is_kept=False, forgotten=0)
    entry = registry.find(run)
    tables = list(tables)
    return Sum(
        served=sum(read_count(table, run, entry) for table in tables),
        id=store_id if entry is None else f"{store_id}-{entry.stamp:x}",
        is_kept=entry is not None,
        forgotten=sum(map(read_forgotten, tables)),
    )


def _open_lock_file() -> int:
    """Open a file that no path leads to, for as long as a process has it open."""
    if sys.platform == "linux":
        return os.memfd_create("locks")  # a container need not have a folder for temporary files
    lock_file, path = tempfile.mkstemp()
    Path(path).unlink()
    return lock_file


def _map_memory(content: bytes) -> mmap.mmap:
    block = mmap.mmap(-1, len(content))
    block[:] = content
    return block


def _read_id(path: Path) -> str:
    """Read the id of the store; the first process to need the file creates it, complete."""
    _make_whole(path, secrets.token_hex(8))
    return path.read_text()


def _map_registry(path: Path) -> RunRegistry:
    """Map the registry; the first process to need the file creates it, complete."""
    _make_whole(path, EMPTY_REGISTRY.decode("ascii"))
    # The file stays open because writers lock it. It must not be opened a second time: closing any descriptor
    # of it releases the lock of the whole process.
    file = open_private(path, os.O_RDWR)
    if not is_registry(os.pread(file, len(EMPTY_REGISTRY) + 1, 0)):
        os.close(file)
        raise UserError(f"--counts-dir: {path} is not a file of runs")
    return RunRegistry(mmap.mmap(file, len(EMPTY_REGISTRY)), file)


def _make_whole(path: Path, content: str) -> None:
    if not path.exists():
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        write_private(partial, content)
        with contextlib.suppress(FileExistsError):
            os.link(partial, path)
        partial.unlink()


def _map_free(path: Path) -> mmap.mmap | None:
    """Lock a file, turn it into a table if it is not one, and map it; None if another process holds it."""
    file = open_private(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    content = os.pread(file, TABLE_BYTES + 1, 0)
    # A table whose creation was cut short is created again. It is written out rather than extended to its
    # size, so that a full disk shows here and not as SIGBUS at a later count.
    if EMPTY_TABLE.startswith(content):
        os.pwrite(file, EMPTY_TABLE, 0)
    elif not is_table(content):
        os.close(file)
        raise UserError(f"--counts-dir: {path} is not a file of counts")
    # The file stays open to hold its lock, which forked processes share and which ends with the last of them.
    return mmap.mmap(file, TABLE_BYTES)
