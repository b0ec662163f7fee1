"""How the arrivals of a run with a rate kept to its schedule, second by second: a pure rule.

The series says how many requests were sent in each second of the coordinator's clock, the schedule how many
were due. Seconds that a start, a pause or the end of the run cuts are left out, and those for which the clock
of the schedule was set back, when a run went on.
"""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from oku_core.results.active_seconds import list_active
from oku_core.results.plan_causes import Load, find_causes
from oku_core.results.series import SeriesRow
from oku_core.results.summary import PlanSummary
from oku_core.schedule.due_counts import DueCounts
from oku_core.schedule.wave import ActivePeriod

MOST_OFF = 0.01
"""The share of what is due in a second by which what is sent may differ."""
_MOST_OFF_REQUESTS = 1
_DEVIATIONS = 4
"""Where the number that is due is only expected, so many standard deviations are allowed."""


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
    for each in list_active(rows, periods, dues.duration_s, settled_to):
        begin, end = dues.count_before(each.begin_s), dues.count_before(each.end_s)
        deviation = math.sqrt(begin.variance + end.variance)
        yield PlannedSeconds(each.seconds, end.number - begin.number, each.sent, deviation)
