"""The record that a worker writes about its leases, to be read after its death.

A lease is written before anything of it is taken, and how far it may go is written before it goes there. So
anything that a dead worker has not written it has not done.

The record is a file of the process, which holds a lock on it: the kernel releases the lock exactly when the
process has ended, in any way. A worker that cannot write its record goes on without one, and empties it: an
old record would show less than was taken.
"""

import fcntl
import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

from oku_core.messaging.process_ends import MOST_RECORDED_LEASES, FlightRecord
from oku_core.process.private_files import make_private_folder, open_private
from oku_workers.flight.record_file import (
    UNFINISHED,
    RecordError,
    RecordFolder,
    RecordHead,
    build_record_path,
    encode_head,
    encode_reached,
    encode_slot,
    find_slot,
)

_log = logging.getLogger(__name__)

Write = Callable[[int], None]
"""Writes the first position of a lease that will certainly not be taken before the next call."""
EXIT_UNRECORDED = 5
"""The exit code of a worker whose record is wrong and stays where it is."""


class FlightRecorder(Protocol):
    """Keeps how far each lease in hand has gone."""

    def open_slot(self, lease: str) -> Write | None:
        """Begin with a lease, of which nothing is taken yet; None if nothing can be written of it."""

    def forget(self, lease: str) -> None:
        """Forget a lease whose final checkpoint is confirmed."""

    def find_dead(self) -> list[FlightRecord]:
        """The records of processes of this machine that have died; from one thread at a time, whichever."""


class NoRecorder:
    """Writes nothing: after a death, only the limits are known."""

    def open_slot(self, lease: str) -> Write | None:  # noqa: ARG002  # as the protocol wants it
        """Nothing is written."""
        return None

    def forget(self, lease: str) -> None:
        """Nothing was written."""

    def find_dead(self) -> list[FlightRecord]:
        """There are no records."""
        return []


class FileRecorder:
    """Writes the record of this process; belongs to the thread of the event loop.

    Args:
        folder: where all workers that report each other's records write them; it is made if need be.
        boot: the boot of this machine; without it nothing is written.
    """

    def __init__(self, folder: Path, incarnation: str, boot: str) -> None:
        self._path = build_record_path(folder, incarnation)
        self._folder = RecordFolder(folder, boot)
        self._head = RecordHead(boot=boot, incarnation=incarnation)
        self._slots: dict[str, int] = {}
        self._free: list[int] = []
        self._file = -1
        if boot:
            try:
                self._open(folder)
            except (OSError, RecordError) as error:
                self._give_up(error)

    def open_slot(self, lease: str) -> Write | None:
        """Begin with a lease, of which nothing is taken yet; None if nothing can be written of it."""
        if self._file < 0:
            return None
        if not self._free and len(self._slots) >= MOST_RECORDED_LEASES:
            self._give_up(RecordError(f"there are more than {MOST_RECORDED_LEASES} leases"))
            return None
        slot = self._free.pop() if self._free else len(self._slots)
        try:
            self._write(encode_slot(lease, 0), find_slot(slot))
        except RecordError as error:
            self._give_up(error)
            return None
        self._slots[lease] = slot
        return partial(self._write_reached, find_slot(slot))

    def forget(self, lease: str) -> None:
        """Forget a lease whose final checkpoint is confirmed."""
        slot = self._slots.pop(lease, None)
        if slot is None or self._file < 0:
            return
        self._head = self._head.forget(lease)
        self._write(encode_head(self._head), 0)
        self._write(encode_slot("", 0), find_slot(slot))
        self._free.append(slot)

    def find_dead(self) -> list[FlightRecord]:
        """The records of processes of this machine that have died; from one thread at a time, whichever."""
        return self._folder.scan()

    def close(self) -> None:
        """Remove the record: the process ends well, and all is reported."""
        if self._file >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = -1

    def _open(self, folder: Path) -> None:
        """Open the file so that it is locked under its name until this process has ended."""
        make_private_folder(folder)
        unfinished = self._path.with_suffix(UNFINISHED)
        self._file = open_private(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._write(encode_head(self._head), 0)
            unfinished.rename(self._path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise

    def _write_reached(self, at: int, reached: int) -> None:
        self._write(encode_reached(reached), at)

    def _write(self, content: bytes, at: int) -> None:
        if self._file < 0:
            return
        try:
            if os.pwrite(self._file, content, at) == len(content):
                return
            error: Exception = RecordError("the disk is full")
        except OSError as raised:
            error = raised
        self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """Go on without a record; the old one must not be read any more, as it shows too little."""
        _log.warning("what this worker sends is not recorded for the case of its death: %s", error)
        if self._file < 0:
            return
        try:
            os.ftruncate(self._file, 0)
        except OSError:
            self._remove()
        os.close(self._file)
        self._file = -1

    def _remove(self) -> None:
        """Remove a record that cannot be emptied; a process that leaves it behind must send nothing more."""
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            _log.critical("the record %s is out of date and cannot be removed: ending: %s", self._path, error)
            os._exit(EXIT_UNRECORDED)
