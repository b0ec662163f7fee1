"""Turns an account into the figures that each part of a summary has: those of phases and those of targets."""

from collections.abc import Sequence
from typing import TypedDict

from oku_coordinator.ledger.storage.run_account import Account
from oku_core.accounting.outcome import build_cause_counts, build_outcome_counts, count_sent
from oku_core.results.rates import measure_rate
from oku_core.results.summary import LatencySummary, NotSentCounts, OutcomeCounts, build_latency_summary
from oku_core.results.timing_summary import TimingSummary, build_timing_summary


class AccountFigures(TypedDict):
    """The fields that the summaries of a phase and of a target have in common."""

    outcomes: OutcomeCounts
    not_sent: NotSentCounts
    statuses: dict[str, int]
    bytes_received: int
    latency_ms: LatencySummary
    response_time_ms: LatencySummary
    lateness_ms: LatencySummary
    timing_ms: TimingSummary


def build_figures(account: Account, measured: Account | None = None) -> AccountFigures:
    """The figures of an account.

    Args:
        account: what is counted.
        measured: whose distributions to take; those of the account by default.
    """
    if measured is None:
        measured = account
    return AccountFigures(
        outcomes=OutcomeCounts(**build_outcome_counts(account.outcomes)),
        not_sent=NotSentCounts(**build_cause_counts(account.not_sent)),
        statuses=dict(sorted(account.statuses.items())),
        bytes_received=account.bytes_received,
        latency_ms=build_latency_summary(measured.latency),
        response_time_ms=build_latency_summary(measured.response_time),
        lateness_ms=build_latency_summary(measured.lateness),
        timing_ms=build_timing_summary(measured.latency, measured.timings),
    )


def measure_sent_rps(outcomes: Sequence[int], seconds: float) -> float:
    """How many requests were sent and have ended per second of sending, as summaries say it."""
    return round(measure_rate(count_sent(outcomes), seconds), 1)
