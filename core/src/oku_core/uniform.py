"""Random numbers by index: a pure function of a seed and an index, so any process can draw any of them.

This is SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014),
evaluated at the index; the seed determines where the sequence starts.
"""

from collections.abc import Iterable
from functools import lru_cache

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def draw_bits(seed: int, index: int) -> int:
    """A pseudorandom number of 64 bits."""
    return _mix(_find_start(seed) + (index + 1) * _STEP & _MASK)


def uniform(seed: int, index: int) -> float:
    """A pseudorandom number in `[0, 1)`, uniformly distributed over the indices."""
    return (draw_bits(seed, index) >> 11) * 2.0**-53


def list_uniform(seed: int, indices: Iterable[int]) -> list[float]:
    """What `uniform` gives for each of many indices, in half the time."""
    start = _find_start(seed) + _STEP
    mixed = [(z ^ (z >> 30)) * _FIRST & _MASK for z in [start + index * _STEP & _MASK for index in indices]]
    mixed = [(z ^ (z >> 27)) * _SECOND & _MASK for z in mixed]
    return [((z ^ (z >> 31)) >> 11) * 2.0**-53 for z in mixed]


@lru_cache(maxsize=16)
def _find_start(seed: int) -> int:
    return _mix(seed & _MASK)


def _mix(z: int) -> int:
    z = (z ^ (z >> 30)) * _FIRST & _MASK
    z = (z ^ (z >> 27)) * _SECOND & _MASK
    return z ^ (z >> 31)
