import math
from collections import Counter
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.uniform import list_uniform, uniform

SEEDS = st.integers(min_value=0, max_value=2**63 - 1)
INDICES = st.integers(min_value=0, max_value=10**15 - 1)


def test_the_generator_is_splitmix64() -> None:
    """With seed 0 it gives the sequence of other SplitMix64 implementations, cut to 53 bits."""
    first = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC]
    assert [uniform(0, index) for index in range(4)] == [(z >> 11) / 2**53 for z in first]


@given(seed=SEEDS, index=INDICES)
def test_a_draw_lies_between_zero_and_one(seed: int, index: int) -> None:
    """A draw may be zero but never one, at every limit of seed and index."""
    assert 0 <= uniform(seed, index) < 1


@pytest.mark.parametrize("seed", [0, 1, 2**32, 2**63 - 1])
@pytest.mark.parametrize("first", [0, 10**15 - 50_000])
def test_draws_are_uniformly_distributed(seed: int, first: int) -> None:
    """Over 50 equal classes, chi-square stays in its range at both ends of the request space."""
    classes = Counter(int(uniform(seed, first + index) * 50) for index in range(50_000))
    chi_square = sum((classes[number] - 1000) ** 2 / 1000 for number in range(50))
    assert 20 < chi_square < 95  # 49 degrees of freedom: 0.9999 of all lie in between


@pytest.mark.parametrize("lag", [1, 2, 1000])
def test_neighbouring_draws_are_independent(lag: int) -> None:
    """Neither neighbouring indices nor neighbouring seeds have correlated draws."""
    draws = [uniform(3, index) - 0.5 for index in range(20_000)]
    others = [uniform(3, index + lag) - 0.5 for index in range(20_000)]
    seeds = [uniform(3 + lag, index) - 0.5 for index in range(20_000)]
    for second in (others, seeds):
        correlation = fmean(a * b for a, b in zip(draws, second, strict=True)) * 12
        assert abs(correlation) < 4 / math.sqrt(20_000)


@given(seed=SEEDS, start=INDICES, step=st.integers(1, 10_000))
def test_many_draws_are_those_of_their_indices(seed: int, start: int, step: int) -> None:
    """Drawing them together is faster, and nothing else."""
    indices = range(start, start + 20 * step, step)
    assert list_uniform(seed, indices) == [uniform(seed, index) for index in indices]
