import base64
import struct
import zlib
from collections.abc import Iterable

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oku_core.accounting import hdr
from oku_core.accounting.histogram import BUCKETS, HIGHEST_US, Histogram, HistogramSnapshot, bucket_index

LATENCIES_US = st.integers(0, 5000) | st.integers(0, HIGHEST_US)
COUNTS = st.integers(1, 200) | st.integers(1, 10**15)
SAMPLES = st.dictionaries(LATENCIES_US, COUNTS, max_size=30)
HEADER = struct.Struct(">iiiiqqd")
SETTINGS = (0, 3, 1, HIGHEST_US, 1.0)
LAST_BUCKET = bucket_index(HIGHEST_US)

few = settings(max_examples=30)  # a histogram is 190 kB


def build_histogram(sample: dict[int, int]) -> Histogram:
    """Record each latency as often as the sample says."""
    histogram = Histogram()
    for value_us, count in sample.items():
        histogram.add(
            HistogramSnapshot(
                buckets=[bucket_index(value_us), count],
                sum_us=value_us * count,
                min_us=value_us,
                max_us=value_us,
            )
        )
    return histogram


def build_oracle(sample: dict[int, int], highest_us: int = HIGHEST_US) -> HdrHistogram:
    """Build the same with the package that others use."""
    oracle = HdrHistogram(1, highest_us, 3)
    for value_us, count in sample.items():
        assert oracle.record_value(value_us, count)
    return oracle


def pack(
    payload: bytes, *, cookies: tuple[int, int] = (0x1C849314, 0x1C849313), head: Iterable[float] = SETTINGS
) -> bytes:
    """Wrap any payload as a histogram."""
    inner = zlib.compress(HEADER.pack(cookies[1], len(payload), *head) + payload)
    return struct.pack(">ii", cookies[0], len(inner)) + inner


@few
@given(SAMPLES)
@example({})
@example({0: 1})
@example({HIGHEST_US: 1})
@example({1: 1, 3: 1})
@example({5: 2**62})
def test_histograms_travel_as_those_of_hdrhistogram(sample: dict[int, int]) -> None:
    """Both are equal byte for byte, so that histograms can be compared as text."""
    assert hdr.encode_base64(build_histogram(sample)).encode() == build_oracle(sample).encode()


@few
@given(SAMPLES)
def test_each_reads_what_the_other_writes(sample: dict[int, int]) -> None:
    """The oracle decodes our text to the same counts, and we decode the oracle's."""
    histogram = build_histogram(sample)
    oracle = HdrHistogram.decode(hdr.encode_base64(histogram))
    assert {index: count for index, count in enumerate(oracle.counts) if count} == dict(histogram.filled())
    assert oracle.get_total_count() == histogram.total
    latency = hdr.decode(base64.b64decode(build_oracle(sample).encode()))
    assert latency.buckets == build_histogram(sample).build_latency().buckets


@few
@given(SAMPLES)
@example({5: 2**62, 9: 2**56, 10: 2**55})
def test_a_decoded_histogram_has_the_counts_and_nearly_the_figures(sample: dict[int, int]) -> None:
    """Counts survive; sum, minimum and maximum are within a thousandth, and a report may carry them."""
    histogram = build_histogram(sample)
    latency = hdr.decode(hdr.encode(histogram))
    assert latency.buckets == histogram.build_latency().buckets
    assert latency.sum_us == pytest.approx(histogram.sum_us, rel=1e-3)
    assert latency.min_us == pytest.approx(histogram.min_us, rel=1e-3)
    assert latency.max_us == pytest.approx(histogram.max_us, rel=1e-3)
    assert latency.min_us <= histogram.min_us <= histogram.max_us <= latency.max_us
    assert latency.find_fault() is None


def test_other_ways_to_write_a_histogram_are_read() -> None:
    """The highest value does not change the layout, so another tool may have chosen a lower one."""
    text = build_oracle({7: 3, 50_000: 1}, highest_us=60_000_000).encode()
    assert hdr.decode(base64.b64decode(text)).buckets == [7, 3, bucket_index(50_000), 1]
    for payload in [b"\x02\x00\x02", b"\x02\x01\x02"]:
        # A single empty bucket has two forms. A count of zero, as Java writes it, is a gap of one, as C does.
        assert hdr.decode(pack(payload)).buckets == [0, 1, 2, 1]
    # Empty buckets at the end are not buckets. A writer may list them up to the end of its range.
    assert hdr.decode(pack(b"\x02\xfd\xef\x02")).buckets == [0, 1]
    # Cookies without the size of a number are read. V2 readers do not check it.
    assert hdr.decode(pack(b"\x02", cookies=(0x1C849304, 0x1C849303))).buckets == [0, 1]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no HdrHistogram: "),
        (b"\x1c\x84\x93\x14", "no HdrHistogram: "),
        (b"\x1c\x84\x93\x14\x00\x00\x00\x04nope", "no HdrHistogram: "),
        (b"\x1c\x84\x93\x14\xff\xff\xff\xff" + zlib.compress(b""), "no HdrHistogram: "),
        (struct.pack(">ii", 0x1C849314, 99) + zlib.compress(b"short"), "no HdrHistogram: "),
        (pack(b"\x02")[:-2], "no HdrHistogram: "),
        (pack(b"\x02", cookies=(0x1C849302, 0x1C849313)), "no HdrHistogram V2"),
        (pack(b"\x02", cookies=(0x1C849314, 0x1C849301)), "no HdrHistogram V2"),
        (pack(b"\x02", head=(1, 3, 1, HIGHEST_US, 1.0)), "no HdrHistogram with 3 digits"),
        (pack(b"\x02", head=(0, 2, 1, HIGHEST_US, 1.0)), "no HdrHistogram with 3 digits"),
        (pack(b"\x02", head=(0, 3, 2, HIGHEST_US, 1.0)), "no HdrHistogram with 3 digits"),
        (pack(b"\x02", head=(0, 3, 1, HIGHEST_US + 1, 1.0)), "no HdrHistogram with 3 digits"),
        (pack(b"\x02", head=(0, 3, 1, HIGHEST_US, 0.001)), "no HdrHistogram with 3 digits"),
        (pack(b"\x80"), "the histogram ends within a number"),
        (pack(b"\xff" * 8), "the histogram ends within a number"),
    ],
)
def test_what_is_not_a_histogram_of_ours_is_refused(data: bytes, message: str) -> None:
    """Another version, layout or unit, or half a histogram, is an error, not a wrong figure."""
    with pytest.raises(ValueError, match=f"^{message}"):
        hdr.decode(data)


@pytest.mark.parametrize("length", [-1, 0, 2])
def test_a_histogram_is_as_long_as_it_says(length: int) -> None:
    """It is an error if counts were cut off."""
    inner = HEADER.pack(0x1C849313, length, *SETTINGS) + b"\x02"
    data = zlib.compress(inner)
    if length == 0:
        assert hdr.decode(struct.pack(">ii", 0x1C849314, len(data)) + data) == HistogramSnapshot()
    else:
        with pytest.raises(ValueError, match=r"^the histogram is not as long as it says$"):
            hdr.decode(struct.pack(">ii", 0x1C849314, len(data)) + data)


def test_a_bucket_beyond_an_hour_is_refused() -> None:
    """The last bucket is that of one hour; a gap before a count cannot lead past it, however long it is."""
    assert hdr.decode(hdr.encode(build_histogram({HIGHEST_US: 1}))).buckets == [LAST_BUCKET, 1]
    beyond = build_oracle({2**32 - 1: 1}).encode()
    assert bucket_index(2**32 - 1) == BUCKETS - 1
    for data in (base64.b64decode(beyond), pack(b"\xff" * 9 + b"\x02")):
        with pytest.raises(ValueError, match=r"^a bucket lies beyond 1 h$"):
            hdr.decode(data)


@given(st.binary(max_size=60))
def test_any_payload_is_a_histogram_or_an_error(payload: bytes) -> None:
    """No payload causes another exception or gives a histogram that a report could not carry."""
    message = "no error"
    try:
        assert hdr.decode(pack(payload)).find_fault() is None
    except ValueError as error:
        message = str(error)
    assert message in {"no error", "the histogram ends within a number", "a bucket lies beyond 1 h"}


@given(st.binary(max_size=80))
def test_any_bytes_are_not_a_histogram(data: bytes) -> None:
    """Bytes that were not written as a histogram are not read as one."""
    with pytest.raises(ValueError, match=r"^no HdrHistogram"):
        hdr.decode(data)
