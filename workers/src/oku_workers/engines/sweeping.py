"""Ends what takes too long: one look at all requests, time and again, and no timer for each of them."""

import asyncio
from collections.abc import Callable

from oku_core.process.supervision import Health

_PAUSE_S = 0.25
_SHORTEST_PAUSE_S = 0.005


async def keep_sweeping(sweep: Callable[[], None], limit_ns: int, health: Health) -> None:
    """Look for what takes longer than the limit: 50 times within it, and at least four times a second.

    Args:
        sweep: looks at all requests.
        limit_ns: how long one may take.
        health: of the task that runs this.
    """
    pause_s = min(_PAUSE_S, max(limit_ns / 50e9, _SHORTEST_PAUSE_S))
    while True:
        await asyncio.sleep(pause_s)
        sweep()
        health.note_well()
