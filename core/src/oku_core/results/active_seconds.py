"""The whole seconds of a run in which its clock went on, with what the series has of each.

Seconds that a start, a pause or the end of the run cuts are left out, and those for which the clock was set
back, when a run went on.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from oku_core.accounting.outcome import build_no_counts
from oku_core.results.series import SeriesRow
from oku_core.schedule.wave import ActivePeriod

_LONGEST_GAP_S = 3600
"""Seconds in which nothing happened are told one by one, as far as there are not more in a row."""
_ROUNDED_S = 1e-6
_DIGITS = 5
"""Unix times as floats are precise to a quarter of a microsecond; phases end at times that users wrote."""


class ActiveSecond(NamedTuple):
    """A second of a run, or some that were merged.

    Attributes:
        second: the Unix time at which it begins.
        seconds: how many they are.
        period: that they lie in.
        sent: how many requests were sent in them.
        outcomes: of the requests that ended in them, in the order of `OUTCOMES`.
    """

    second: int
    seconds: int
    period: ActivePeriod
    sent: int
    outcomes: Sequence[int]

    @property
    def begin_s(self) -> float:
        """What the clock of the run says when they begin."""
        return round(self.period.schedule_s(self.second), _DIGITS)

    @property
    def end_s(self) -> float:
        """What the clock of the run says when they end."""
        return round(self.period.schedule_s(self.second + self.seconds), _DIGITS)


def list_active(
    rows: Iterable[SeriesRow],
    periods: Iterable[tuple[ActivePeriod, float]],
    length_s: float = math.inf,
    settled_to: float = math.inf,
    since: float = -math.inf,
) -> Iterator[ActiveSecond]:
    """The seconds of a run that lie in its periods of activity as a whole.

    Args:
        rows: its series, in order of time.
        periods: its periods of activity, each with what the clock of the run says at its end.
        length_s: how many seconds the run lasts by its clock.
        settled_to: up to which Unix time all workers have told what they did; finite unless each of the
            periods has an end, or the run has.
        since: where to begin, in Unix time.
    """
    kept = list(rows)
    reached_s = 0.0
    for period, stop_s in periods:
        begin_at = max(since, period.unix_time(max(reached_s, period.offset_s)))
        end_at = min(settled_to, period.unix_time(min(stop_s, length_s)))
        reached_s = max(reached_s, stop_s)
        first = math.ceil(begin_at - _ROUNDED_S)
        for row in _cut(range(first, max(first, find_whole_end(end_at))), kept):
            yield ActiveSecond(row.second, row.seconds, period, row.sent, row.outcomes)


def find_whole_end(at: float) -> int:
    """The end of the last whole second by a Unix time."""
    return math.floor(at + _ROUNDED_S)


def _cut(within: range, rows: Sequence[SeriesRow]) -> Iterator[SeriesRow]:
    """The seconds of a range, as the rows cut them."""
    at = within.start
    for row in rows:
        if row.second >= within.stop:
            break
        if row.second >= at:
            yield from _fill(at, row.second)
            if row.second + row.seconds > within.stop:
                return
            yield row
        at = max(at, row.second + row.seconds)
    yield from _fill(at, within.stop)


def _fill(start: int, stop: int) -> Iterator[SeriesRow]:
    """Seconds without a row: nothing was sent in them, and nothing ended."""
    if stop - start > _LONGEST_GAP_S:
        yield SeriesRow(second=start, seconds=stop - start, outcomes=build_no_counts())
    else:
        yield from (SeriesRow(second=second, outcomes=build_no_counts()) for second in range(start, stop))
