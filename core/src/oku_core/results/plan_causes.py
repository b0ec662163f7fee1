"""Why the arrivals of a run with a rate missed its plan: a pure rule."""

from enum import StrEnum
from typing import NamedTuple

from oku_core.accounting.account import Account
from oku_core.accounting.histogram import bucket_bounds_us
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import LOST, count_answered, count_sent
from oku_core.spec.load import IN_FLIGHT_S


class OffPlanCause(StrEnum):
    """Why arrivals missed the plan of a run with a rate."""

    TARGET = "target"
    """The target was slower than what may be in flight holds."""
    CAP = "cap"
    """The concurrency that the user has set is too small for the rate, as the target usually answers."""
    WORKER = "worker"
    """Workers sent late, or died."""
    BROKER = "broker"
    """No worker had the requests in time: the broker, the coordinator or all workers were away."""


_FEWEST = 0.01
"""A cause that stands for a smaller share of what was missed is not told."""


class Load(NamedTuple):
    """What is known of a run beside its seconds, to say why it missed its plan.

    Attributes:
        account: of all its requests.
        peak_rps: the highest rate of the schedule.
        window: how many requests may be in flight, over all workers.
        is_own_window: whether the user has said so.
    """

    account: Account
    peak_rps: float
    window: int
    is_own_window: bool

    @property
    def held_s(self) -> float:
        """The mean latency at which the highest rate fills the window, by Little's law."""
        return self.window / self.peak_rps

    @property
    def may_be_full(self) -> bool:
        """Whether so many requests took so long that the window may have been full at a time.

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
        if not self.is_own_window or self.held_s >= IN_FLIGHT_S or not latency.total:
            return OffPlanCause.TARGET
        usual_s = latency.quantile_us(0.5) / 1e6
        return OffPlanCause.CAP if usual_s > self.held_s else OffPlanCause.TARGET


def find_causes(load: Load, missed: int) -> list[OffPlanCause]:
    """Why so many requests were not sent in their seconds, the weightiest cause first.

    What was sent late is the window's fault if that may have been full, else the worker's.
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
