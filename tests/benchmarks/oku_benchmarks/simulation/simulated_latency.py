"""The latencies that simulated workers report."""

from collections import Counter
from functools import lru_cache
from random import Random

from oku_core.accounting.histogram import HistogramSnapshot, bucket_bounds_us, bucket_index, coarsen

_DRAWS = 5_000


@lru_cache(maxsize=64)
def build_latency(count: int) -> HistogramSnapshot:
    """So many latencies as in the posts' own case: 0, 1, 2 or 3 s, and some milliseconds (log-normal).

    They are those of the first `count` requests of a sequence that repeats, so a larger count contains a
    smaller one.
    """
    if not count:
        return HistogramSnapshot()
    rounds, rest = divmod(count, _DRAWS)
    drawn = _draw()
    buckets = Counter(drawn[:rest])
    if rounds:
        for index, times in Counter(drawn).items():
            buckets[index] += times * rounds
    indices = sorted(buckets)
    return HistogramSnapshot(
        buckets=[number for index in indices for number in (index, buckets[index])],
        sum_us=sum(times * _find_low_us(index) for index, times in buckets.items()),
        min_us=_find_low_us(indices[0]),
        max_us=_find_low_us(indices[-1]),
    )


@lru_cache(maxsize=64)
def build_coarse_latency(count: int) -> HistogramSnapshot:
    """The same as workers send it that were told to send progress less often."""
    return coarsen(build_latency(count))


@lru_cache(maxsize=1)
def _draw() -> tuple[int, ...]:
    random = Random(1)
    return tuple(
        bucket_index(random.randint(0, 3) * 1_000_000 + int(random.lognormvariate(0, 0.8) * 3_000))
        for _ in range(_DRAWS)
    )


@lru_cache(maxsize=_DRAWS)
def _find_low_us(index: int) -> int:
    return bucket_bounds_us(index)[0]
