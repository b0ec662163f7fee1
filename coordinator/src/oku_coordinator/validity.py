"""Which flags a report and a run deserve: the rules of the seventh law, as pure functions."""

from collections.abc import Iterable, Mapping, Sequence

from oku_core.lease import Report
from oku_core.outcome import count_answered
from oku_core.quantity import format_duration
from oku_core.summary import Flag, Validity

SATURATED_SHARE = 0.9
"""From this share of a second on, spent on a processor or waiting for one, requests queue in the worker."""
LAG_LIMIT_S = 0.1
"""An event loop that is later than this measures itself rather than the target."""


def judge_report(report: Report) -> Mapping[Flag, float]:
    """The flags of one report, each with the figure that earned it; none when it covers no request."""
    flags: dict[Flag, float] = {}
    if not report.covered:
        return flags
    if report.busy_share >= SATURATED_SHARE:
        flags[Flag.WORKER_SATURATED] = report.busy_share
    if report.max_lag_s >= LAG_LIMIT_S:
        flags[Flag.LOOP_LAG] = report.max_lag_s
    if report.clock_step_s:
        flags[Flag.CLOCK_SET] = report.clock_step_s
    return flags


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
    flags = [
        Validity(flag=flag, detail=_describe(flag, worst), requests=requests)
        for flag, requests, worst in kept
    ]
    accounted, answered = sum(outcomes), count_answered(outcomes)
    if accounted > answered:
        detail = "requests without a complete response are in no latency figure"
        flags.append(Validity(flag=Flag.UNANSWERED, detail=detail, requests=accounted - answered))
    if resent_at_most:
        detail = "at most so many were sent more than once; each is counted once"
        flags.append(Validity(flag=Flag.RESENT, detail=detail, requests=resent_at_most))
    if windows > 1:
        detail = f"measured in {windows} windows, with pauses between"
        flags.append(Validity(flag=Flag.INTERRUPTED, detail=detail, requests=accounted))
    if imbalance:
        flags.append(Validity(flag=Flag.UNBALANCED, detail=imbalance, requests=accounted))
    return flags


def _describe(flag: Flag, worst: float) -> str:
    if flag == Flag.WORKER_SATURATED:
        return f"a worker was busy for {worst:.0%} of a second: latencies include its own queueing"
    if flag == Flag.LOOP_LAG:
        return f"a worker's event loop was up to {format_duration(worst)} late: latencies include that"
    if flag == Flag.CLOCK_SET:
        by = format_duration(worst)
        return f"a clock was set by up to {by}: durations are right, times of day may not be"
    return "leases of lost workers were dealt out again; the load had a dip"
