from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st
from tests.kit.runs.seconds import START, make_second

from oku_core.accounting.histogram import bucket_index, coarse_bounds_us, coarsen, merge
from oku_core.accounting.measured_time import Time
from oku_core.statistics.packed_seconds import pack_seconds

LATENCIES = st.lists(st.integers(0, 3_600_000_000), max_size=20)


@given(st.lists(LATENCIES, min_size=1, max_size=8))
def test_a_sum_of_bins_is_the_merged_distribution(seconds: list[list[int]]) -> None:
    """Its counts are cumulative, over the buckets that occur."""
    samples = [make_second(START + place + 1, values) for place, values in enumerate(seconds)]
    packed = pack_seconds(samples, Time.LATENCY)
    merged = merge(sample.histogram(Time.LATENCY) for sample in samples)
    assert list(packed.unpack(sum(packed.bins))) == list(accumulate(merged.buckets[1::2]))
    assert packed.total == sum(map(len, seconds))
    assert packed.length_s == len(seconds)


@given(st.integers(0, 3_600_000_000))
def test_a_coarse_bucket_holds_its_values(value_us: int) -> None:
    """Its width is at most 1 part in 32 of them."""
    low_us, high_us = coarse_bounds_us(value_us)
    assert low_us <= value_us < high_us
    assert high_us - low_us <= max(1, low_us / 32)
    kept = coarsen(make_second(START, [value_us]).histogram(Time.LATENCY))
    assert kept.buckets[0] in {bucket_index(low_us + (high_us - low_us) // 2), bucket_index(3_600_000_000)}


def test_merged_seconds_set_the_length_of_all_bins() -> None:
    """The newest samples of a long run are not merged yet."""
    merged = [make_second(START + 4 * place, [10, 20], seconds=4.0) for place in range(1, 21)]
    begin = merged[-1].at
    newest = [make_second(begin + place, [30]) for place in range(1, 9)]
    packed = pack_seconds([*merged, *newest], Time.LATENCY)
    assert packed.bin_s == 4
    assert len(packed.bins) == 22
    assert packed.length_s == 88


def test_one_long_second_does_not_lengthen_the_bins() -> None:
    """A coordinator may stand still for a while."""
    samples = [make_second(START + place, [10]) for place in range(1, 40)]
    samples.append(make_second(START + 60, [10], seconds=21.0))
    assert pack_seconds(samples, Time.LATENCY).bin_s == 1
