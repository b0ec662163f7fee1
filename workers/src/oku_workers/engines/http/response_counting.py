"""Counts complete answers; the engines that read from sockets themselves share it."""

import asyncio
from collections.abc import Callable, Sequence

from oku_core.accounting.outcome import OK, TIMEOUT
from oku_workers.executions.tally import Tally

Parsed = tuple[int, int, int, str]
"""A complete answer: outcome, status, bytes of body, and the reason if it is not ok."""
CountAnswers = Callable[[Tally, int, Sequence[int], int], None]
"""As `count_answers`."""


def count_answer(tally: Tally, coordinate: int, parsed: Parsed, latency_ns: int, lateness_us: int) -> None:
    """Count a complete answer.

    Args:
        tally: counts its request.
        coordinate: its place in the ledger.
        parsed: the answer.
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


def count_answers(tally: Tally, status: int, latencies_us: Sequence[int], received: int) -> None:
    """Count complete answers that are ok and have no details; never raises, since other answers follow.

    Args:
        tally: counts their requests.
        status: their status.
        latencies_us: how long each of them took.
        received: the bytes of their bodies.
    """
    try:
        tally.answer_all(status, latencies_us, received)
    except Exception as error:  # noqa: BLE001  # `abandon` reports it
        abandon(tally, error)


def abandon(tally: Tally, error: Exception) -> None:
    """Abandon an execution after a fault of our own, so that neither its lease nor other requests hang."""
    tally.execution.abandon(error)
    context = {"message": "an answer cannot be counted", "exception": error}
    asyncio.get_running_loop().call_exception_handler(context)
