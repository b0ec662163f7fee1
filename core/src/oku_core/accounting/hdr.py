"""The exchange format of HdrHistogram, V2 compressed, which other tools read and write.

The outer part is the cookie 0x1c849314, the length and zlib data. The inner part is the cookie 0x1c849313,
payload length, normalising offset, significant digits, lowest and highest value, and ratio; then come the
counts as ZigZag LEB128 numbers, where a negative number stands for that many empty buckets (HdrHistogram, V2
encoding). The last hex digit but one of a cookie, 1, is where V1 has the size of a number; every V2 writer
sets it and no reader checks it. The package `hdrhistogram` writes the same bytes if it uses the same zlib.
"""

import base64
import struct
import zlib
from collections.abc import Iterator
from functools import lru_cache

from oku_core.accounting.histogram import (
    HIGHEST_US,
    Histogram,
    HistogramSnapshot,
    bucket_bounds_us,
    bucket_index,
)

_OUTER_COOKIE = 0x1C849314
_INNER_COOKIE = 0x1C849313
_COOKIE_MASK = ~0xF0
_OUTER = struct.Struct(">ii")
_INNER = struct.Struct(">iiiiqqd")
_SETTINGS = [0, 3, 1]
"""Normalising offset, significant digits and lowest value, which make the layout of our buckets."""
_LAST_INDEX = bucket_index(HIGHEST_US)


def encode(histogram: Histogram) -> bytes:
    """Encode a histogram in V2 form, in µs; that form has no place for its exact sum, minimum and maximum."""
    payload = b"".join(map(_encode_number, _list_numbers(histogram)))
    inner = _INNER.pack(_INNER_COOKIE, len(payload), *_SETTINGS, HIGHEST_US, 1.0) + payload
    compressed = zlib.compress(inner)
    return _OUTER.pack(_OUTER_COOKIE, len(compressed)) + compressed


def encode_base64(histogram: Histogram) -> str:
    """Encode a histogram in the base64 that `.hlog` files and the decoders of other languages expect."""
    return base64.b64encode(encode(histogram)).decode("ascii")


def decode(data: bytes) -> HistogramSnapshot:
    """Decode a histogram in V2 form.

    Sum, minimum and maximum are computed from the buckets, the sum from their middles, so they are exact only
    within the error of the layout.

    Raises:
        ValueError: the data is not a V2 histogram of our range.
    """
    try:
        cookie, length = _OUTER.unpack_from(data)
        inner = zlib.decompress(data[_OUTER.size : _OUTER.size + length])
        inner_cookie, payload_length, *settings, highest, ratio = _INNER.unpack_from(inner)
    except (struct.error, zlib.error) as error:
        raise ValueError(f"no HdrHistogram: {error}") from error
    if (cookie ^ _OUTER_COOKIE) & _COOKIE_MASK or (inner_cookie ^ _INNER_COOKIE) & _COOKIE_MASK:
        raise ValueError("no HdrHistogram V2")
    if (settings, ratio) != (_SETTINGS, 1.0) or highest > HIGHEST_US:
        raise ValueError("no HdrHistogram with 3 digits up to 1 h in µs")
    payload = inner[_INNER.size : _INNER.size + payload_length]
    if len(payload) != payload_length:
        raise ValueError("the histogram is not as long as it says")
    return _build_latency(_read_buckets(payload))


def _read_buckets(payload: bytes) -> list[int]:
    buckets: list[int] = []
    index = position = 0
    while position < len(payload):
        number, position = _get(payload, position)
        if number > 0:
            buckets += (index, number)
            if index > _LAST_INDEX:
                raise ValueError("a bucket lies beyond 1 h")
        index += -number if number < 0 else 1
    return buckets


def _build_latency(buckets: list[int]) -> HistogramSnapshot:
    if not buckets:
        return HistogramSnapshot()
    bounds = [bucket_bounds_us(index) for index in buckets[0::2]]
    total = sum(n * (low + high) // 2 for n, (low, high) in zip(buckets[1::2], bounds, strict=True))
    highest = min(bounds[-1][1], HIGHEST_US)
    return HistogramSnapshot(buckets=buckets, sum_us=total, min_us=bounds[0][0], max_us=highest)


def _list_numbers(histogram: Histogram) -> Iterator[int]:
    next_index = 0
    for index, count in histogram.filled():
        if gap := index - next_index:
            yield -gap
        yield count
        next_index = index + 1


@lru_cache(maxsize=1 << 14)
def _encode_number(number: int) -> bytes:
    """Remembers numbers: an account is encoded with every transaction, and most of its numbers are small."""
    value = (number << 1) ^ (number >> 63)
    digits = bytearray()
    while value >= 0x80 and len(digits) < 8:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    digits.append(value & 0xFF)  # the ninth byte carries eight bits
    return bytes(digits)


def _get(payload: bytes, position: int) -> tuple[int, int]:
    value = 0
    for byte_index in range(9):
        if position >= len(payload):
            raise ValueError("the histogram ends within a number")
        byte = payload[position]
        position += 1
        if byte_index == 8:
            value |= byte << 56
        else:
            value |= (byte & 0x7F) << (7 * byte_index)
            if byte < 0x80:
                break
    return (value >> 1) ^ -(value & 1), position
