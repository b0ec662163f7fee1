"""A target that answers at once, or after a delay, and remembers when each request came."""

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests.kit.servers.hostile_server import Exchange, HostileServer, Request, build_response

_OK = build_response(body=b"hi")


class Arrival(NamedTuple):
    """One request.

    Attributes:
        request: what came.
        at: when, in Unix time.
        turn: how many had come before on the same connection.
    """

    request: Request
    at: float
    turn: int


class ArrivalTarget:
    """Serves on the loopback in a thread of its own; what it remembers may be read meanwhile.

    Args:
        delay_s: from a request to its answer.

    Attributes:
        arrivals: all that came, in their order.
        may_answer: requests wait for their answers while it is clear.
    """

    def __init__(self, delay_s: float) -> None:
        self.arrivals: list[Arrival] = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self._delay_s = delay_s
        self._server = HostileServer(self._answer)

    @property
    def url(self) -> str:
        """Where it listens, with the index of each request."""
        return f"{self._server.url}/{{i}}"

    @property
    def connections(self) -> int:
        """How many were made."""
        return self._server.connections

    def group_by_index(self) -> dict[int, list[float]]:
        """The Unix times at which each index came."""
        times: dict[int, list[float]] = defaultdict(list)
        for arrival in self.arrivals:
            times[int(arrival.request.target[1:])].append(arrival.at)
        return times

    def count_most_within(self, length_s: float) -> int:
        """The most requests that came in any such length of time."""
        most, first = 0, 0
        for last, arrival in enumerate(self.arrivals):
            while self.arrivals[first].at <= arrival.at - length_s:
                first += 1
            most = max(most, last - first + 1)
        return most

    async def serve(self, started: threading.Event, ended: asyncio.Event) -> None:
        """Serve until told to end."""
        await self._server.start()
        started.set()
        await ended.wait()
        await self._server.end()

    async def _answer(self, exchange: Exchange) -> None:
        self.arrivals.append(Arrival(exchange.request, time.time(), exchange.turn))
        if self._delay_s:
            await asyncio.sleep(self._delay_s)
        while not self.may_answer.is_set():  # noqa: ASYNC110  # the event is of another thread
            await asyncio.sleep(0.02)
        await exchange.send(_OK)


@contextmanager
def run_arrival_target(delay_s: float = 0.0) -> Iterator[ArrivalTarget]:
    """Runs a target until the end of the block."""
    target, started, ended = ArrivalTarget(delay_s), threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(target.serve(started, ended)))
    thread.start()
    started.wait()
    try:
        yield target
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()
