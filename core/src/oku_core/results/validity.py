"""Which flags a report and a run deserve: the rules of the seventh law, as pure functions."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from oku_core.accounting.outcome import count_answered
from oku_core.messaging.lease import Report
from oku_core.quantity import format_duration
from oku_core.results.summary import Flag, Validity

FEWEST_STRAINED = 0.01
"""Of the requests, so many have to be affected: of fewer, no quantile up to p99 can have moved."""
_BESIDE_ACCOUNTED = frozenset({Flag.WORKER_LOST, Flag.CLOCK_SET, Flag.RESENT})
"""These tell of leases and of what was sent again, which is no part of what is accounted."""
_STRAINS = frozenset({Flag.WORKER_SATURATED, Flag.LOOP_LAG})


class Mark(NamedTuple):
    """A flag of one report: how many requests it concerns, and the figure that earned it."""

    flag: Flag
    requests: int
    figure: float


def judge_report(report: Report) -> list[Mark]:
    """The flags of one report; none when it covers no request."""
    marks = (
        Mark(Flag.WORKER_SATURATED, report.saturated, report.busy_share),
        Mark(Flag.LOOP_LAG, report.lagged, report.max_lag_s),
        Mark(Flag.CLOCK_SET, report.covered if report.clock_step_s else 0, report.clock_step_s),
    )
    return [mark for mark in marks if mark.requests]


def build_validity(
    kept: Iterable[tuple[Flag, int, float]],
    *,
    outcomes: Sequence[int],
    resent_at_most: int,
    windows: int,
    imbalance: str | None,
) -> list[Validity]:
    """All flags of a run.

    Args:
        kept: flags kept with the ledger, with how many requests they concern and the worst figure.
        outcomes: of the run.
        resent_at_most: of the run.
        windows: how many times it was started.
        imbalance: what `find_imbalance` said.
    """
    accounted, answered = sum(outcomes), count_answered(outcomes)
    flags: list[Validity] = []

    def add(flag: Flag, requests: int, detail: str) -> None:
        is_part = accounted > 0 and flag not in _BESIDE_ACCOUNTED
        share = min(1.0, round(requests / accounted, 6)) if is_part else None
        flags.append(Validity(flag=flag, detail=detail, requests=requests, share=share))

    for flag, requests, worst in kept:
        if flag not in _STRAINS or requests >= FEWEST_STRAINED * accounted:
            add(flag, requests, _describe(flag, worst))
    if accounted > answered:
        detail = "requests without a complete response are in no latency figure"
        add(Flag.UNANSWERED, accounted - answered, detail)
    if resent_at_most:
        detail = "at most so many were sent more than once; each is counted once"
        add(Flag.RESENT, resent_at_most, detail)
    if windows > 1:
        detail = f"measured in {windows} windows, with pauses between"
        add(Flag.INTERRUPTED, accounted, detail)
    if imbalance:
        add(Flag.UNBALANCED, accounted, imbalance)
    return flags


def judge_served(accounted: int) -> Validity:
    """The flag of a run whose servers could not say what they counted."""
    detail = "the delay servers did not all say what they counted: the account is not compared with it"
    return Validity(flag=Flag.SERVED_UNKNOWN, detail=detail, requests=accounted, share=1.0)


def _describe(flag: Flag, worst: float) -> str:
    if flag == Flag.WORKER_SATURATED:
        return f"workers were busy for up to {worst:.0%} of a second: latencies include their own queueing"
    if flag == Flag.LOOP_LAG:
        return f"a worker's event loop was up to {format_duration(worst)} late: latencies include that"
    if flag == Flag.CLOCK_SET:
        by = format_duration(worst)
        return f"a clock was set by up to {by}: durations are right, times of day may not be"
    return "leases of lost workers were dealt out again; the load had a dip"
