"""The reasons of the failed positions of one outcome, as runs beside their packed set.

The runs are a list of integers. Each number of 0 or more is the place of a reason, from 1, and stands for the
next position of the set; `NOT_KEPT` is a reason that is not kept any more. Each number below 0, `-n`, repeats
the place before it for `n` more positions. So a reason for all of them takes two numbers, and reasons that
change at every position take one number each.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from oku_core.accounting.index_ranges import Range

NOT_KEPT = 0
_END = 1 << 62


def iter_runs(packed: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The places, and how many positions have each, in the order of the set."""
    for number, following in pairwise((*packed, 0)):
        if number >= 0:
            yield number, 1 - min(following, 0)


def count_places(packed: Sequence[int]) -> Counter[int]:
    """How many positions have each place."""
    counts = Counter[int]()
    for place, count in iter_runs(packed):
        counts[place] += count
    return counts


def is_run_list(packed: Sequence[int]) -> bool:
    """Whether these are runs as `find_runs` makes them: none is empty, and neighbours differ."""
    place, was_place = -1, False
    for number in packed:
        is_place = number >= 0
        if number == place or not (is_place or was_place):
            return False
        place, was_place = number if is_place else place, is_place
    return True


def find_runs(ranges: Iterable[Range], reasons: Mapping[int, Iterable[Range]]) -> list[int]:
    """The runs of the positions of some ranges, by the ranges of each place; no position has two.

    One loop: a worker does it for every checkpoint, with thousands of ranges.
    """
    known = sorted((*span, place) for place, spans in reasons.items() for span in spans)
    known.append((_END, _END, NOT_KEPT))
    packed: list[int] = []
    number, place, count = 0, -1, 0
    for start, stop in ranges:
        at = start
        while at < stop:
            first, last, following = known[number]
            if last <= at:
                number += 1
                continue
            if first > at:
                last, following = first, NOT_KEPT
            last = min(last, stop)
            if following == place:
                count += last - at
            else:
                if count > 1:
                    packed.append(1 - count)
                packed.append(following)
                place, count = following, last - at
            at = last
    if count > 1:
        packed.append(1 - count)
    return packed


def split_ranges(ranges: Iterable[Range], packed: Sequence[int]) -> dict[int, list[Range]]:
    """The ranges of each place; positions without a run are `NOT_KEPT`."""
    found: dict[int, list[Range]] = {}
    runs = iter_runs(packed)
    place, count = next(runs, (NOT_KEPT, 0))
    for start, stop in ranges:
        at = start
        while at < stop:
            if not count:
                place, count = next(runs, (NOT_KEPT, stop - at))
            length = min(count, stop - at)
            found.setdefault(place, []).append((at, at + length))
            at, count = at + length, count - length
    return found
