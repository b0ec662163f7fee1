from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import pairwise

import msgspec
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.histograms import make_histogram, make_latency

from oku_core.accounting.histogram import (
    BUCKETS,
    HIGHEST_US,
    Histogram,
    HistogramSnapshot,
    bucket_bounds_us,
    bucket_index,
    coarsen,
    find_rank,
    merge,
    subtract,
)

# Small latencies, powers of two and everything up to an hour, each kind equally likely.
LATENCIES_US = (
    st.integers(0, 5000)
    | st.builds(lambda bits, offset: max(0, (1 << bits) + offset), st.integers(0, 31), st.integers(-2, 2))
    | st.integers(0, HIGHEST_US)
)
SAMPLES = st.lists(LATENCIES_US, max_size=30)
LAST_BUCKET = bucket_index(HIGHEST_US)

few = settings(max_examples=30)  # a histogram is 190 kB


def build_oracle(values_us: Iterable[int]) -> HdrHistogram:
    """Build the same with the package that others use."""
    oracle = HdrHistogram(1, HIGHEST_US, 3)
    for value_us in values_us:
        assert oracle.record_value(value_us)
    return oracle


def read_figures(histogram: Histogram) -> tuple[dict[int, int], int, int, int, int]:
    """Read everything that a histogram knows."""
    buckets = dict(histogram.filled())
    return buckets, histogram.total, histogram.sum_us, histogram.min_us, histogram.max_us


def test_the_layout_has_as_many_buckets_as_hdrhistogram() -> None:
    """One hour in µs with three digits takes 23,552 buckets."""
    assert HIGHEST_US == 3600 * 10**6
    assert build_oracle([]).counts_len == BUCKETS == 23_552
    # The buckets lie side by side.
    next_us = 0
    for index in range(LAST_BUCKET + 1):
        low_us, high_us = bucket_bounds_us(index)
        assert low_us == next_us
        assert bucket_index(low_us) == bucket_index(high_us) == index
        next_us = high_us + 1
    assert next_us > HIGHEST_US


@given(LATENCIES_US)
def test_a_latency_has_the_bucket_that_hdrhistogram_gives_it(value_us: int) -> None:
    """Index and both ends of the bucket agree with the oracle."""
    oracle = build_oracle([])
    index = bucket_index(value_us)
    assert index == oracle.get_counts_array_index(value_us)
    assert bucket_bounds_us(index) == (
        oracle.get_lowest_equivalent_value(value_us),
        oracle.get_highest_equivalent_value(value_us),
    )
    # A latency is known to a thousandth.
    low_us, high_us = bucket_bounds_us(bucket_index(value_us))
    assert low_us <= value_us <= high_us
    assert high_us - low_us <= value_us / 1000
    if value_us < 2048:
        assert low_us == high_us


FULL = HistogramSnapshot(
    buckets=[number for index in range(LAST_BUCKET + 1) for number in (index, 1)],
    sum_us=sum(bucket_bounds_us(index)[0] for index in range(LAST_BUCKET + 1)),
    min_us=0,
    max_us=HIGHEST_US,
)


@few
@given(SAMPLES, SAMPLES, st.integers(0, 3), st.sampled_from([1, 200, 2**15, 2**31, 2**61]))
def test_a_sparse_histogram_and_a_dense_one_count_alike(
    before: list[int], after: list[int], full: int, times: int
) -> None:
    """Whichever form it has, and however large counts are, each bucket holds what was added to it."""
    histogram, counts = Histogram(), dict[int, int]()
    for latency in (*[make_latency(before)] * 2, *[FULL] * full):
        histogram.add(latency)
        for index, count in latency.filled():
            counts[index] = counts.get(index, 0) + count
    grown = histogram.copy()
    for value_us in after:
        grown.record(value_us)
    assert histogram.is_dense == (full >= 3)
    assert list(histogram.filled()) == sorted(counts.items())
    for value_us in after:
        latency = make_latency([value_us])
        grown.add(msgspec.structs.replace(latency, buckets=[latency.buckets[0], times]))
        index = bucket_index(value_us)
        counts[index] = counts.get(index, 0) + 1 + times
    assert list(grown.filled()) == sorted(counts.items())
    cuts = [0, 0, 1, 500, 2048, 2049, 9000, BUCKETS]
    assert grown.count_between(cuts) == [
        sum(count for index, count in counts.items() if low <= index < high) for low, high in pairwise(cuts)
    ]


@few
@given(SAMPLES.filter(bool), st.integers(0, 3), st.sampled_from([1, 200, 2**15, 2**31, 2**61]))
def test_a_packed_histogram_is_unpacked_as_it_was(values_us: list[int], full: int, times: int) -> None:
    """In either form, and with large counts; it can still grow."""
    histogram = make_histogram(values_us)
    for _ in range(full):
        histogram.add(FULL)
    first = histogram.build_latency().buckets[0]
    known = {"min_us": histogram.min_us, "max_us": histogram.max_us}
    histogram.add(msgspec.structs.replace(FULL, buckets=[first, times], **known))
    unpacked = Histogram.unpack(
        histogram.pack(), sum_us=histogram.sum_us, min_us=histogram.min_us, max_us=histogram.max_us
    )
    assert read_figures(unpacked) == read_figures(histogram)
    for grown in (unpacked, histogram):
        grown.record(1234)
    assert read_figures(unpacked) == read_figures(histogram)


@pytest.mark.parametrize(
    "packed",
    [
        b"", b"B", b"H", b"Z\0\0\1", b"\xff\0\0\1", b"d" + bytes(10), b"B\0\0", b"B\0\0\0", b"B\0\0\1\1\0",
        b"B\1\0\0\0\1\1", b"B\1\0\1\0\1\1", b"B\xff\xff\1",
    ],
)  # fmt: skip
def test_what_is_no_packed_histogram_is_refused(packed: bytes) -> None:
    """It is cut short, of another type, does not rise, is out of range, or has empty buckets."""
    with pytest.raises(ValueError, match="packed histogram"):
        Histogram.unpack(packed, sum_us=0, min_us=0, max_us=0)


@few
@given(SAMPLES, SAMPLES)
def test_histograms_add_to_each_other_as_their_snapshots_do(here_us: list[int], there_us: list[int]) -> None:
    """The other one is not changed by what is recorded afterwards."""
    both, other = Histogram.build_dense(), make_histogram(there_us)
    assert read_figures(both) == read_figures(Histogram())
    both.add(make_histogram(here_us))
    both.add(other)
    assert read_figures(both) == read_figures(make_histogram([*here_us, *there_us]))
    both.record(7)
    assert read_figures(other) == read_figures(make_histogram(there_us))


@pytest.mark.parametrize(
    ("value_us", "counted_us"), [(-5, 0), (HIGHEST_US + 1, HIGHEST_US), (10**18, HIGHEST_US)]
)
def test_a_latency_outside_the_range_counts_at_its_end(value_us: int, counted_us: int) -> None:
    """The latency is not lost, and sum, minimum and maximum still agree with the buckets."""
    histogram = make_histogram([value_us, 10])
    assert read_figures(histogram) == read_figures(make_histogram([counted_us, 10]))
    assert histogram.build_latency().find_fault() is None


@few
@given(values_us=SAMPLES.filter(bool), part=st.integers(1, 1024))
def test_a_quantile_is_the_bucket_of_hdrhistogram_at_its_rank(values_us: list[int], part: int) -> None:
    """The oracle rounds ranks, and so finds too few requests at times; nothing exceeds the exact maximum."""
    quantile_us = make_histogram(values_us).quantile_us(part / 1024)
    rank = find_rank(part / 1024, len(values_us))
    at_rank_us = build_oracle(values_us).get_value_at_percentile(100 * rank / len(values_us))
    assert quantile_us == min(at_rank_us, max(values_us))


@few
@given(values_us=SAMPLES.filter(bool), part=st.integers(0, 1024))
def test_a_quantile_is_within_a_thousandth_of_the_exact_one(values_us: list[int], part: int) -> None:
    """The quantile is never below the value of that rank, and above it by less than the width of a bucket."""
    rank = max(1, -(-part * len(values_us) // 1024))
    exact_us = sorted(values_us)[rank - 1]
    assert exact_us <= make_histogram(values_us).quantile_us(part / 1024) <= exact_us * 1.001


@few
@given(values_us=SAMPLES)
def test_quantiles_rise_to_the_maximum(values_us: list[int]) -> None:
    """A higher quantile is never smaller; the last one, and anything beyond it, is the exact maximum."""
    histogram = make_histogram(values_us)
    quantiles_us = [histogram.quantile_us(quantile) for quantile in (0, 0.5, 0.9, 0.99, 0.999, 1, 1.5)]
    assert quantiles_us == sorted(quantiles_us)
    assert quantiles_us[-1] == quantiles_us[-2] == max(values_us, default=0)


def test_at_least_the_share_of_a_quantile_does_not_exceed_it() -> None:
    """A float is the decimal number as it is written: 99 % of 100 requests are 99, of 101 they are 100."""
    cases = (
        (0.99, 100, 99), (0.99, 101, 100), (0.99, 149, 148), (0.99, 151, 150), (0.07, 100, 7), (0.5, 3, 2),
        (0.999, 1000, 999), (0.999, 1001, 1000), (0.95, 20, 19), (0.9, 11, 10), (0.0, 5, 1), (1.0, 5, 5),
        (1.5, 5, 5), (0.5, 0, 0), (Fraction(99, 100), 101, 100),
    )  # fmt: skip
    for quantile, total, rank in cases:
        assert find_rank(quantile, total) == rank, (quantile, total)
    # Quantiles stay right for very many requests.
    histogram = Histogram()
    histogram.add(
        HistogramSnapshot(buckets=[1, 10**15 - 1000, 7, 1000], sum_us=10**15 + 6000, min_us=1, max_us=7)
    )
    assert histogram.quantile_us(0.999_999) == 1
    assert histogram.quantile_us(1 - 1e-12) == 1
    assert histogram.quantile_us(1 - 9e-13) == 7


@few
@given(st.lists(SAMPLES, max_size=4))
def test_merging_gives_what_recording_all_into_one_gives(parts: list[list[int]]) -> None:
    """Nothing is lost or rounded when histograms of many workers become one."""
    merged = Histogram()
    for part in parts:
        merged.add(make_latency(part))
    assert read_figures(merged) == read_figures(
        make_histogram([value_us for part in parts for value_us in part])
    )


@few
@given(data=st.data(), parts=st.lists(SAMPLES, min_size=2, max_size=4))
def test_merging_is_free_of_order_and_grouping(data: st.DataObject, parts: list[list[int]]) -> None:
    """The parts give the same histogram in any order, and with any of them merged beforehand."""
    one_by_one = Histogram()
    for part in parts:
        one_by_one.add(make_latency(part))
    shuffled = [make_latency(part) for part in data.draw(st.permutations(parts))]
    border = data.draw(st.integers(0, len(parts)))
    grouped = Histogram()
    for group in (shuffled[border:], shuffled[:border]):
        inner = Histogram()
        for latency in group:
            inner.add(latency)
        grouped.add(inner.build_latency())
    assert read_figures(grouped) == read_figures(one_by_one)


@few
@given(SAMPLES)
def test_a_histogram_counts_as_hdrhistogram_does(values_us: list[int]) -> None:
    """All counts agree with the oracle; total, sum, minimum, maximum and mean are exact."""
    histogram = make_histogram(values_us)
    counts = dict(histogram.filled())
    assert [counts.get(index, 0) for index in range(BUCKETS)] == list(build_oracle(values_us).counts)
    assert histogram.total == len(values_us)
    assert histogram.sum_us == sum(values_us)
    assert histogram.min_us == min(values_us, default=0)
    assert histogram.max_us == max(values_us, default=0)
    assert histogram.mean_us == (sum(values_us) / len(values_us) if values_us else 0)
    # A histogram survives the wire. Its JSON has everything, and only the buckets that hold something.
    latency = msgspec.json.decode(msgspec.json.encode(histogram.build_latency()), type=HistogramSnapshot)
    assert latency.total == len(values_us)
    assert len(latency.buckets) == 2 * len({bucket_index(value_us) for value_us in values_us})
    assert latency.find_fault() is None
    received = Histogram()
    received.add(latency)
    assert read_figures(received) == read_figures(histogram)


def test_a_histogram_of_nothing_is_empty() -> None:
    """It has no buckets and no figures, like the histogram of a report without responses."""
    assert (
        Histogram().build_latency()
        == HistogramSnapshot()
        == HistogramSnapshot(buckets=[], sum_us=0, min_us=0, max_us=0)
    )
    assert HistogramSnapshot().total == 0
    # A histogram lists what it holds. Empty buckets are not listed.
    assert list(make_histogram([5, 1, 5]).filled()) == [(1, 1), (5, 2)]
    assert list(Histogram().filled()) == []


@pytest.mark.parametrize(
    ("latency", "fault"),
    [
        (HistogramSnapshot(buckets=[5]), "buckets do not come in pairs"),
        (HistogramSnapshot(buckets=[5, 0], min_us=5, max_us=5), "a bucket holds no positive count"),
        (
            HistogramSnapshot(buckets=[5, -1], sum_us=-5, min_us=5, max_us=5),
            "a bucket holds no positive count",
        ),
        (
            HistogramSnapshot(buckets=[6, 1, 5, 1], sum_us=11, min_us=6, max_us=5),
            "bucket indices do not rise",
        ),
        (
            HistogramSnapshot(buckets=[5, 1, 5, 1], sum_us=10, min_us=5, max_us=5),
            "bucket indices do not rise",
        ),
        (HistogramSnapshot(buckets=[-1, 1], sum_us=1, min_us=1, max_us=1), "a bucket index is out of range"),
        (HistogramSnapshot(buckets=[LAST_BUCKET + 1, 1]), "a bucket index is out of range"),
        (HistogramSnapshot(buckets=[10**30, 1]), "a bucket index is out of range"),
        (HistogramSnapshot(sum_us=1), "an empty histogram has figures"),
        (HistogramSnapshot(min_us=1), "an empty histogram has figures"),
        (HistogramSnapshot(max_us=1), "an empty histogram has figures"),
        (
            HistogramSnapshot(buckets=[5, 1], sum_us=5, min_us=4, max_us=5),
            "the minimum is not in the first bucket",
        ),
        (
            HistogramSnapshot(buckets=[0, 1], sum_us=0, min_us=-1, max_us=0),
            "the minimum is not in the first bucket",
        ),
        (
            HistogramSnapshot(buckets=[bucket_index(-HIGHEST_US), 1], min_us=-HIGHEST_US),
            "the minimum is not in the first bucket",
        ),
        (
            HistogramSnapshot(buckets=[5, 1], sum_us=5, min_us=5, max_us=6),
            "the maximum is not in the last bucket",
        ),
        (
            HistogramSnapshot(buckets=[5, 1], sum_us=5, min_us=5, max_us=10**30),
            "the maximum is not in the last bucket",
        ),
        (
            HistogramSnapshot(buckets=[bucket_index(4000), 2], sum_us=8001, min_us=4001, max_us=4000),
            "the maximum is not in the last bucket",
        ),
        (
            HistogramSnapshot(buckets=[5, 2], sum_us=9, min_us=5, max_us=5),
            "the sum is not that of the buckets",
        ),
        (
            HistogramSnapshot(buckets=[5, 2], sum_us=11, min_us=5, max_us=5),
            "the sum is not that of the buckets",
        ),
    ],
)
def test_a_histogram_that_cannot_be_is_named(latency: HistogramSnapshot, fault: str) -> None:
    """Each way to be invalid has its own sentence."""
    assert latency.find_fault() == fault


@few
@given(data=st.data(), values_us=SAMPLES.filter(bool))
def test_a_forged_figure_is_found(data: st.DataObject, values_us: list[int]) -> None:
    """Sum, minimum and maximum cannot leave what the buckets allow."""
    latency = make_latency(values_us)
    first_us, last_us = bucket_bounds_us(latency.buckets[0]), bucket_bounds_us(latency.buckets[-2])
    forgeries: list[Callable[[], HistogramSnapshot]] = [
        lambda: msgspec.structs.replace(latency, min_us=first_us[0] - 1),
        lambda: msgspec.structs.replace(latency, min_us=last_us[1] + 1),
        lambda: msgspec.structs.replace(latency, max_us=first_us[0] - 1),
        lambda: msgspec.structs.replace(latency, max_us=last_us[1] + 1),
        lambda: msgspec.structs.replace(latency, sum_us=len(values_us) * first_us[0] - 1),
        lambda: msgspec.structs.replace(latency, sum_us=len(values_us) * last_us[1] + 1),
    ]
    forged = data.draw(st.sampled_from(forgeries))()
    assert forged.find_fault() is not None


@given(st.lists(st.integers(0, HIGHEST_US), max_size=200))
def test_a_coarse_histogram_is_near_the_exact_one(values_us: list[int]) -> None:
    """The coarse histogram is valid and has as many latencies, each within 1.6 %."""
    fine = make_latency(values_us)
    coarse = coarsen(fine)
    assert coarse.find_fault() is None
    assert coarse.total == fine.total
    assert abs(coarse.sum_us - fine.sum_us) <= 0.017 * fine.sum_us
    assert coarse.min_us == pytest.approx(fine.min_us, rel=0.017)
    assert coarse.max_us == pytest.approx(fine.max_us, rel=0.017)


def test_very_many_latencies_have_few_coarse_buckets() -> None:
    """There are 32 buckets for each doubling, whatever the number of latencies."""
    fine = make_latency(range(0, 100_000, 7))
    assert (len(fine.buckets) // 2, len(coarsen(fine).buckets) // 2) == (4782, 310)


@few
@given(st.lists(SAMPLES, max_size=4))
def test_merging_what_travels_is_adding_it(samples: list[list[int]]) -> None:
    """The fast way for few buckets gives the same as a histogram."""
    latencies = [make_latency(values_us) for values_us in samples]
    added = Histogram()
    for latency in latencies:
        added.add(latency)
    assert merge(latencies) == added.build_latency()


@few
@given(SAMPLES, st.lists(st.floats(0, 1), max_size=5))
def test_quantiles_of_what_travels_are_those_of_the_histogram(
    values_us: list[int], quantiles: list[float]
) -> None:
    """One pass finds the same quantiles."""
    histogram = make_histogram(values_us)
    expected = [histogram.quantile_us(quantile) for quantile in quantiles]
    assert histogram.build_latency().quantiles_us(quantiles) == expected


@few
@given(before=SAMPLES, after=SAMPLES)
def test_what_was_recorded_in_between_makes_the_later_of_the_earlier(
    before: list[int], after: list[int]
) -> None:
    """Added to anything that holds the earlier snapshot, it makes that hold the later one instead."""
    earlier, later = make_histogram(before), make_histogram([*before, *after])
    between = subtract(later.build_latency(), earlier.build_latency())
    assert between.total == len(after)
    earlier.add(between)
    assert read_figures(earlier) == read_figures(later)


def test_a_snapshot_that_does_not_contain_the_earlier_one_is_refused() -> None:
    """Nothing that was recorded is taken back."""
    for later, fault in [
        ([10, 20], "fewer than before"),
        ([10, 20, 4000, 4000, 9000], "fewer than before"),
        ([], "fewer than before"),
    ]:
        with pytest.raises(ValueError, match=fault):
            subtract(make_latency(later), make_latency([10, 20, 5000]))
    for change, fault in [
        ({"min_us": 5001}, "the minimum has risen"),
        ({"max_us": 9998}, "the maximum has fallen"),
        ({"sum_us": 14_998}, "the sum has fallen"),
    ]:
        # A figure that contradicts the earlier snapshot is refused. The buckets alone do not show it.
        earlier = make_latency([5000, 9999])
        with pytest.raises(ValueError, match=fault):
            subtract(msgspec.structs.replace(earlier, **change), earlier)
    for buckets in [[5], [5, 1, 7]]:
        # Half a bucket is not merged. The histogram too refuses buckets that do not come in pairs.
        with pytest.raises(ValueError, match="zip"):
            Histogram().add(HistogramSnapshot(buckets=[*buckets, 1, 8]))


def test_a_histogram_is_dense_once_it_has_merged_many_buckets() -> None:
    """A few thousand latencies of one part of many stay sparse; what thousands of workers add to does not."""
    histogram, latency = Histogram(), make_latency(range(0, 500_000, 250))
    while not histogram.is_dense:
        histogram.add(latency)
    assert 2 * BUCKETS < histogram.total <= 2 * BUCKETS + latency.total * 2
    assert not make_histogram(range(5000)).is_dense
    assert not histogram.copy().build_latency().find_fault()
    # A copy is equal and goes its own way. What is recorded in one of them is not in the other.
    histogram = make_histogram((7, 1500, 99_000))
    before, copy = histogram.build_latency(), histogram.copy()
    histogram.record(3)
    assert (copy.build_latency(), copy.total) == (before, 3)
    copy.record(5)
    assert (histogram.build_latency().min_us, histogram.total) == (3, 4)
