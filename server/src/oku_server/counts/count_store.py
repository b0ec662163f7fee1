"""Where the count tables of all processes of a server live, with the registry of runs, and their sums.

`MemoryStore` is memory that the processes share: it goes with the server. `FileStore` is a directory with a
file for each process: it stays, through `kill -9` too (not through a power cut, nothing is synced). Several
servers may share the directory: a lock that dies with its holder gives each process a file of its own, a new
process carries on in one that no living process has, and the sum goes over all of them.
"""

import contextlib
import fcntl
import itertools
import mmap
import os
import secrets
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from oku_core.errors import UserError
from oku_core.process.private_files import make_private_folder, open_private, write_private
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
    """What all processes counted of a run.

    Attributes:
        served: the requests that were received.
        id: the same for all servers whose requests are in the sum, and for no other; another one when the
            count of the run has begun anew.
        is_kept: whether the run has a place that no other name can take.
        forgotten: how many names that nobody had announced have lost their counts.
    """

    served: int
    id: str
    is_kept: bool
    forgotten: int


class CountStore(Protocol):
    """The tables of one server."""

    @property
    def blocks(self) -> Sequence[mmap.mmap]:
        """One block for each process of the server, made before they are forked."""

    @property
    def registry(self) -> RunRegistry:
        """The announced runs of all processes."""

    def sum_up(self, run: str) -> Sum:
        """What all processes counted of a run."""


class MemoryStore:
    """Tables in memory that forked processes share."""

    def __init__(self, processes: int) -> None:
        self._id = secrets.token_hex(8)
        self.blocks = [_map_memory(EMPTY_TABLE) for _ in range(processes)]
        lock_file, path = tempfile.mkstemp()
        Path(path).unlink()  # it is there for as long as somebody has it open
        self.registry = RunRegistry(_map_memory(EMPTY_REGISTRY), lock_file)

    def sum_up(self, run: str) -> Sum:
        """What all processes counted of a run."""
        return _sum_up(self.blocks, run, self.registry, self._id)


class FileStore:
    """Tables in the files `served-0.bin`, `served-1.bin` … of a directory, the registry in `runs.bin`.

    Args:
        directory: is made unless it is there.
        processes: how many tables to take.
        is_trusted: whether the directory is taken as it is, whoever owns it and may write it.

    Raises:
        UserError: the directory cannot be used, or such a file is something else.
    """

    def __init__(self, directory: Path, processes: int, *, is_trusted: bool = False) -> None:
        self._directory = directory
        try:
            make_private_folder(directory, is_trusted=is_trusted)
            self._id = _read_id(directory / "served-id")
            self.registry = _map_registry(directory / "runs.bin")
            free = (block for number in itertools.count() if (block := _map_free(self._path(number))))
            self.blocks = list(itertools.islice(free, processes))
        except OSError as error:
            raise UserError(f"--counts-dir: {directory} cannot be used: {error.strerror}") from error

    def sum_up(self, run: str) -> Sum:
        """What all processes of all servers of the directory counted of a run."""
        return _sum_up(_read_tables(self._directory), run, self.registry, self._id)

    def _path(self, number: int) -> Path:
        return self._directory / f"served-{number}.bin"


def read_served(directory: Path, run: str) -> int:
    """The requests of `run` in the tables of a directory of counts, while servers count there."""
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


def _map_memory(content: bytes) -> mmap.mmap:
    block = mmap.mmap(-1, len(content))
    block[:] = content
    return block


def _read_id(path: Path) -> str:
    """What the file says; it is made whole by whoever is first."""
    _make_whole(path, secrets.token_hex(8))
    return path.read_text()


def _map_registry(path: Path) -> RunRegistry:
    """Map the registry; it is made whole by whoever is first."""
    _make_whole(path, EMPTY_REGISTRY.decode("ascii"))
    # The file stays open for the locks of those who write, and must not be opened again: to close it anywhere
    # in a process takes away its lock.
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
    """Lock a file, make it a table unless it is one, and map it; None if somebody else has it."""
    file = open_private(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    content = os.pread(file, TABLE_BYTES + 1, 0)
    # A table whose making was cut short is made again. Written, not truncated to size: a full disk shows
    # here and not as SIGBUS at some count.
    if EMPTY_TABLE.startswith(content):
        os.pwrite(file, EMPTY_TABLE, 0)
    elif not is_table(content):
        os.close(file)
        raise UserError(f"--counts-dir: {path} is not a file of counts")
    # The file stays open for its lock, which forked processes share and which ends with the last of them.
    return mmap.mmap(file, TABLE_BYTES)
