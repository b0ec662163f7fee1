"""The longest time of a request: the outcome of answers that take longer, and the sweep that finds them.

One sweep checks all requests periodically. A timer for each request, as in aiohttp, costs 10 % of a request.
"""

import asyncio
from collections.abc import Callable

from oku_core.accounting.outcome import FAILED_CHECK, OK, TIMEOUT
from oku_core.http_client.error_reason import explain_timeout
from oku_core.process.supervision import Health
from oku_workers.engines.http.answer_checks import CHECK_WITHIN
from oku_workers.engines.http.response_counting import Parsed

_PAUSE_S = 0.25
_SHORTEST_PAUSE_S = 0.005


class RequestTimeout:
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
        """The outcome of an answer that took too long to be ok."""
        outcome, status, received, _ = parsed
        if latency_ns > self.ns:
            return TIMEOUT, status, received, self.reason
        return (FAILED_CHECK, status, received, CHECK_WITHIN) if outcome == OK else parsed


async def keep_sweeping(sweep: Callable[[], None], limit_ns: int, health: Health) -> None:
    """Sweep for requests that exceed the limit: 50 times within it, and at least four times a second.

    Args:
        sweep: checks all requests.
        limit_ns: how long one may take.
        health: of the task that runs this.
    """
    pause_s = min(_PAUSE_S, max(limit_ns / 50e9, _SHORTEST_PAUSE_S))
    while True:
        await asyncio.sleep(pause_s)
        sweep()
        health.record_success()
