"""Sent and answered requests in a part of a run's time, from the seconds in the ledger.

These differ from the requests that were due in that time: one may be sent late, and answered later still.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from oku_coordinator.ledger.storage.schedule_records import Course, PeriodRecord
from oku_core.accounting.outcome import count_answered

_MOST_DEAD = 0.5


class ClockCount(NamedTuple):
    """Counts of a part of a run's time.

    Attributes:
        seconds: its active time, as far as workers have reported.
        sent: how many requests were sent.
        answered: how many were answered in full.
    """

    seconds: float
    sent: float
    answered: float

    def drop_dead_time(self, dead_s: float) -> float:
        """The seconds without an initial part in which no response could arrive."""
        return self.seconds - min(dead_s, _MOST_DEAD * self.seconds)


class ClockCounts:
    """The counts of a run with a rate, by its clock.

    A second that contains a start, a pause, an end or a change of phase counts in proportion to its active
    time.

    Args:
        course: its course.
        length_s: its length in seconds.
    """

    def __init__(self, course: Course, length_s: float) -> None:
        self._rows = course.series
        self._ends = [row.second + row.seconds for row in self._rows]
        self._periods = course.periods
        self._spans = [_find_span(period, 0.0, length_s, course.settled_to) for period in course.periods]
        self._settled_to = course.settled_to

    def count(self, begin_s: float, end_s: float) -> ClockCount:
        """Count between two times of the run's clock."""
        seconds = sent = answered = 0.0
        for period in self._periods:
            begin, end = _find_span(period, begin_s, end_s, self._settled_to)
            seconds += max(0.0, end - begin)
            for number, part in self._cut(begin, end):
                row = self._rows[number]
                sent += part * row.sent
                answered += part * count_answered(row.outcomes)
        return ClockCount(seconds, sent, answered)

    def _cut(self, begin: float, end: float) -> Iterator[tuple[int, float]]:
        """The rows within `[begin, end)`, each with the share inside."""
        for number in range(bisect_right(self._ends, begin), len(self._rows)):
            first, stop = self._rows[number].second, self._ends[number]
            if first >= end:
                return
            active_s = sum(_overlap(span, (first, stop)) for span in self._spans)
            part_s = _overlap((begin, end), (first, stop))
            if part_s > 0:
                yield number, min(1.0, part_s / active_s) if active_s else 1.0


def _find_span(period: PeriodRecord, begin_s: float, end_s: float, settled_to: float) -> tuple[float, float]:
    """A part of the run's time as Unix times, within one of its periods; it may be empty."""
    active = period.build_period()
    stopped_at = period.find_end()
    end = min(settled_to, active.unix_time(end_s))
    return (
        max(period.starts_at, active.unix_time(begin_s)),
        end if stopped_at is None else min(end, stopped_at),
    )


def _overlap(one: Sequence[float], other: Sequence[float]) -> float:
    return max(0.0, min(one[1], other[1]) - max(one[0], other[0]))
