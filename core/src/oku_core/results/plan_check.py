"""How the arrivals of a run with a rate kept to its schedule, second by second: a pure rule.

The series says how many requests were sent in each second of the coordinator's clock, the schedule how many
were due. Seconds that a start, a pause or the end of the run cuts are left out, and those for which the clock
of the schedule was set back, when a run went on.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from oku_core.results.plan_causes import Load, find_causes
from oku_core.results.series import SeriesRow
from oku_core.results.summary import PlanSummary
from oku_core.schedule.active_period import ActivePeriod
from oku_core.schedule.due_counts import DueCounts

MOST_OFF = 0.01
"""The share of what is due in a second by which what is sent may differ."""
_MOST_OFF_REQUESTS = 1
_DEVIATIONS = 4
"""Where the number that is due is only expected, so many standard deviations are allowed."""
_LONGEST_GAP_S = 3600
"""Seconds in which nothing was sent are judged one by one, as far as there are not more in a row."""
_ROUNDED_S = 1e-6


class PlannedSeconds(NamedTuple):
    """A second of a run, or some that were merged.

    Attributes:
        seconds: how many they are.
        due: how many requests were due in them.
        sent: how many were sent in them.
        deviation: the standard deviation of `due`, where that is random.
    """

    seconds: int
    due: float
    sent: int
    deviation: float = 0.0

    def is_off(self, skew_s: float = 0.0) -> bool:
        """Whether the plan was missed.

        Args:
            skew_s: how well the workers knew the clock: so much may be sent in the second beside.
        """
        allowed = max(_MOST_OFF_REQUESTS, MOST_OFF * self.due)
        allowed += _DEVIATIONS * self.deviation + skew_s * self.due / self.seconds
        return abs(self.sent - self.due) > allowed


def check_plan(seconds: Iterable[PlannedSeconds], load: Load, skew_s: float = 0.0) -> PlanSummary:
    """Compare what was sent with what was due, and say why they differ.

    Args:
        seconds: of the run.
        load: what else is known of it.
        skew_s: how well the workers knew the clock.
    """
    judged, off, missed = 0, 0, 0
    for part in seconds:
        judged += part.seconds
        if part.is_off(skew_s):
            off += part.seconds
            missed += max(0, math.ceil(part.due) - part.sent)
    return PlanSummary(
        seconds=judged,
        off_seconds=off,
        off_share=round(off / judged, 6) if judged else 0.0,
        missed=missed,
        causes=find_causes(load, missed) if off else [],
    )


def list_planned(
    rows: Iterable[SeriesRow],
    periods: Iterable[tuple[ActivePeriod, float]],
    dues: DueCounts,
    settled_to: float = math.inf,
) -> Iterator[PlannedSeconds]:
    """The seconds of a run that can be compared with its schedule.

    Args:
        rows: its series, in order of time.
        periods: its periods of activity, each with what the clock of the schedule says at its end.
        dues: tells what is due.
        settled_to: up to which Unix time all workers have told what they sent.
    """
    kept = list(rows)
    reached_s = 0.0
    for period, stop_s in periods:
        begin_at = period.unix_time(max(reached_s, period.offset_s))
        end_at = min(settled_to, period.unix_time(min(stop_s, dues.duration_s)))
        reached_s = max(reached_s, stop_s)
        within = range(math.ceil(begin_at - _ROUNDED_S), math.floor(end_at + _ROUNDED_S))
        for second, length, sent in _cut(within, kept):
            begin = dues.count_before(period.schedule_s(second))
            end = dues.count_before(period.schedule_s(second + length))
            deviation = math.sqrt(begin.variance + end.variance)
            yield PlannedSeconds(length, end.number - begin.number, sent, deviation)


def _cut(within: range, rows: Sequence[SeriesRow]) -> Iterator[tuple[int, int, int]]:
    """The seconds of a range, as the rows cut them: begin, length, and how many requests were sent."""
    at = within.start
    for row in rows:
        if row.second >= within.stop:
            break
        if row.second >= at:
            yield from _fill(at, row.second)
            if row.second + row.seconds > within.stop:
                return
            yield row.second, row.seconds, row.sent
        at = max(at, row.second + row.seconds)
    yield from _fill(at, within.stop)


def _fill(start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """Seconds without a row: nothing was sent in them."""
    if stop - start > _LONGEST_GAP_S:
        yield start, stop - start, 0
    else:
        yield from ((second, 1, 0) for second in range(start, stop))
