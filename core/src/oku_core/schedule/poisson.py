"""How many of a stage's random arrivals lie in each of its blocks, given how many there are in all.

Arrivals of a Poisson process whose number is known are independent of each other: each lies in a block with
a probability that is the block's share of the area under the rate. So their numbers can be drawn by halving:
how many of all lie in the first half of the blocks, how many of these in the first quarter. Each draw has a
seed of its own, so the number before any block takes a logarithm of draws, and is the same for every caller.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from random import Random

from oku_core.uniform import draw_bits

ARRIVALS_STREAM = 0x6F6B752D61727276
"""Changes the seed (the letters `oku-arrv`), so that arrivals are drawn from another stream than delays."""
_SPLITS_STREAM = 0x6F6B752D73706C74
_FEW = 16
_KEPT_SPLITS = 256


class BlockCounts:
    """The numbers of arrivals in the blocks of one segment.

    Args:
        blocks: the numbers of the blocks.
        count: how many arrivals lie in all of them.
        get_area: the integral of the rate before a block begins.
        seed: what the numbers depend on.
    """

    def __init__(self, blocks: range, count: int, get_area: Callable[[int], Fraction], seed: int) -> None:
        self._blocks = blocks
        self._count = count
        self._get_area = get_area
        self._seed = seed ^ _SPLITS_STREAM
        # The upper halves are asked for again and again.
        self._split = lru_cache(_KEPT_SPLITS)(self._draw_split)

    def count_before(self, block: int) -> int:
        """How many of the arrivals lie before a block of the segment, or before its end."""
        start, stop, before, count = self._blocks.start, self._blocks.stop, 0, self._count
        while start < block < stop:
            middle = (start + stop) // 2
            first = self._split(start, stop, count)
            if block < middle:
                stop, count = middle, first
            else:
                start, before, count = middle, before + first, count - first
        return before if block <= start else before + count

    def find_block(self, rank: int) -> int:
        """The block that the arrival of a rank, from 0, lies in; the last one if the rank is too large."""
        start, stop, count = self._blocks.start, self._blocks.stop, self._count
        while stop - start > 1:
            middle = (start + stop) // 2
            first = self._split(start, stop, count)
            if rank < first:
                stop, count = middle, first
            else:
                start, rank, count = middle, rank - first, count - first
        return start

    def _draw_split(self, start: int, stop: int, count: int) -> int:
        """How many of the arrivals in some blocks lie in the first half of these."""
        begin, middle, end = (self._get_area(block) for block in (start, (start + stop) // 2, stop))
        if begin == end:
            return 0
        chance = Random(draw_bits(self._seed, start << 32 | stop))  # noqa: S311  # reproducible, no secret
        return draw_binomial(count, float((middle - begin) / (end - begin)), chance)


def draw_binomial(count: int, probability: float, chance: Random) -> int:
    """How many of independent trials succeed; exact for any number, in a logarithm of it.

    The median of the trials' uniform numbers has a beta distribution, and shows on which side of it the
    probability lies; half of the trials are then decided (Devroye, Non-Uniform Random Variate Generation,
    1986, chapter X.4, "Recursive methods").
    """
    if probability <= 0:
        return 0
    if probability >= 1:
        return count
    succeeded = 0
    while count > _FEW:
        middle = count // 2 + 1
        median = chance.betavariate(middle, count + 1 - middle)
        if median <= probability:
            succeeded += middle
            count -= middle
            probability = (probability - median) / (1 - median)
        else:
            count = middle - 1
            probability /= median
    return succeeded + sum(chance.random() < probability for _ in range(count))
