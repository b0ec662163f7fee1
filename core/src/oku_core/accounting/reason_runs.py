"""The reasons of the failed positions of one outcome, as runs beside their packed set.

The runs are a list of integers. Each number of 0 or more is the place of a reason, from 1, and stands for the
next position of the set; `NOT_KEPT` is a reason that is not kept any more. Each number below 0, `-n`, repeats
the place before it for `n` more positions. So a reason for all of them takes two numbers, and reasons that
change at every position take one number each.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from oku_core.accounting.index_ranges import Range

NOT_KEPT = 0


def pack_runs(runs: Iterable[Sequence[int]]) -> list[int]:
    """Runs, each a place and how many positions have it; neighbours of the same place are joined."""
    packed: list[int] = []
    place, count = -1, 0
    for following, more in (*runs, (-1, 0)):
        if following == place:
            count += more
            continue
        if count:
            packed += (place, 1 - count) if count > 1 else (place,)
        place, count = following, more
    return packed


def iter_runs(packed: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The places, and how many positions have each, in the order of the set."""
    for number, following in pairwise((*packed, 0)):
        if number >= 0:
            yield number, 1 - min(following, 0)


def is_run_list(packed: Sequence[int]) -> bool:
    """Whether these are runs as `pack_runs` makes them."""
    return pack_runs(iter_runs(packed)) == list(packed)


def find_runs(ranges: Iterable[Range], reasons: Mapping[int, Iterable[Range]]) -> list[int]:
    """The runs of the positions of some ranges, by the ranges of each place; no position has two."""
    return pack_runs(_iter_found(ranges, reasons))


def _iter_found(ranges: Iterable[Range], reasons: Mapping[int, Iterable[Range]]) -> Iterator[tuple[int, int]]:
    known = sorted((*span, place) for place, spans in reasons.items() for span in spans)
    number = 0
    for start, stop in ranges:
        at = start
        while at < stop:
            while number < len(known) and known[number][1] <= at:
                number += 1
            first, last, place = known[number] if number < len(known) else (stop, stop, NOT_KEPT)
            if first > at:
                last, place = first, NOT_KEPT
            last = min(last, stop)
            yield place, last - at
            at = last


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
