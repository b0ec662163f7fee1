"""Latency histograms in the layout of HdrHistogram: 1 µs to 1 h, three significant digits, merged by adding.

Buckets are 1 µs wide up to 2047 µs and then double their width at every power of two, so that a value is
known to 1 part in 1024 (Gil Tene, HdrHistogram: 2048 sub-buckets for three digits, unit magnitude 0). Counts,
sum, minimum and maximum are exact; quantiles have that error, and `find_rank` alone defines the rank of a
quantile. The hot loop of a worker records with `counts[bucket_index(v)] += 1`, inlined by hand; `hdr` writes
and reads the exchange format.
"""

import operator
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, chain, compress, pairwise

import msgspec

HIGHEST_US = 3_600_000_000
"""The longest latency that has a bucket, one hour; longer ones count as this one."""
SUB_BUCKET_BITS = 11
"""2**11 sub-buckets resolve three significant digits."""
_COARSE_BITS = 6
BUCKETS = ((HIGHEST_US.bit_length() - SUB_BUCKET_BITS) + 2) << (SUB_BUCKET_BITS - 1)
"""How many buckets there are: 23,552."""
_MOST_MERGED = 2 * BUCKETS
_INDEX = "H"
_IS_BIG_ENDIAN = sys.byteorder == "big"
"""Packed data is little-endian."""
_TYPES = [(typecode, 256 ** array(typecode).itemsize - 1) for typecode in "BHIQ"]
"""The types of counts, and the highest count that each holds."""
_WIDTHS = {typecode: array(_INDEX).itemsize + array(typecode).itemsize for typecode, _ in _TYPES}
"""How many bytes a bucket and its count take."""
_EMPTY = b"B"


class HistogramSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A histogram in the form that is sent: only the buckets that hold something.

    Attributes:
        buckets: pairs of bucket index and count in one flat list, with rising indices and positive counts.
        sum_us: the exact sum of all latencies, in µs.
        min_us: the smallest latency in µs; 0 when there is none.
        max_us: the largest latency in µs; 0 when there is none.
    """

    buckets: list[int] = []
    sum_us: int = 0
    min_us: int = 0
    max_us: int = 0

    @property
    def total(self) -> int:
        """How many latencies were recorded."""
        return sum(self.buckets[1::2])

    def filled(self) -> Iterator[tuple[int, int]]:
        """Index and count of every bucket that holds something, in rising order."""
        pairs = iter(self.buckets)
        return zip(pairs, pairs, strict=True)

    def quantiles_us(self, quantiles: Iterable[float]) -> list[int]:
        """The same as `Histogram.quantile_us` for each quantile, in one pass over the buckets."""
        total = self.total
        ranks = [find_rank(quantile, total) for quantile in quantiles]
        return find_values_us(self.filled(), ranks, self.max_us)

    def find_fault(self) -> str | None:
        """Return the fault of a received histogram, or None if it is valid."""
        return self._find_bucket_fault() or self._find_figure_fault()

    def _find_bucket_fault(self) -> str | None:
        indices, counts = self.buckets[0::2], self.buckets[1::2]
        if len(indices) != len(counts):
            return "buckets do not come in pairs"
        if counts and min(counts) <= 0:
            return "a bucket holds no positive count"
        if not all(map(operator.lt, indices, indices[1:])):
            return "bucket indices do not rise"
        if indices and not 0 <= indices[0] <= indices[-1] <= bucket_index(HIGHEST_US):
            return "a bucket index is out of range"
        return None

    def _find_figure_fault(self) -> str | None:
        if not self.buckets:
            return "an empty histogram has figures" if self.sum_us or self.min_us or self.max_us else None
        if self.min_us < 0 or bucket_index(self.min_us) != self.buckets[0]:
            return "the minimum is not in the first bucket"
        if self.max_us < self.min_us or bucket_index(self.max_us) != self.buckets[-2]:
            return "the maximum is not in the last bucket"
        lowest_us, highest_us = _bound_sum_us(self.buckets[0::2], self.buckets[1::2])
        if not lowest_us <= self.sum_us <= highest_us:
            return "the sum is not that of the buckets"
        return None


def _bound_sum_us(indices: Sequence[int], counts: Sequence[int]) -> tuple[int, int]:
    """The smallest and the largest sum that latencies in these buckets can have, in µs; indices rise.

    This is the sum of `bucket_bounds_us` over all latencies, but computed by stretches of buckets of one
    width, because every checkpoint is checked and has thousands of buckets.
    """
    half = 1 << (SUB_BUCKET_BITS - 1)
    lowest_us = highest_us = begin = 0
    while begin < len(indices):
        shift = max(0, indices[begin] // half - 1)
        end = bisect_left(indices, (shift + 2) * half, begin)
        stretch = counts[begin:end]
        total = sum(stretch)
        low_us = (sum(map(operator.mul, indices[begin:end], stretch)) - shift * half * total) << shift
        lowest_us += low_us
        highest_us += low_us + total * ((1 << shift) - 1)
        begin = end
    return lowest_us, highest_us


def bucket_index(value_us: int) -> int:
    """The bucket of a latency of `0 <= value_us <= HIGHEST_US`."""
    shift = value_us.bit_length() - SUB_BUCKET_BITS
    return (shift << (SUB_BUCKET_BITS - 1)) + (value_us >> shift) if shift > 0 else value_us


def bucket_bounds_us(index: int) -> tuple[int, int]:
    """The smallest and the largest latency of a bucket, both in µs and both in it."""
    half = 1 << (SUB_BUCKET_BITS - 1)
    shift = max(0, (index >> (SUB_BUCKET_BITS - 1)) - 1)
    low = (index - shift * half) << shift
    return low, low + (1 << shift) - 1


def coarsen(latency: HistogramSnapshot) -> HistogramSnapshot:
    """The same latencies, known to 1 part in 32, in at most a hundred or two buckets.

    The live view of very many workers uses this; otherwise thousands of buckets would be sent and merged each
    second. Each latency becomes the middle of its coarse bucket, within 1.6 %; sum, minimum and maximum
    follow from these middles.
    """
    counts: dict[int, int] = {}
    for index, count in latency.filled():
        low_us, high_us = coarse_bounds_us(bucket_bounds_us(index)[0])
        middle_us = min(low_us + ((high_us - low_us) >> 1), HIGHEST_US)
        counts[middle_us] = counts.get(middle_us, 0) + count
    if not counts:
        return HistogramSnapshot()
    buckets: list[int] = []
    for middle_us, count in counts.items():
        buckets += (bucket_index(middle_us), count)
    sum_us = sum(middle_us * count for middle_us, count in counts.items())
    return HistogramSnapshot(
        buckets=buckets, sum_us=sum_us, min_us=next(iter(counts)), max_us=next(reversed(counts))
    )


def coarse_bounds_us(value_us: int) -> tuple[int, int]:
    """Where the coarse bucket of a latency begins and where the next one does, both in µs."""
    shift = max(0, value_us.bit_length() - _COARSE_BITS)
    low_us = value_us >> shift << shift
    return low_us, low_us + (1 << shift)


class Histogram(msgspec.Struct, gc=False, eq=False):
    """Counts by bucket, with exact sum, minimum and maximum.

    It is sparse at first: the buckets that hold something and their counts are packed into bytes, 3 to 10 for
    each. Once it has merged twice as many buckets as there are, it becomes dense: one array of all counts,
    190 kB, to which buckets are added ten times as fast. A run may have 30,000: Python's garbage collector
    would go through all of them again and again, so they are hidden from it (`gc=False`).
    """

    _packed: bytes = _EMPTY
    """The type of the counts, the filled buckets and their counts; unused while it is dense."""
    _counts: "array[int] | None" = None
    """The counts of all buckets while it is dense."""
    _merged: int = 0
    total: int = 0
    sum_us: int = 0
    min_us: int = 0
    max_us: int = 0

    @classmethod
    def build_dense(cls) -> "Histogram":
        """An empty one that is dense, for many snapshots to be merged."""
        return cls(_counts=_build_no_counts())

    @property
    def is_dense(self) -> bool:
        """Whether it has a count for every bucket."""
        return self._counts is not None

    def record(self, value_us: int) -> None:
        """Count one latency in µs; one outside the range counts at the nearer end."""
        value_us = min(max(value_us, 0), HIGHEST_US)
        self._add_counts([bucket_index(value_us), 1])
        self.min_us = value_us if self.total == 0 else min(self.min_us, value_us)
        self.max_us = max(self.max_us, value_us)
        self.sum_us += value_us
        self.total += 1

    def add(self, latency: "HistogramSnapshot | Histogram") -> None:
        """Merge a snapshot or another histogram, exactly and in any order."""
        added = latency.total
        if not added:
            return
        if isinstance(latency, Histogram):
            self._add_counts(list(chain.from_iterable(latency.filled())))
        else:
            self._add_counts(latency.buckets)
        self.min_us = latency.min_us if self.total == 0 else min(self.min_us, latency.min_us)
        self.max_us = max(self.max_us, latency.max_us)
        self.sum_us += latency.sum_us
        self.total += added

    def _add_counts(self, buckets: Sequence[int]) -> None:
        """Add pairs of index and count in one flat list, with rising indices."""
        self._merged += len(buckets) // 2
        if self._counts is None and self._merged > _MOST_MERGED:
            self._make_dense()
        if self._counts is None:
            self._packed = _merge(self._packed, buckets)
            return
        counts, pairs = self._counts, iter(buckets)
        for index, count in zip(pairs, pairs, strict=True):
            counts[index] += count

    def _make_dense(self) -> None:
        counts = _build_no_counts()
        for index, count in self.filled():
            counts[index] = count
        self._packed, self._counts = _EMPTY, counts

    def pack(self) -> bytes:
        """Its buckets as bytes, of which `unpack` makes it again; both are fast: a ledger has thousands."""
        packed = self._packed if self._counts is None else _pack(dict(self.filled()))
        return _swap(packed) if _IS_BIG_ENDIAN else packed

    @classmethod
    def unpack(cls, packed: bytes, *, sum_us: int, min_us: int, max_us: int) -> "Histogram":
        """The histogram of these bytes and figures; `ValueError` if they do not belong together."""
        if _IS_BIG_ENDIAN:
            packed = _swap(packed)
        indices, counts = _split(packed)
        if not indices:
            raise ValueError("a packed histogram is cut short")
        if (indices[0], indices[-1]) != (bucket_index(min_us), bucket_index(max_us)):
            raise ValueError("minimum and maximum are not in the first and last bucket of a packed histogram")
        total = sum(counts)
        if not total:
            raise ValueError("a packed histogram holds nothing")
        return cls(packed, total=total, sum_us=sum_us, min_us=min_us, max_us=max_us)

    def build_latency(self) -> HistogramSnapshot:
        """The same histogram in the form that is sent."""
        if not self.total:
            return HistogramSnapshot()
        buckets = list(chain.from_iterable(self.filled()))
        return HistogramSnapshot(buckets=buckets, sum_us=self.sum_us, min_us=self.min_us, max_us=self.max_us)

    def copy(self) -> "Histogram":
        """A copy that goes its own way."""
        counts = None if self._counts is None else self._counts[:]
        return msgspec.structs.replace(self, _counts=counts)

    @property
    def mean_us(self) -> float:
        """The exact mean in µs; 0 when the histogram is empty."""
        return self.sum_us / self.total if self.total else 0.0

    def quantile_us(self, quantile: float) -> int:
        """The latency in µs that a share `quantile` (0 to 1) of all requests did not exceed; 0 when empty.

        It is the upper end of the bucket in which the cumulative count first reaches `find_rank`, as in
        HdrHistogram; here it never exceeds the exact maximum.
        """
        return self.quantiles_us([quantile])[0]

    def quantiles_us(self, quantiles: Iterable[float]) -> list[int]:
        """The same for each quantile, in one pass over the buckets."""
        if not self.total:
            return [0 for _ in quantiles]
        ranks = [find_rank(each, self.total) for each in quantiles]
        if self._counts is not None:
            return find_values_us(self.filled(), ranks, self.max_us)
        indices, counts = _split(self._packed)
        reached = list(accumulate(counts))
        return [min(bucket_bounds_us(indices[bisect_left(reached, rank)])[1], self.max_us) for rank in ranks]

    def count_between(self, cuts: Sequence[int]) -> list[int]:
        """How many latencies are in the buckets from each of these indices up to the next; the cuts rise."""
        if self._counts is not None:
            # Mostly, all lie close together.
            first, last = bucket_index(self.min_us), bucket_index(self.max_us)
            return [
                sum(self._counts[low:high]) if low <= last and first < high else 0
                for low, high in pairwise(cuts)
            ]
        indices, counts = _split(self._packed)
        places = (bisect_left(indices, cut) for cut in cuts)
        return [sum(counts[low:high]) if low < high else 0 for low, high in pairwise(places)]

    def filled(self) -> Iterator[tuple[int, int]]:
        """Index and count of every bucket that holds something, in rising order."""
        if self._counts is None:
            return zip(*_split(self._packed), strict=True)
        # Mostly, all lie close together: far fewer than tens of thousands need to be walked over.
        first = bucket_index(self.min_us)
        return _pair_filled(self._counts[first : bucket_index(self.max_us) + 1], first)


def _build_no_counts() -> "array[int]":
    """A zero for each bucket."""
    return array("Q", bytes(8 * BUCKETS))


def _merge(packed: bytes, buckets: Sequence[int]) -> bytes:
    """The bytes of a sparse histogram with some pairs of bucket and count added to it."""
    indices, counts = _split(packed)
    if len(buckets) <= len(indices):  # a few come to many
        with suppress(OverflowError):
            return _insert(packed[:1], indices, counts, buckets)
        indices, counts = _split(packed)
    merged, pairs = dict(zip(indices, counts, strict=True)), iter(buckets)
    for index, count in zip(pairs, pairs, strict=True):
        merged[index] = merged.get(index, 0) + count
    return _pack(merged)


def _insert(typecode: bytes, indices: "array[int]", counts: "array[int]", buckets: Sequence[int]) -> bytes:
    """The same in place; `OverflowError` if a count needs a larger type."""
    place, pairs = 0, iter(buckets)
    for index, count in zip(pairs, pairs, strict=True):
        place = bisect_left(indices, index, place)
        if place < len(indices) and indices[place] == index:
            counts[place] += count
        else:
            counts.insert(place, count)
            indices.insert(place, index)
    return typecode + indices.tobytes() + counts.tobytes()


def _pack(filled: Mapping[int, int]) -> bytes:
    """Counts by bucket as bytes, with the smallest type that holds them."""
    indices = array(_INDEX, sorted(filled))
    highest = max(filled.values(), default=0)
    typecode = next(typecode for typecode, most in _TYPES if highest <= most)
    counts = array(typecode, map(filled.__getitem__, indices))
    return typecode.encode() + indices.tobytes() + counts.tobytes()


def _split(packed: bytes) -> "tuple[array[int], array[int]]":
    """The buckets and their counts in the bytes of a sparse histogram; `ValueError` if they are none."""
    typecode, size = packed[:1].decode("latin-1"), len(packed) - 1
    if typecode not in _WIDTHS:
        raise ValueError("no packed histogram")
    if size % _WIDTHS[typecode]:
        raise ValueError("a packed histogram is cut short")
    indices, counts = array(_INDEX), array(typecode)
    cut = 1 + size // _WIDTHS[typecode] * indices.itemsize
    indices.frombytes(packed[1:cut])
    counts.frombytes(packed[cut:])
    return indices, counts


def _swap(packed: bytes) -> bytes:
    """The same with the other order of bytes."""
    indices, counts = _split(packed)
    indices.byteswap()
    counts.byteswap()
    return packed[:1] + indices.tobytes() + counts.tobytes()


def sum_histograms(histograms: Iterable[Histogram]) -> Histogram:
    """The sum of many histograms; this takes a tenth of the time of adding one after the other."""
    merged: dict[int, int] = {}
    filled = [each for each in histograms if each.total]
    for histogram in filled:
        for index, count in histogram.filled():
            merged[index] = merged.get(index, 0) + count
    if not filled:
        return Histogram()
    return Histogram(
        _pack(merged),
        total=sum(each.total for each in filled),
        sum_us=sum(each.sum_us for each in filled),
        min_us=min(each.min_us for each in filled),
        max_us=max(each.max_us for each in filled),
    )


def merge(latencies: Iterable[HistogramSnapshot]) -> HistogramSnapshot:
    """Merge snapshots with the same result as a `Histogram`, but faster when they have few buckets."""
    counts: dict[int, int] = {}
    sum_us, max_us, min_us = 0, 0, HIGHEST_US
    for latency in latencies:
        if not latency.buckets:
            continue
        for index, count in latency.filled():
            counts[index] = counts.get(index, 0) + count
        sum_us += latency.sum_us
        min_us, max_us = min(min_us, latency.min_us), max(max_us, latency.max_us)
    if not counts:
        return HistogramSnapshot()
    buckets = [number for pair in sorted(counts.items()) for number in pair]
    return HistogramSnapshot(buckets=buckets, sum_us=sum_us, min_us=min_us, max_us=max_us)


def subtract(later: HistogramSnapshot, earlier: HistogramSnapshot) -> HistogramSnapshot:
    """Return the values recorded between two snapshots of one histogram.

    Added to the earlier one, the result makes the later one: it has the minimum and maximum of the later one.

    Raises:
        ValueError: the later one does not contain the earlier one.
    """
    before = dict(earlier.filled())
    buckets: list[int] = []
    for index, count in later.filled():
        if added := count - before.pop(index, 0):
            buckets += (index, added)
    if before or min(buckets[1::2], default=0) < 0:
        raise ValueError("a bucket holds fewer than before")
    if earlier.buckets and not (later.min_us <= earlier.min_us and earlier.max_us <= later.max_us):
        raise ValueError("the minimum has risen or the maximum has fallen")
    if later.sum_us < earlier.sum_us:
        raise ValueError("the sum has fallen")
    return HistogramSnapshot(
        buckets=buckets, sum_us=later.sum_us - earlier.sum_us, min_us=later.min_us, max_us=later.max_us
    )


@lru_cache(maxsize=4096)  # the parts of a run have few different totals
def find_rank(quantile: float | Fraction, total: int) -> int:
    """The rank, from 1, of a quantile (0 to 1) among `total` values in ascending order: the nearest rank.

    It is the first value that at least this share of all values does not exceed. All code that prints or
    judges a quantile asks here. A float is taken as the decimal number that it is written as: 0.99 is 99 of
    100.
    """
    numerator, denominator = _read_ratio(quantile)
    return min(max(1, -(-numerator * total // denominator)), total)


def find_values_us(filled: Iterable[tuple[int, int]], ranks: Iterable[int], max_us: int) -> list[int]:
    """The values of ranks of `find_rank`, each the upper end of its bucket, none above the maximum."""
    buckets = list(filled)
    if not buckets:
        return [0 for _ in ranks]
    reached = list(accumulate(count for _, count in buckets))
    places = (bisect_left(reached, rank) for rank in ranks)
    return [min(bucket_bounds_us(buckets[place][0])[1], max_us) for place in places]


@lru_cache(maxsize=1024)
def _read_ratio(quantile: float | Fraction) -> tuple[int, int]:
    return (quantile if isinstance(quantile, Fraction) else Fraction(repr(quantile))).as_integer_ratio()


def _pair_filled(counts: Sequence[int], first: int) -> Iterator[tuple[int, int]]:
    """Walks over thousands of buckets, from the one with this index, without a step for each empty one."""
    return zip(compress(range(first, first + len(counts)), counts), filter(None, counts), strict=True)
