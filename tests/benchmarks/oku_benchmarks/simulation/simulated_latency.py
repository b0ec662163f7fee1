"""The latencies that simulated workers report."""

from collections import Counter
from functools import lru_cache
from random import Random

from oku_core.accounting.histogram import HistogramSnapshot, bucket_bounds_us, bucket_index, coarsen

_DRAWS = 20_000


@lru_cache(maxsize=64)
def build_latency(count: int) -> HistogramSnapshot:
    """So many latencies as in the posts' own case: 0, 1, 2 or 3 s, and some milliseconds (log-normal)."""
    if not count:
        return HistogramSnapshot()
    random = Random(1)
    drawn = Counter(
        bucket_index(random.randint(0, 3) * 1_000_000 + int(random.lognormvariate(0, 0.8) * 3_000))
        for _ in range(_DRAWS)
    )
    buckets: list[int] = []
    seen = given = sum_us = 0
    for index in sorted(drawn):
        seen += drawn[index]
        due = seen * count // _DRAWS
        if due > given:
            buckets += (index, due - given)
            sum_us += (due - given) * bucket_bounds_us(index)[0]
            given = due
    return HistogramSnapshot(
        buckets=buckets,
        sum_us=sum_us,
        min_us=bucket_bounds_us(buckets[0])[0],
        max_us=bucket_bounds_us(buckets[-2])[0],
    )


@lru_cache(maxsize=64)
def build_coarse_latency(count: int) -> HistogramSnapshot:
    """The same as workers send it that were told to send progress less often."""
    return coarsen(build_latency(count))
