"""The file of a flight recorder: a head, then a slot of fixed size for each lease in hand.

The file is written without waiting for the disk: it is to survive the death of its process, not that of the
machine. So the head names the boot, and a record of another boot is worth nothing. Each write is one call of
the kernel within one page, which a kill does not divide.
"""

import struct
from pathlib import Path

import msgspec

from oku_core.json_reader import JsonDecoder, JsonError
from oku_core.messaging.lease import read_lease_number, read_lease_run
from oku_core.messaging.process_ends import MOST_RECORDED_LEASES, FlightRecord

VERSION = 1
HEAD_BYTES, SLOT_BYTES = 512, 128
_REACHED = struct.Struct("<q")
_ID_BYTES = SLOT_BYTES - _REACHED.size
FILE_BYTES = HEAD_BYTES + SLOT_BYTES * MOST_RECORDED_LEASES
"""The longest file that is read."""
SUFFIX, UNFINISHED = ".flight", ".new"
"""Of the names of records, and of one that nobody is to read yet."""


class RecordError(Exception):
    """A record cannot be kept, or read."""


class RecordHead(msgspec.Struct, frozen=True, kw_only=True):
    """Whose record it is, and which leases it tells of no longer.

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
        """The head of a record that tells of a lease no longer."""
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
