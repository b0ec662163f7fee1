import math

import pytest
from tests.kit.runs.seconds import START, draw_seconds, make_second

from oku_core.accounting.measured_time import Time
from oku_core.statistics.block_bootstrap import RESAMPLES, choose_block_s, find_quantiles, resample
from oku_core.statistics.packed_seconds import pack_seconds


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


def test_equal_seconds_leave_nothing_to_chance() -> None:
    """Every resample is the run itself, whatever the length of a block."""
    packed = pack_seconds(
        [make_second(START + place, range(100, 900)) for place in range(1, 36)], Time.LATENCY
    )
    (values,) = resample(packed, [0.9], block_s=10, seed=0)
    assert max(values) - min(values) < 1e-9
    assert values[0] == pytest.approx(find_quantiles(packed, sum(packed.bins), [0.9])[0])


def test_seconds_without_answers_are_drawn_like_others() -> None:
    """A target that stands still has such seconds."""
    samples = [make_second(START + place, [1000] * (place % 2)) for place in range(1, 41)]
    (values,) = resample(pack_seconds(samples, Time.LATENCY), [0.5], block_s=5, seed=0)
    assert all(math.isfinite(value) for value in values)
