"""Counts complete answers; the engines that read from sockets themselves share it."""

from oku_workers.executions.tally import OK, TIMEOUT, Tally

Parsed = tuple[int, int, int, str]
"""What a complete answer is: outcome, status, bytes of body, and why it is not ok."""


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
