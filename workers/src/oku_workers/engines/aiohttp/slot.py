"""A slot of the aiohttp engine, which sends one request after another; connections find it by its task."""

import asyncio
from contextvars import ContextVar
from time import monotonic_ns
from typing import TYPE_CHECKING

from oku_workers.engines.aiohttp.route import Route
from oku_workers.feed.feed_protocol import FeedProtocol

if TYPE_CHECKING:
    from oku_workers.executions.tally import Tally

GIVEN_BACK = -1
"""The ending, beside the outcomes, of a request that is cut off and given back."""


class Slot:
    """One request in flight, or none while `tally` is None.

    Attributes:
        task: sends it.
        tally: counts it.
        coordinate: its place in the ledger.
        sent_ns: when it was sent.
        lateness_us: how long after its due time that was.
        route: what kind of request it is.
        ending: the outcome that its cut gives it, or `GIVEN_BACK`; None unless it is cut off.
        cut_ns: when it was cut off.
    """

    __slots__ = ("coordinate", "cut_ns", "ending", "lateness_us", "route", "sent_ns", "tally", "task")

    task: asyncio.Task[None]
    route: Route

    def __init__(self) -> None:
        self.tally: Tally | None = None
        self.coordinate = self.sent_ns = self.lateness_us = self.cut_ns = 0
        self.ending: int | None = None

    def take(self, feed: FeedProtocol) -> int:
        """Take the next request of a feed, and return its index; it is in flight from now on."""
        self.tally, self.coordinate, index, due_ns = feed.pop()
        self.sent_ns = now_ns = monotonic_ns()
        self.lateness_us = (now_ns - due_ns) // 1000 if due_ns else 0
        self.ending = None
        return index

    def cut(self, ending: int) -> None:
        """Cut off the request in flight, unless it is already; its task accounts for it with `ending`."""
        if self.ending is None:
            self.ending = ending
            self.cut_ns = monotonic_ns()
            self.task.cancel()


CURRENT_SLOT: ContextVar[Slot] = ContextVar("slot")
"""The slot whose task this is."""
