"""The file of a flight recorder: a head, then a slot of fixed size for each lease in hand.

The file is written without waiting for the disk: it is to survive the death of its process, not of the
machine. So the head names the boot, and a record of another boot is worth nothing. Each write is one call of
the kernel within one page, which a kill does not divide.

A record without a lock belongs to a process that has ended. Each worker that finds it reports it for a while,
so that it reaches a coordinator that was away, or whose run goes on later. Then it is removed.
"""

import fcntl
import logging
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from oku_core.json_reader import JsonDecoder, JsonError
from oku_core.messaging.lease import read_lease_number, read_lease_run
from oku_core.messaging.process_ends import MOST_RECORDED_LEASES, MOST_RECORDS, FlightRecord
from oku_core.process.clock import Clock
from oku_core.process.private_files import open_private

_log = logging.getLogger(__name__)

VERSION = 1
HEAD_BYTES, SLOT_BYTES = 512, 128
_REACHED = struct.Struct("<q")
_ID_BYTES = SLOT_BYTES - _REACHED.size
FILE_BYTES = HEAD_BYTES + SLOT_BYTES * MOST_RECORDED_LEASES
"""The longest file that is read."""
SUFFIX, UNFINISHED = ".flight", ".new"
"""Suffixes of records, and of a record that must not be read yet."""
TOLD_S = 120.0
"""How long a worker reports a record."""
_UNUSED_S = 600.0
"""A file that was not finished within this time never will be."""


class RecordError(Exception):
    """A record cannot be kept, or read."""


class RecordHead(msgspec.Struct, frozen=True, kw_only=True):
    """The process of a record, and the leases that it has forgotten.

    Attributes:
        version: of the format.
        boot: the boot of the machine in which it was written.
        incarnation: the process that has written it.
        forgotten_run: as in `FlightRecord`.
        forgotten_number: as in `FlightRecord`.
    """

    version: int = VERSION
    boot: str
    incarnation: str
    forgotten_run: str = ""
    forgotten_number: int = -1

    def forget(self, lease: str) -> "RecordHead":
        """The head of a record without a lease."""
        run, number = read_lease_run(lease), read_lease_number(lease)
        if run == self.forgotten_run:
            number = max(number, self.forgotten_number)
        return msgspec.structs.replace(self, forgotten_run=run or lease, forgotten_number=number)


_HEAD: JsonDecoder[RecordHead] = JsonDecoder(RecordHead)


def encode_head(head: RecordHead) -> bytes:
    """Encode a head; `RecordError` if it is too long."""
    return _pad(msgspec.json.encode(head), HEAD_BYTES)


def encode_slot(lease: str, reached: int) -> bytes:
    """Encode the slot of a lease, or with an empty id a free one; `RecordError` if the id is too long."""
    return _REACHED.pack(reached) + _pad(lease.encode(), _ID_BYTES)


encode_reached = _REACHED.pack
"""Encodes the beginning of a slot, which changes as its lease goes on."""


def find_slot(number: int) -> int:
    """Where the slot of a number begins."""
    return HEAD_BYTES + number * SLOT_BYTES


def decode_record(content: bytes, boot: str) -> FlightRecord:
    """Decode a file of this boot; `RecordError` if it is none."""
    try:
        head = _HEAD.decode(content[:HEAD_BYTES].rstrip(b"\0"))
    except JsonError as error:
        raise RecordError(f"its head cannot be read: {error}") from error
    if head.version != VERSION or head.boot != boot or not boot:
        raise RecordError("it is of another version or another boot")
    reached: dict[str, int] = {}
    for at in range(HEAD_BYTES, len(content) - SLOT_BYTES + 1, SLOT_BYTES):
        if lease := content[at + _REACHED.size : at + SLOT_BYTES].rstrip(b"\0").decode(errors="replace"):
            (reached[lease],) = _REACHED.unpack_from(content, at)
    record = FlightRecord(
        incarnation=head.incarnation,
        reached=reached,
        forgotten_run=head.forgotten_run,
        forgotten_number=head.forgotten_number,
    )
    if fault := record.find_fault():
        raise RecordError(fault)
    return record


def build_record_path(folder: Path, incarnation: str) -> Path:
    """Where the record of a process is."""
    return folder / f"{incarnation}{SUFFIX}"


def _pad(content: bytes, size: int) -> bytes:
    if len(content) > size:
        raise RecordError(f"{len(content)} bytes do not fit into {size}")
    return content.ljust(size, b"\0")


class RecordFolder:
    """The records of one folder; any thread may scan it, one at a time.

    Args:
        folder: where they are; it need not exist.
    """

    def __init__(self, folder: Path, boot: str, monotonic: Clock = time.monotonic) -> None:
        self._folder = folder
        self._boot = boot
        self._monotonic = monotonic
        self._found: dict[Path, tuple[FlightRecord, float]] = {}
        """Each record, and until when it is reported."""

    def scan(self) -> list[FlightRecord]:
        """Find the records of dead processes, at most as many as one message may have."""
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
