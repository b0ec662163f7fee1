"""The commands whose runs are on the stack that another command started in the same data folder.

Each has a note and a lock in the folder `joined`. A command that was killed leaves a note, and a lock that no
process holds.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from oku_core.errors import UserError
from oku_core.json_reader import JsonDecoder, JsonError
from oku_core.process.private_files import FileLock, make_private_folder, write_private

_LOCK, _NOTE = ".lock", ".json"


class JoinedCommand(msgspec.Struct, frozen=True):
    """A command, and what its run needs.

    Args:
        process: its process id.
        workers: the number of workers that it asks for.
        run: its run; empty until the coordinator has it.
    """

    process: int
    workers: int
    run: str = ""


_decode_note = JsonDecoder[JoinedCommand](JoinedCommand).decode


class Membership(NamedTuple):
    """This command, as one of the joined."""

    note: Path
    workers: int

    def write(self, run: str = "") -> None:
        """Write down that this command has joined, and which run it follows."""
        command = JoinedCommand(os.getpid(), self.workers, run)
        write_private(self.note, msgspec.json.encode(command).decode())


class JoinedCommands:
    """The joined commands of a data folder.

    Args:
        folder: has their notes and locks; the first of them makes it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def join(self, workers: int) -> Iterator[Membership]:
        """Join for as long as the context lasts; `UserError` if the folder cannot be written."""
        # Two containers may share a folder, and have the same process ids.
        note = self._folder / f"{secrets.token_hex(8)}{_NOTE}"
        member = Membership(note, workers)
        try:
            make_private_folder(self._folder)
            lock = FileLock(note.with_suffix(_LOCK))
            member.write()
        except OSError as error:
            raise UserError(f"{error.filename or self._folder}: {error.strerror}") from error
        try:
            yield member
        finally:
            _remove(note)
            lock.release()

    def list_alive(self) -> list[JoinedCommand]:
        """The commands that are joined now."""
        return [command for note, command in self._read() if _is_held(note)]

    def remove_dead(self) -> list[JoinedCommand]:
        """Remove the notes of killed commands, and return these commands."""
        dead = [(note, command) for note, command in self._read() if not _is_held(note)]
        for note, _ in dead:
            _remove(note)
        return [command for _, command in dead]

    def _read(self) -> list[tuple[Path, JoinedCommand]]:
        found = []
        for note in sorted(self._folder.glob(f"*{_NOTE}")):
            with suppress(FileNotFoundError, JsonError):  # a command has left, or the disk is full
                found.append((note, _decode_note(note.read_bytes())))
        return found


def _is_held(note: Path) -> bool:
    try:
        FileLock(note.with_suffix(_LOCK)).release()
    except BlockingIOError:
        return True
    return False


def _remove(note: Path) -> None:
    # The note goes first: without its lock it would look like the note of a killed command.
    note.unlink(missing_ok=True)
    note.with_suffix(_LOCK).unlink(missing_ok=True)
