"""The distributions of the seconds of a run, packed so that hundreds of them are added in microseconds.

A distribution becomes one large integer with 64 bits for each bucket: how many requests were in that bucket
or below. The sum of such integers is that of the distributions, and Python adds them as fast as memory is
read.
"""

import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from oku_core.accounting.histogram import HistogramSnapshot, bucket_bounds_us, coarse_bounds_us
from oku_core.accounting.measured_time import Time
from oku_core.results.sample import Sample, find_step

_LANE_BYTES = 8
_USUAL_SHARE = 0.9


@dataclass(frozen=True, kw_only=True)
class PackedSeconds:
    """The distributions of a run in bins of time of one length.

    Attributes:
        bounds_us: the lower and the upper end of each bucket that is not always empty, in µs, rising.
        bins: the cumulative counts of each bin, in order of time, packed.
        bin_s: the length of a bin in seconds.
        total: how many requests they are of.
    """

    bounds_us: Sequence[tuple[int, int]]
    bins: Sequence[int]
    bin_s: int
    total: int

    @property
    def length_s(self) -> int:
        """How many seconds these are."""
        return len(self.bins) * self.bin_s

    def unpack(self, packed: int) -> Sequence[int]:
        """The cumulative counts of a sum of bins, by bucket."""
        counts = array("Q")
        counts.frombytes(packed.to_bytes(len(self.bounds_us) * _LANE_BYTES, sys.byteorder))
        return counts


def pack_seconds(samples: Sequence[Sample], time: Time) -> PackedSeconds:
    """Pack one of the distributions of kept samples, which are in order of time.

    The samples of a long run are merged into longer ones, the newest not yet: all are brought to one length.
    """
    bin_s = _choose_bin_s(samples)
    histograms: list[list[HistogramSnapshot]] = [
        [sample.histogram(time) for sample in group]
        for _, group in groupby(samples, lambda sample: find_step(sample.at, bin_s))
    ]
    buckets = sorted({index for group in histograms for each in group for index in each.buckets[0::2]})
    lanes = {index: lane for lane, index in enumerate(buckets)}
    return PackedSeconds(
        bounds_us=[coarse_bounds_us(bucket_bounds_us(index)[0]) for index in buckets],
        bins=[_pack(group, lanes) for group in histograms],
        bin_s=bin_s,
        total=sum(each.total for group in histograms for each in group),
    )


def _choose_bin_s(samples: Sequence[Sample]) -> int:
    """The power of two of seconds that hardly any sample exceeds: samples are merged along such steps."""
    lengths = sorted(sample.seconds for sample in samples)
    usual_s = round(lengths[int(_USUAL_SHARE * len(lengths))]) if lengths else 1
    return 1 << max(0, usual_s - 1).bit_length()


def _pack(histograms: Sequence[HistogramSnapshot], lanes: dict[int, int]) -> int:
    counts = [0] * len(lanes)
    for histogram in histograms:
        for index, count in histogram.filled():
            counts[lanes[index]] += count
    return int.from_bytes(array("Q", accumulate(counts)).tobytes(), sys.byteorder)
