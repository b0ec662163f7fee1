"""How the arrivals of a run with a rate kept to its schedule, second by second: a pure rule.

The series says how many requests were sent in each second of the coordinator's clock, the schedule how many
were due. Seconds that a start, a pause or the end of the run cuts are left out, and those for which the clock
of the schedule was set back, when a run went on.
"""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from oku_core.results.active_seconds import list_active
from oku_core.results.plan_causes import Load, OffPlanCause, find_causes
from oku_core.results.series import SeriesRow
from oku_core.schedule.due_counts import DueCounts
from oku_core.schedule.wave import ActivePeriod


class PlanSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How the arrivals of a run with a rate kept to its schedule, second by second.

    `seconds` is how many were compared: those that lie in a period of activity as a whole, as far as all
    workers have told of them, and the one in which a run has ended of which all is accounted. In
    `off_seconds` of them, what was sent is more than 1 %, and more than one request, away from what was due.
    `missed` is how many requests that were due in such seconds were not sent in them, and `causes` says why,
    the weightiest first.
    """

    seconds: int
    off_seconds: int
    off_share: float
    missed: int
    causes: list[OffPlanCause]


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
