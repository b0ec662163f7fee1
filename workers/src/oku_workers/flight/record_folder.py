"""Finds the records of workers of this machine that have died.

A record that is not locked is that of a process that has ended. Each worker that finds it tells of it for a
while, so that it reaches a coordinator that was away, or whose run goes on later. Then it is removed.
"""

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

from oku_core.messaging.process_ends import MOST_RECORDS, FlightRecord
from oku_core.process.clock import Clock
from oku_core.process.private_files import open_private
from oku_workers.flight.record_file import FILE_BYTES, SUFFIX, UNFINISHED, RecordError, decode_record

_log = logging.getLogger(__name__)

TOLD_S = 120.0
"""So long a worker tells of a record."""
_UNUSED_S = 600.0
"""A file that was not finished within this time never will be."""


class RecordFolder:
    """The records of one folder; any thread may scan it, one at a time.

    Args:
        folder: where they are; it need not exist.
        boot: the boot of this machine.
        monotonic: monotonic seconds.
    """

    def __init__(self, folder: Path, boot: str, monotonic: Clock = time.monotonic) -> None:
        self._folder = folder
        self._boot = boot
        self._monotonic = monotonic
        self._found: dict[Path, tuple[FlightRecord, float]] = {}
        """Each record, and until when it is told of."""

    def scan(self) -> list[FlightRecord]:
        """Find those of processes that have died, as many as one message may have."""
        now = self._monotonic()
        present = set(self._list())
        self._found = {path: kept for path, kept in self._found.items() if path in present}
        for path in present - self._found.keys():
            if len(self._found) < MOST_RECORDS and (record := self._read(path)) is not None:
                self._found[path] = (record, now + TOLD_S)
        for path in [path for path, (_, until) in self._found.items() if until < now]:
            _remove(path)
            del self._found[path]
        return [record for record, _ in self._found.values()]

    def _list(self) -> Iterator[Path]:
        try:
            names = os.listdir(self._folder)  # noqa: PTH208  # their paths are built for records alone
        except OSError:
            return
        for name in names:
            path = self._folder / name
            if name.endswith(SUFFIX):
                yield path
            elif name.endswith(UNFINISHED) and _is_old(path):
                _remove(path)

    def _read(self, path: Path) -> FlightRecord | None:
        """The record of a process that has ended; None if it has not, or if it is worth nothing."""
        try:
            file = open_private(path, os.O_RDONLY)
        except OSError:
            return None  # gone, or not ours
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return decode_record(os.pread(file, FILE_BYTES, 0), self._boot)
        except BlockingIOError:
            return None
        except (OSError, RecordError) as error:
            _log.info("the record %s is worth nothing: %s", path, error)
            _remove(path)
            return None
        finally:
            os.close(file)


def _is_old(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > _UNUSED_S
    except OSError:
        return False


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("the record %s cannot be removed: %s", path, error)
