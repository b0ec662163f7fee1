"""How well requests keep to a constant rate, judged from when they arrived.

The plan: `rate` requests in each second of `duration_s`, one every 1 / rate. When a load generator begins is
its own affair, so the plan is laid where it fits best, and only what is off from there is held against it.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from oku_core.accounting.histogram import find_rank

_SECOND = 10**9
_COARSE_NS, _FINE_NS = 10**6, 10**4
_EARLY = 0.01
"""The share of the requests that may come before their time, when the plan is laid over them: a tool that
opens its connections with a request on each is not thought to be late ever after."""
_EVEN = 0.5


class Gaps(msgspec.Struct, frozen=True, kw_only=True):
    """From one arrival to the next, in milliseconds.

    Attributes:
        even_share: how many of them are within half a gap of the plan's.
    """

    p50: float
    p99: float
    p99_9: float
    max: float
    even_share: float


class Lateness(msgspec.Struct, frozen=True, kw_only=True):
    """By how much the k-th arrival is behind the k-th time of the plan, in milliseconds."""

    p50: float
    p99: float
    p99_9: float
    max: float


class Punctuality(msgspec.Struct, frozen=True, kw_only=True):
    """What a target saw of a plan.

    Attributes:
        planned: requests of the plan.
        arrived: requests that came.
        seconds: the count of each second of the plan.
        off_seconds: in how many of them the count is off by more than one.
        worst_off: the largest difference of a second.
    """

    planned: int
    arrived: int
    seconds: list[int]
    off_seconds: int
    worst_off: int
    gaps: Gaps
    lateness: Lateness


def judge_arrivals(arrivals: Sequence[int], rate: int, duration_s: int) -> Punctuality:
    """Judge what came, at least two requests, given when each arrived, in ns and in order."""
    seconds = count_seconds(arrivals, rate, duration_s)
    return Punctuality(
        planned=rate * duration_s,
        arrived=len(arrivals),
        seconds=seconds,
        off_seconds=sum(abs(count - rate) > 1 for count in seconds),
        worst_off=max(abs(count - rate) for count in seconds),
        gaps=measure_gaps(arrivals, rate),
        lateness=measure_lateness(arrivals, rate),
    )


def count_seconds(arrivals: Sequence[int], rate: int, duration_s: int) -> list[int]:
    """The arrivals of each second, from the beginning at which they are nearest to the plan.

    It is sought within a second of the first arrival, to 10 µs.
    """

    def count(begin: int) -> list[int]:
        borders = [bisect_left(arrivals, begin + second * _SECOND) for second in range(duration_s + 1)]
        return [after - before for before, after in pairwise(borders)]

    def judge(begin: int) -> int:
        return sum(abs(each - rate) for each in count(begin))

    first = arrivals[0]
    coarse = min(range(first - _SECOND, first + _SECOND, _COARSE_NS), key=judge)
    return count(min(range(coarse - _COARSE_NS, coarse + _COARSE_NS + 1, _FINE_NS), key=judge))


def measure_gaps(arrivals: Sequence[int], rate: int) -> Gaps:
    """The times between arrivals."""
    planned = _SECOND / rate
    gaps = sorted(after - before for before, after in pairwise(arrivals))
    even = sum((1 - _EVEN) * planned <= gap <= (1 + _EVEN) * planned for gap in gaps)
    return Gaps(
        p50=_pick_ms(gaps, 0.5),
        p99=_pick_ms(gaps, 0.99),
        p99_9=_pick_ms(gaps, 0.999),
        max=_pick_ms(gaps, 1.0),
        even_share=round(even / len(gaps), 4),
    )


def measure_lateness(arrivals: Sequence[int], rate: int) -> Lateness:
    """How far each arrival is behind its time; the plan begins where one in a hundred is early."""
    behind = sorted(arrived - (2 * rank + 1) * _SECOND // (2 * rate) for rank, arrived in enumerate(arrivals))
    origin = behind[int(_EARLY * len(behind))]
    late = [each - origin for each in behind]
    return Lateness(
        p50=_pick_ms(late, 0.5),
        p99=_pick_ms(late, 0.99),
        p99_9=_pick_ms(late, 0.999),
        max=_pick_ms(late, 1.0),
    )


def _pick_ms(ordered: Sequence[int], quantile: float) -> float:
    return round(ordered[find_rank(quantile, len(ordered)) - 1] / 1e6, 4)
