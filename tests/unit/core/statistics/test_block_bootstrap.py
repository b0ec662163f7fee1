import math
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.runs.seconds import START, draw_seconds, make_second

from oku_core.accounting.histogram import bucket_index, coarse_bounds_us, coarsen, merge
from oku_core.accounting.measured_time import Time
from oku_core.statistics.block_bootstrap import (
    RESAMPLES,
    choose_block_s,
    find_quantiles,
    pack_seconds,
    resample,
)

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
    # One long second does not lengthen the bins. A coordinator may stand still for a while.
    samples = [make_second(START + place, [10]) for place in range(1, 40)]
    samples.append(make_second(START + 60, [10], seconds=21.0))
    assert pack_seconds(samples, Time.LATENCY).bin_s == 1


@pytest.mark.parametrize(
    ("length_s", "block_s"), [(30, 5), (59, 9), (60, 10), (100, 10), (400, 20), (3600, 60)]
)
def test_blocks_are_ten_seconds_and_longer_in_long_runs(length_s: int, block_s: int) -> None:
    """In a run of less than a minute they are a sixth of it."""
    assert choose_block_s(length_s) == block_s


def test_a_quantile_lies_within_its_bucket() -> None:
    """Requests are taken to lie evenly in it."""
    packed = pack_seconds([make_second(START, [20_000] * 100)], Time.LATENCY)
    low_us, high_us = packed.bounds_us[0]
    (median,) = find_quantiles(packed, packed.bins[0], [0.5])
    assert math.exp(median) == pytest.approx((low_us + high_us) / 2)


def test_the_same_seed_draws_the_same() -> None:
    """Another one does not."""
    packed = pack_seconds(draw_seconds(60, seed=1)[0], Time.LATENCY)
    first = resample(packed, [0.5, 0.99], block_s=10, seed=3)
    assert first == resample(packed, [0.5, 0.99], block_s=10, seed=3)
    assert first != resample(packed, [0.5, 0.99], block_s=10, seed=4)
    assert [len(row) for row in first] == [RESAMPLES, RESAMPLES]
    # Equal seconds leave nothing to chance.
    packed = pack_seconds(
        [make_second(START + place, range(100, 900)) for place in range(1, 36)], Time.LATENCY
    )
    (values,) = resample(packed, [0.9], block_s=10, seed=0)
    assert max(values) - min(values) < 1e-9
    assert values[0] == pytest.approx(find_quantiles(packed, sum(packed.bins), [0.9])[0])
    # Seconds without answers are drawn like others. A target that stands still has such seconds.
    samples = [make_second(START + place, [1000] * (place % 2)) for place in range(1, 41)]
    (values,) = resample(pack_seconds(samples, Time.LATENCY), [0.5], block_s=5, seed=0)
    assert all(math.isfinite(value) for value in values)
