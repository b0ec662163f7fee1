"""Counts complete answers; the engines that read from sockets themselves share it."""

from oku_core.http_client.error_reason import explain_timeout
from oku_workers.engines.answer_checks import CHECK_WITHIN
from oku_workers.executions.tally import FAILED_CHECK, OK, TIMEOUT, Tally

Parsed = tuple[int, int, int, str]
"""What a complete answer is: outcome, status, bytes of body, and why it is not ok."""


class TimeLimit:
    """The longest time of a request.

    Args:
        limit_s: that time.

    Attributes:
        ns: the same in nanoseconds.
        reason: why a request failed that took longer.
    """

    __slots__ = ("ns", "reason")

    def __init__(self, limit_s: float) -> None:
        self.ns = int(limit_s * 1e9)
        self.reason = explain_timeout(limit_s)

    def judge(self, parsed: Parsed, latency_ns: int) -> Parsed:
        """What an answer counts as that took longer than it may to be ok."""
        outcome, status, received, _ = parsed
        if latency_ns > self.ns:
            return TIMEOUT, status, received, self.reason
        return (FAILED_CHECK, status, received, CHECK_WITHIN) if outcome == OK else parsed


def count_answer(tally: Tally, coordinate: int, parsed: Parsed, latency_ns: int, lateness_us: int) -> None:
    """Count a complete answer.

    Args:
        tally: counts its request.
        coordinate: the place of that in the ledger.
        parsed: what it is.
        latency_ns: how long it took.
        lateness_us: how long after its due time the request was sent.
    """
    outcome, status, received, reason = parsed
    try:
        if outcome == TIMEOUT:
            tally.fail(TIMEOUT, coordinate, reason, lateness_us)
            return
        if outcome != OK:
            tally.explain(outcome, coordinate, reason)
        tally.answer(outcome, status, latency_ns // 1000, received, lateness_us)
    except Exception as error:  # a fault of our own, and the lease must not hang then
        tally.execution.abandon(error)
        raise
