"""How the arrivals of a run with a rate kept to its schedule, second by second, and why they missed it.

The series has the requests sent in each second of the coordinator's clock, the schedule the requests due.
Seconds that a start, a pause or the end of the run cuts are left out, as are seconds for which the clock of
the schedule was set back, when a run went on.
"""

import math
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

import msgspec

from oku_core.accounting.account import Account
from oku_core.accounting.histogram import bucket_bounds_us
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import LOST, count_answered, count_sent
from oku_core.results.active_seconds import list_active
from oku_core.results.series import SeriesRow
from oku_core.schedule.due_counts import DueCounts
from oku_core.schedule.wave import ActivePeriod
from oku_core.spec.load import IN_FLIGHT_S


class OffPlanCause(StrEnum):
    """Why arrivals missed the plan of a run with a rate."""

    TARGET = "target"
    """The target was too slow for the number of requests that may be in flight."""
    CAP = "cap"
    """The concurrency that the user has set is too small for the rate, as the target usually answers."""
    WORKER = "worker"
    """Workers sent late, or died."""
    BROKER = "broker"
    """No worker had the requests in time: the broker, the coordinator or all workers were away."""


_FEWEST = 0.01
"""A cause of a smaller share of the missed requests is not reported."""


class Load(NamedTuple):
    """Facts of a run beside its seconds, to explain why it missed its plan.

    Attributes:
        account: of all its requests.
        peak_rps: the highest rate of the schedule.
        window: how many requests may be in flight, over all workers.
    """

    account: Account
    peak_rps: float
    window: int

    @property
    def held_s(self) -> float:
        """The mean latency at which the highest rate fills the window, by Little's law."""
        return self.window / self.peak_rps

    @property
    def may_be_full(self) -> bool:
        """Whether the window may have been full at a time, by the numbers of requests and their latencies.

        When it is, the requests in it were sent over `held_s` or more, so half of them take half of that.
        """
        outcomes, latency = self.account.outcomes, self.account.histogram(Time.LATENCY)
        slow = count_sent(outcomes) - count_answered(outcomes)
        half_us = self.held_s / 2 * 1e6
        slow += sum(count for place, count in latency.filled() if bucket_bounds_us(place)[1] >= half_us)
        return 2 * slow >= self.window

    @property
    def cause_of_full(self) -> OffPlanCause:
        """Why the window was full: it does not hold the rate as a rule, or the target was slow."""
        latency = self.account.histogram(Time.LATENCY)
        if self.held_s >= IN_FLIGHT_S or not latency.total:
            return OffPlanCause.TARGET
        usual_s = latency.quantile_us(0.5) / 1e6
        return OffPlanCause.CAP if usual_s > self.held_s else OffPlanCause.TARGET


def find_causes(load: Load, missed: int) -> list[OffPlanCause]:
    """Why this many requests were not sent in their seconds, the weightiest cause first.

    Late requests are the window's fault if it may have been full, else the worker's.
    """
    capped, late, not_dealt = load.account.not_sent
    full = load.cause_of_full
    counts = dict.fromkeys(OffPlanCause, 0)
    counts[full] = capped
    counts[OffPlanCause.WORKER] = late + load.account.outcomes[LOST]
    counts[OffPlanCause.BROKER] = not_dealt
    shifted = missed - sum(counts.values())
    if shifted > 0 or not any(counts.values()):
        counts[full if load.may_be_full else OffPlanCause.WORKER] += max(1, shifted)
    fewest = _FEWEST * sum(counts.values())
    return sorted((cause for cause in counts if counts[cause] > fewest), key=lambda cause: -counts[cause])


class PlanSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How the arrivals of a run with a rate kept to its schedule, second by second.

    `seconds` is how many were compared: seconds that lie in a period of activity as a whole and that all
    workers have reported, and the last second of a run whose requests are all accounted. In `off_seconds` of
    them, the number sent is more than 1 %, and more than one request, off the number due. `missed` is how
    many requests that were due in such seconds were not sent in them, and `causes` has the reasons, the
    weightiest first.
    """

    seconds: int
    off_seconds: int
    off_share: float
    missed: int
    causes: list[OffPlanCause]


MOST_OFF = 0.01
"""The relative difference between requests due and sent that a second may have."""
_MOST_OFF_REQUESTS = 1
_DEVIATIONS = 4
"""Where the number due is only expected, this many standard deviations are allowed."""


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
        """Whether the plan was missed; as much as is due in `skew_s` may be sent in the second beside."""
        allowed = max(_MOST_OFF_REQUESTS, MOST_OFF * self.due)
        allowed += _DEVIATIONS * self.deviation + skew_s * self.due / self.seconds
        return abs(self.sent - self.due) > allowed


def check_plan(seconds: Iterable[PlannedSeconds], load: Load, skew_s: float = 0.0) -> PlanSummary:
    """Compare requests sent with requests due, and explain the difference; clocks agree to `skew_s`."""
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
        periods: its periods of activity, each with the clock of the schedule at its end.
        dues: finds the requests that are due.
        settled_to: the Unix time up to which all workers have reported.
    """
    for each in list_active(rows, periods, dues.duration_s, settled_to):
        begin, end = dues.count_before(each.begin_s), dues.count_before(each.end_s)
        deviation = math.sqrt(begin.variance + end.variance)
        yield PlannedSeconds(each.seconds, end.number - begin.number, each.sent, deviation)
