"""Times of many requests, counted in place: a histogram that the hot path adds to.

It is kept in a list, or in a dictionary where few times are to come: that is slower and takes less.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, compress

from oku_core.accounting.histogram import (
    BUCKETS,
    HIGHEST_US,
    SUB_BUCKET_BITS,
    HistogramSnapshot,
    bucket_index,
)
from oku_workers.speedups.extension import IS_COMPILED

if IS_COMPILED:
    from oku_workers.speedups import _speedups

HALF_BITS = SUB_BUCKET_BITS - 1


Counts = list[int] | defaultdict[int, int]
"""How many times there are in each bucket of a histogram."""


def record_in_python(
    counts: Counts, times_us: Sequence[int], highest_us: int, sub_bucket_bits: int
) -> tuple[int, int, int]:
    """Count times in the buckets of a histogram (`bucket_index`); those beyond the highest count as that.

    Returns:
        Their sum, and the smallest and the largest of them; `highest_us` and 0 if there are none.
    """
    half_bits = sub_bucket_bits - 1
    sum_us, min_us, max_us = 0, highest_us, 0
    for time_us in times_us:
        value_us = highest_us if time_us > highest_us else time_us  # noqa: FURB136  # half the time of min()
        shift = value_us.bit_length() - sub_bucket_bits
        counts[(shift << half_bits) + (value_us >> shift) if shift > 0 else value_us] += 1
        sum_us += value_us
        if value_us < min_us:  # noqa: PLR1730
            min_us = value_us
        if value_us > max_us:  # noqa: PLR1730
            max_us = value_us
    return sum_us, min_us, max_us


record_times = _speedups.record_times if IS_COMPILED else record_in_python
"""The same, compiled where it was."""


class Distribution:
    """The times of one kind that were recorded, in µs.

    Args:
        is_dense: whether many are to come.

    Attributes:
        counts: how many there are in each bucket of the histogram.
        sum_us: their sum.
        min_us: the smallest; `HIGHEST_US` when there is none.
        max_us: the largest; 0 when there is none.
    """

    __slots__ = ("counts", "max_us", "min_us", "sum_us")

    def __init__(self, *, is_dense: bool = False) -> None:
        self.counts: Counts = [0] * BUCKETS if is_dense else defaultdict(int)
        self.sum_us = 0
        self.min_us = HIGHEST_US
        self.max_us = 0

    def record(self, value_us: int) -> None:
        """Count one time of at least 0 µs; one beyond the range counts as the longest."""
        if value_us > HIGHEST_US:  # noqa: PLR1730  # half the time of min()
            value_us = HIGHEST_US
        shift = value_us.bit_length() - SUB_BUCKET_BITS
        self.counts[(shift << HALF_BITS) + (value_us >> shift) if shift > 0 else value_us] += 1
        self.sum_us += value_us
        if value_us < self.min_us:  # noqa: PLR1730
            self.min_us = value_us
        if value_us > self.max_us:  # noqa: PLR1730
            self.max_us = value_us

    def record_all(self, times_us: Sequence[int]) -> None:
        """Count several times as `record` does each; there is less to do for each."""
        sum_us, min_us, max_us = record_times(self.counts, times_us, HIGHEST_US, SUB_BUCKET_BITS)
        self.sum_us += sum_us
        self.min_us, self.max_us = min(self.min_us, min_us), max(self.max_us, max_us)

    def compact(self) -> None:
        """Keep it in less memory: few are still to come."""
        if isinstance(self.counts, list):
            self.counts = defaultdict(int, self.list_counts())

    def list_counts(self) -> Iterable[tuple[int, int]]:
        """Each bucket that holds something, with its count; in rising order."""
        counts = self.counts
        if not isinstance(counts, list):
            return sorted(counts.items())
        # Thousands of buckets, while requests wait: there is no step of Python for each.
        first, stop = bucket_index(min(self.min_us, self.max_us)), bucket_index(self.max_us) + 1
        held = counts[first:stop]
        return zip(compress(range(first, stop), held), filter(None, held), strict=True)

    def build_snapshot(self) -> HistogramSnapshot:
        """A snapshot of the times recorded so far, as checkpoints carry it."""
        buckets = list(chain.from_iterable(self.list_counts()))
        if not buckets:
            return HistogramSnapshot()
        return HistogramSnapshot(buckets=buckets, sum_us=self.sum_us, min_us=self.min_us, max_us=self.max_us)
