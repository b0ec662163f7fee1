"""The rules by which leases and runs get flags of validity, as pure functions."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from oku_core.accounting.outcome import LOST, count_answered, count_sent
from oku_core.messaging.checkpoint import LeaseFigures
from oku_core.spec.values.quantity import format_duration
from oku_core.summary.plan_check import OffPlanCause, PlanSummary


class Flag(StrEnum):
    """Why a number of a summary may be misleading."""

    WORKER_SATURATED = "worker_saturated"
    """A worker was short of processor time: latencies include its own queueing."""
    LOOP_LAG = "loop_lag"
    """A worker's event loop was late: latencies include its stalls."""
    WORKERS_MISSING = "workers_missing"
    """The run began with fewer workers than it had asked for."""
    UNDERFILLED = "underfilled"
    """Fewer requests were in flight than were asked for, although some were left and the target answered."""
    WORKER_LOST = "worker_lost"
    """A worker died; its leases were given to other workers."""
    CLOCK_SET = "clock_set"
    """The clock of a machine was set: durations are right, times of day before and after do not agree."""
    CLOCK_SKEW = "clock_skew"
    """A worker did not know the coordinator's clock well: its arrivals may be early or late by the bound."""
    OFF_PLAN = "off_plan"
    """Seconds of a run with a rate had more or fewer arrivals than its schedule has."""
    RESENT = "resent"
    """Requests may have been sent more than once."""
    INTERRUPTED = "interrupted"
    """The run was paused or interrupted: it was measured in several periods."""
    UNANSWERED = "unanswered"
    """Requests without a complete response are in no latency figure."""
    SERVED_UNKNOWN = "served_unknown"
    """What the delay servers counted is unknown, so the account is not compared with it."""
    UNBALANCED = "unbalanced"
    """The account does not agree with what the delay servers counted."""


class Validity(msgspec.Struct, frozen=True, kw_only=True):
    """A flag, what it means here, and how many requests it concerns.

    `share` is their share of the accounted requests; None if they are not among these.
    """

    flag: Flag
    detail: str
    requests: int
    share: float | None = None


MOST_SKEW_S = 0.005
"""How well workers must know the clock of a schedule; otherwise gaps of a few ms are not as planned."""
FEWEST_STRAINED = 0.01
"""The share of requests that must be affected; a smaller one cannot have moved any quantile up to p99."""
MOST_UNDERFILLED = 0.03
"""The share of seconds with an underfilled window that is not worth a flag."""
FEWEST_UNDERFILLED_S = 1.5
"""Fewer such seconds for each worker are its first one, in which it opens its connections."""
_BESIDE_ACCOUNTED = frozenset({Flag.WORKER_LOST, Flag.CLOCK_SET, Flag.RESENT})
"""These flags concern leases and requests that were sent again, which are not among the accounted ones."""
_OF_ALL = frozenset({Flag.WORKERS_MISSING, Flag.CLOCK_SKEW})
"""These flags concern the whole run."""
_STRAINS = frozenset({Flag.WORKER_SATURATED, Flag.LOOP_LAG})


class LeaseFlag(NamedTuple):
    """A flag of one lease, with the number of requests it concerns and the figure behind it."""

    flag: Flag
    requests: int
    figure: float


class WindowFill(NamedTuple):
    """How well the windows of all workers were filled, in seconds of a worker each.

    Args:
        watched_s: the seconds in which there were requests left to take and the target answered.
        underfilled_s: the part of these seconds in which less than 97 % of the window was in flight for lack
            of work.
        workers: how many workers these are the seconds of.
    """

    watched_s: float = 0.0
    underfilled_s: float = 0.0
    workers: int = 0

    @property
    def is_poor(self) -> bool:
        """Whether the load was noticeably less than requested."""
        most_s = max(FEWEST_UNDERFILLED_S * self.workers, MOST_UNDERFILLED * self.watched_s)
        return self.watched_s > 0 and self.underfilled_s > most_s


_UNWATCHED = WindowFill()
_CAUSES = {
    OffPlanCause.TARGET: "the target was too slow for the number of requests that may be in flight",
    OffPlanCause.CAP: "the concurrency is too small for the rate at the target's usual latency",
    OffPlanCause.WORKER: "workers sent late, or died",
    OffPlanCause.BROKER: "no worker had the requests in time",
}


def flag_growth(
    before: LeaseFigures, after: LeaseFigures, *, covered_before: int, covered: int
) -> list[LeaseFlag]:
    """The flags that a lease gets between two of its checkpoints; none if they concern no request.

    `covered_before` and `covered` are how many requests the checkpoints cover.
    """
    # All requests of a lease are suspect once the clock was set, those from before that time, too.
    set_since = covered_before if before.clock_step_s else 0
    flags = (
        LeaseFlag(Flag.WORKER_SATURATED, after.saturated - before.saturated, after.busy_share),
        LeaseFlag(Flag.LOOP_LAG, after.lagged - before.lagged, after.max_lag_s),
        LeaseFlag(Flag.CLOCK_SET, covered - set_since if after.clock_step_s else 0, after.clock_step_s),
    )
    return [flag for flag in flags if flag.requests > 0]


def build_validity(
    kept: Iterable[tuple[Flag, int, float]],
    *,
    outcomes: Sequence[int],
    resent_at_most: int,
    periods: int,
    imbalance: str | None,
    fill: WindowFill = _UNWATCHED,
) -> list[Validity]:
    """All flags of a run.

    Args:
        kept: flags from the ledger, with the number of requests they concern and the worst figure.
        outcomes: the outcomes of the run.
        resent_at_most: how many requests of the run may have been sent more than once.
        periods: how many times the run was started or resumed.
        imbalance: the result of `find_imbalance`.
        fill: how well the windows of its workers were filled.
    """
    accounted, answered = sum(outcomes), count_answered(outcomes)
    flags: list[Validity] = []

    def add(flag: Flag, requests: int, detail: str) -> None:
        is_part = accounted > 0 and flag not in _BESIDE_ACCOUNTED
        share = min(1.0, round(requests / accounted, 6)) if is_part else None
        flags.append(Validity(flag=flag, detail=detail, requests=requests, share=share))

    for flag, requests, worst in kept:
        if flag in _OF_ALL:
            add(flag, accounted, _describe(flag, worst))
        elif flag not in _STRAINS or requests >= FEWEST_STRAINED * accounted:
            add(flag, requests, _describe(flag, worst))
    if fill.is_poor:
        share = f"{fill.underfilled_s / fill.watched_s:.1%}"
        detail = (
            f"less than 97% of the window was in flight in {share} of the seconds, although requests were "
            "left: neither a highest rate nor the target kept it from being full"
        )
        add(Flag.UNDERFILLED, accounted, detail)
    if (sent := count_sent(outcomes)) > answered:
        detail = "requests without a complete response are in no latency figure"
        add(Flag.UNANSWERED, sent - answered, detail)
    if resent_at_most:
        lost = ", or are lost and may have been sent" if outcomes[LOST] else ""
        detail = f"at most this many were sent more than once{lost}; each is counted once"
        add(Flag.RESENT, resent_at_most, detail)
    if periods > 1:
        detail = f"measured in {periods} periods, with pauses between"
        add(Flag.INTERRUPTED, accounted, detail)
    if imbalance:
        add(Flag.UNBALANCED, accounted, imbalance)
    return flags


def flag_off_plan(plan: PlanSummary, accounted: int) -> Validity:
    """The flag of a run whose arrivals missed its schedule in some seconds."""
    where = f"in {plan.off_share:.1%} of the seconds ({plan.off_seconds:,} of {plan.seconds:,})"
    causes = "; ".join(f"{_CAUSES[cause]} ({cause})" for cause in plan.causes)
    detail = f"{where} the requests sent were off the plan by more than 1%: {causes}"
    share = min(1.0, round(plan.missed / accounted, 6)) if accounted else None
    return Validity(flag=Flag.OFF_PLAN, detail=detail, requests=plan.missed, share=share)


def flag_unknown_served(accounted: int) -> Validity:
    """The flag of a run whose servers did not report their counts."""
    detail = "the delay servers did not all say what they counted: the account is not compared with it"
    return Validity(flag=Flag.SERVED_UNKNOWN, detail=detail, requests=accounted, share=1.0)


def _describe(flag: Flag, worst: float) -> str:
    if flag == Flag.WORKER_SATURATED:
        return f"workers were busy for up to {worst:.0%} of a second: latencies include their own queueing"
    if flag == Flag.LOOP_LAG:
        return f"a worker's event loop was up to {format_duration(worst)} late: latencies include that time"
    if flag == Flag.WORKERS_MISSING:
        who = "1 worker was" if worst == 1 else f"up to {worst:,.0f} workers were"
        return f"{who} missing when the run began: until they come, the load is less than was asked for"
    if flag == Flag.CLOCK_SKEW:
        bound_ms = f"{1000 * worst:,.1f} ms"
        return f"a worker knew the clock only to within {bound_ms}: its requests may be off by as much"
    if flag == Flag.CLOCK_SET:
        by = format_duration(worst)
        return f"a clock was set by up to {by}: durations are right, times of day may not be"
    return "leases of lost workers were given to other workers; the load dipped meanwhile"
