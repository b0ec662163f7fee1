"""The last whole record in a segment of Loki's write-ahead log, at whatever byte a kill has cut it."""

from itertools import pairwise
from pathlib import Path

from tests.kit.loki.torn_record import measure_whole_bytes, remove_torn_record

PAGE_BYTES = 32 * 1024
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4


def build_part(kind: int, length: int) -> bytes:
    """A part of a record, with a checksum that is not looked at."""
    return bytes([kind]) + length.to_bytes(2, "big") + bytes(4) + b"x" * length


def build_segment() -> tuple[bytes, list[int]]:
    """Three records, of which the second fills two pages and a half, and where each ends."""
    first = build_part(WHOLE, 10_000)
    pad = bytes(5)  # too few bytes for the header of a part
    second = build_part(FIRST, PAGE_BYTES - len(first) - 7 - len(pad)) + pad
    second += build_part(MIDDLE, PAGE_BYTES - 7) + build_part(LAST, 15_000)
    third = build_part(WHOLE, 300)
    ends = [0, len(first), len(first + second), len(first + second + third)]
    return first + second + third, ends


def test_a_torn_record_ends_a_segment_before_it() -> None:
    """No whole record is lost, and no part of a torn one stays."""
    segment, ends = build_segment()
    for start, end in pairwise(ends):
        for cut in {*range(start, end, 499), start + 1, start + 6, end - 1}:
            assert measure_whole_bytes(segment[:cut]) == start, cut
    assert measure_whole_bytes(segment) == ends[-1] == len(segment)


def test_only_the_newest_segment_is_cut(tmp_path: Path) -> None:
    """A whole one stays as it is, and so does a folder without any."""
    assert not remove_torn_record(tmp_path)
    segment, ends = build_segment()
    for name in ("00000000", "00000001"):
        (tmp_path / name).write_bytes(segment[:-1])
    assert remove_torn_record(tmp_path)
    assert not remove_torn_record(tmp_path)
    sizes = [(tmp_path / name).stat().st_size for name in ("00000000", "00000001")]
    assert sizes == [len(segment) - 1, ends[-2]]
