"""The torn record that a killed Loki may leave in its write-ahead log.

Loki writes a record in pages of 32 KiB (Prometheus, tsdb/wlog), so a kill may leave only its first parts. At
every start the reader ends there and ignores all later segments (Loki, pkg/ingester/recovery.go), until a
checkpoint, made every five minutes, replaces the torn segment. Lines that Loki has confirmed in between are
lost when it ends again. Tests of Oku's own delivery remove the torn record.
"""

from pathlib import Path

_PAGE_BYTES, _HEADER_BYTES = 32 * 1024, 7
_TYPE_BITS = 7
_PADDING, _FIRST, _MIDDLE = 0, 2, 3


def remove_torn_record(folder: Path) -> bool:
    """Remove a torn record from the end of the newest segment in a folder; whether there was one."""
    segments = sorted(path for path in folder.glob("*") if path.name.isdigit())
    if not segments:
        return False
    content = segments[-1].read_bytes()
    whole_bytes = measure_whole_bytes(content)
    if whole_bytes < len(content):
        segments[-1].write_bytes(content[:whole_bytes])
    return whole_bytes < len(content)


def measure_whole_bytes(segment: bytes) -> int:
    """The bytes of a segment up to the end of its last whole record."""
    at = whole_bytes = 0
    is_in_record = False
    while at < len(segment):
        kind = segment[at] & _TYPE_BITS
        if kind == _PADDING:  # up to the end of the page, also between two parts of a record
            at += _PAGE_BYTES - at % _PAGE_BYTES
        else:
            at += _HEADER_BYTES + int.from_bytes(segment[at + 1 : at + 3], "big")
            is_in_record = kind in {_FIRST, _MIDDLE}
        if at <= len(segment) and not is_in_record:
            whole_bytes = at
    return whole_bytes
