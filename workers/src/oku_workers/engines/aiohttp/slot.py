"""A slot of the aiohttp engine, which sends one request after another; connections find it by its task."""

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import monotonic_ns

from oku_workers.engines.aiohttp.route import Route
from oku_workers.executions.tally import Tally
from oku_workers.feed.feed_protocol import FeedProtocol


@dataclass(slots=True, eq=False)
class Slot:
    """One request in flight, or none while `tally` is None.

    Attributes:
        task: sends it.
        route: what kind of request it is.
        tally: counts it.
        coordinate: its place in the ledger.
        sent_ns: when it was sent.
        lateness_us: how long after its due time that was.
    """

    task: asyncio.Task[None] = field(init=False)
    route: Route = field(init=False)
    tally: Tally | None = None
    coordinate: int = 0
    sent_ns: int = 0
    lateness_us: int = 0

    def take(self, feed: FeedProtocol) -> int:
        """Take the next request of a feed, and return its index; it is in flight from now on."""
        self.tally, self.coordinate, index, due_ns = feed.pop()
        self.sent_ns = now_ns = monotonic_ns()
        self.lateness_us = (now_ns - due_ns) // 1000 if due_ns else 0
        return index


CURRENT_SLOT: ContextVar[Slot] = ContextVar("slot")
"""The slot whose task this is."""
