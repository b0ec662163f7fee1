"""Where the count tables of all processes of a server live, and their sums.

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
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from oku_core.errors import UserError
from oku_core.private_files import make_private_folder, open_private, write_private
from oku_server.count_table import EMPTY_TABLE, TABLE_BYTES, is_run, is_table, read_count


class CountStore(Protocol):
    """The tables of one server."""

    @property
    def blocks(self) -> Sequence[mmap.mmap]:
        """One block for each process of the server, made before they are forked."""

    @property
    def id(self) -> str:
        """The same for all servers whose requests are in the sums, and for no other."""

    def fetch_served(self, run: str) -> int:
        """The requests of `run` that were received, over all processes."""


class MemoryStore:
    """Tables in memory that forked processes share."""

    def __init__(self, processes: int) -> None:
        self.id = secrets.token_hex(8)
        self.blocks = [mmap.mmap(-1, TABLE_BYTES) for _ in range(processes)]
        for block in self.blocks:
            block[:] = EMPTY_TABLE

    def fetch_served(self, run: str) -> int:
        """The requests of `run` that were received, over all processes."""
        return sum(read_count(block, run) for block in self.blocks) if is_run(run) else 0


class FileStore:
    """Tables in the files `counts-0.bin`, `counts-1.bin` … of a directory.

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
            self.id = _read_id(directory / "store-id")
            free = (block for number in itertools.count() if (block := _map_free(self._path(number))))
            self.blocks = list(itertools.islice(free, processes))
        except OSError as error:
            raise UserError(f"--counts-dir: {directory} cannot be used: {error.strerror}") from error

    def fetch_served(self, run: str) -> int:
        """The requests of `run` that were received, over all processes of all servers of the directory."""
        if not is_run(run):
            return 0
        contents = (path.read_bytes() for path in self._directory.glob("counts-*.bin"))
        return sum(read_count(content, run) for content in contents if is_table(content))

    def _path(self, number: int) -> Path:
        return self._directory / f"counts-{number}.bin"


def _read_id(path: Path) -> str:
    """What the file says; it is made whole by whoever is first."""
    if not path.exists():
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        write_private(partial, secrets.token_hex(8))
        with contextlib.suppress(FileExistsError):
            os.link(partial, path)
        partial.unlink()
    return path.read_text()


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
