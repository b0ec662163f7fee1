import struct
from collections.abc import Iterator

import pytest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import BucketSpan, NativeHistogram, Sample

from oku_coordinator.telemetry.prometheus.protobuf_format import CONTENT_TYPE, is_accepted, write_families

OF_PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
OF_PROMETHEUS_3_WITH_NATIVE_HISTOGRAMS = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;"
    f"escaping=allow-utf-8;q=0.7,{OF_PROMETHEUS_3}"
)
Fields = dict[int, list[int | bytes]]


def read_number(data: Iterator[int]) -> int:
    """A variable-length number (protobuf.dev/programming-guides/encoding)."""
    number, shift = 0, 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return number


def read_message(message: int | bytes) -> Fields:
    """The values of a message by the number of their field, as they are written."""
    assert isinstance(message, bytes)
    data, fields = iter(message), Fields()
    for byte in data:
        key = read_number(iter([byte])) if byte < 0x80 else byte & 0x7F | read_number(data) << 7
        size = {0: 0, 1: 8, 2: 0}[key & 7]
        if key & 7 == 2:
            size = read_number(data)
        value = read_number(data) if key & 7 == 0 else bytes(next(data) for _ in range(size))
        fields.setdefault(key >> 3, []).append(value)
    return fields


def read_double(value: int | bytes) -> float:
    """A number with a fraction."""
    assert isinstance(value, bytes)
    number: float = struct.unpack("<d", value)[0]
    return number


def read_signed(value: int | bytes) -> int:
    """A number that may be negative, in zigzag order."""
    assert isinstance(value, int)
    return value >> 1 ^ -(value & 1)


def write(family: Metric) -> Fields:
    """The one message that a family of metrics is, without the length that precedes it."""
    written = write_families([family])
    data = iter(written)
    length = read_number(data)
    message = bytes(data)
    assert len(message) == length
    return read_message(message)


@pytest.mark.parametrize(
    ("accept", "is_wanted"),
    [
        ("", False),
        ("*/*", False),
        (OF_PROMETHEUS_3, False),
        (OF_PROMETHEUS_3_WITH_NATIVE_HISTOGRAMS, True),
        (CONTENT_TYPE, True),
        (CONTENT_TYPE.replace("application", "Application").replace("encoding", "Encoding"), True),
        (f"text/plain;q=0.5, {CONTENT_TYPE};q=0.4", False),
        (f"{CONTENT_TYPE};q=0", False),
        (f"{CONTENT_TYPE};q=nan", False),
        (f"{CONTENT_TYPE};q=much", False),
        (CONTENT_TYPE.replace("delimited", "text"), False),
        (CONTENT_TYPE.replace("MetricFamily", "Metric"), False),
        (CONTENT_TYPE.replace("=delimited", '="delimited"'), True),
        ("application/vnd.google.protobuf", False),
        (";;,,=;q=", False),
    ],
)  # fmt: skip
def test_the_format_is_written_only_to_those_who_ask_for_it(accept: str, *, is_wanted: bool) -> None:
    """Text is for all others: for people, and for a Prometheus that takes no native histograms."""
    assert is_accepted(accept) is is_wanted


def test_a_counter_has_its_whole_name_and_the_time_of_its_beginning() -> None:
    """The library leaves `_total` out of the name, and shows the time as a metric of its own."""
    family = CounterMetricFamily("oku_things", "Things that were counted.", labels=["kind"])
    family.add_metric(["ä"], 3, created=12.25)
    fields = write(family)
    assert (fields[1], fields[2], fields[3]) == ([b"oku_things_total"], [b"Things that were counted."], [0])
    metric = read_message(fields[4][0])
    assert read_message(metric[1][0]) == {1: [b"kind"], 2: ["ä".encode()]}
    counter = read_message(metric[3][0])
    assert read_double(counter[1][0]) == 3
    assert read_message(counter[3][0]) == {1: [12], 2: [250_000_000]}


def test_each_combination_of_labels_is_a_metric() -> None:
    """A gauge without labels has none."""
    family = GaugeMetricFamily("oku_level", "How full.", labels=["tank"])
    for tank, level in (("a", -1.5), ("b", 0.0)):
        family.add_metric([tank], level)
    fields = write(family)
    assert fields[3] == [1]
    gauges = [read_message(read_message(metric)[2][0]) for metric in fields[4]]
    assert [read_double(gauge[1][0]) for gauge in gauges] == [-1.5, 0.0]
    [metric] = write(GaugeMetricFamily("oku_level", "How full.", value=7))[4]
    assert list(read_message(metric)) == [2]


def test_a_histogram_has_its_classic_and_its_native_buckets() -> None:
    """Both are of the same times, so they have their count and their sum once."""
    family = HistogramMetricFamily("oku_seconds", "Times.", labels=["target"])
    family.add_metric(["a"], [("0.5", 2), ("+Inf", 9)], 30.5)
    native = NativeHistogram(9, 30.5, 5, 0.001, 2, [BucketSpan(-3, 2), BucketSpan(4, 1)], None, [4, -3, 1])
    family.samples.append(Sample("oku_seconds", {"target": "a"}, 9, native_histogram=native))
    fields = write(family)
    assert fields[3] == [4]
    [metric] = fields[4]
    histogram = read_message(read_message(metric)[7][0])
    assert (histogram[1], read_double(histogram[2][0])) == ([9], 30.5)
    buckets = [read_message(bucket) for bucket in histogram[3]]
    assert [(bucket[1], read_double(bucket[2][0])) for bucket in buckets] == [([2], 0.5), ([9], float("inf"))]
    assert (read_signed(histogram[5][0]), read_double(histogram[6][0]), histogram[7]) == (5, 0.001, [2])
    spans = [read_message(span) for span in histogram[12]]
    assert [(read_signed(span[1][0]), span[2]) for span in spans] == [(-3, [2]), (4, [1])]
    assert [read_signed(delta) for delta in histogram[13]] == [4, -3, 1]


def test_families_follow_each_other() -> None:
    """Each is preceded by its length."""
    family = GaugeMetricFamily("oku_level", "How full.", value=7)
    assert write_families([family, family]) == write_families([family]) * 2
    assert write_families([]) == b""
