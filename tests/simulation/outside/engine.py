"""The engine of a simulated worker: it takes from the real feed, and sends to the simulated target.

It keeps its window full, as those do that speak HTTP. Each request takes as long as the target draws, times
the slowness of the worker. Answers with an unexpected status come in two pieces, and those that are cut off
had a connection of their own.
"""

import asyncio
import time
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from tests.simulation.outside.fullness import Fullness
from tests.simulation.outside.target import (
    DISCONNECTED,
    FAILED_CHECK,
    OK,
    TIMEOUT,
    UNEXPECTED_STATUS,
    Target,
)

from oku_core.accounting.outcome import OUTCOMES
from oku_core.spec.spec import Spec
from oku_workers.executions.execution import Execution
from oku_workers.executions.tally import Tally
from oku_workers.feed.feed_protocol import FeedProtocol


class SimulatedEngine:
    """An engine as `EngineProtocol` wants it.

    Args:
        spec: what to send.
        feed: gives the indices.
        find_target: where to, by run.
        slowness: how many times longer than the target's pace a request takes.
        note_taken: is told of the execution, each coordinate that is taken, and its index.
        note_sent: is called with its run after each request that is sent.

    Attributes:
        spec: as given.
        window: how many requests are in flight at most.
        fullness: when so many were.
    """

    def __init__(
        self,
        spec: Spec,
        feed: FeedProtocol,
        find_target: Callable[[str], Target],
        slowness: float,
        note_taken: Callable[[Execution, int, int], None],
        note_sent: Callable[[str], None],
    ) -> None:
        self.window = spec.concurrency
        self.spec = spec
        self._feed = feed
        self._find_target = find_target
        self._slowness = slowness
        self._note_taken, self._note_sent = note_taken, note_sent
        self._requests: dict[tuple[Tally, int], asyncio.TimerHandle] = {}
        self._task: asyncio.Task[None] | None = None
        self._room = asyncio.Event()
        self.fullness = Fullness()
        self.fault = ""
        self.host_load = None
        self.has_farewell = False

    async def open(self) -> None:
        """There is nothing to wait for."""

    @property
    def in_flight(self) -> int:
        """Requests sent and not yet answered."""
        return len(self._requests)

    @property
    def keeps_window(self) -> bool:
        """Whether no more than the window allows has been sent."""
        return len(self._requests) <= self.window

    def count_sent(self, run: str, leases: Container[str] | None = None) -> int:
        """How many requests of a run the target has; of these leases unless all count."""
        return sum(
            tally.execution.lease.run == run and (leases is None or tally.execution.lease.id in leases)
            for tally, _ in self._requests
        )

    def has_room(self) -> bool:
        """Whether another request could be sent now."""
        return not self._is_full

    def take_due(self) -> bool:
        """A task waits in the feed."""
        return False

    def flush_counts(self) -> None:
        """Nothing waits."""

    def group_in_flight(self) -> Mapping[Execution, Sequence[int]]:
        """The coordinates in flight of each execution that has any."""
        grouped: dict[Execution, list[int]] = {}
        for tally, coordinate in self._requests:
            grouped.setdefault(tally.execution, []).append(coordinate)
        return grouped

    def set_window(self, window: int) -> None:
        """Have so many requests in flight from now on; those beyond may end."""
        self.window = window
        self._note_change()

    def _note_change(self) -> None:
        self.fullness.note(time.monotonic(), is_full=self._is_full)
        if not self._is_sated:
            self._room.set()

    @property
    def _is_full(self) -> bool:
        """Whether nothing more can be sent."""
        return len(self._requests) >= self.window

    @property
    def _is_sated(self) -> bool:
        """Whether nothing more is taken from the feed."""
        return self._is_full

    def start(self) -> None:
        """Begin to take from the feed."""
        self._feed.attach(self)
        self._task = asyncio.get_running_loop().create_task(self._fill())

    def cancel(self, execution: Execution) -> None:
        """Drop the requests of an execution that are in flight and give their coordinates back."""
        for (tally, coordinate), handle in tuple(self._requests.items()):
            if tally.execution is execution:
                handle.cancel()
                del self._requests[tally, coordinate]
                self._give_back(execution, coordinate)
        self._note_change()

    def _give_back(self, execution: Execution, coordinate: int) -> None:
        """Give back a coordinate whose request was sent."""
        self._find_target(execution.lease.run).given_back[execution.lease.id] += 1
        execution.give_back(coordinate)

    def sweep(self) -> None:
        """Nothing takes longer than the limit here."""

    async def run_farewell(self, _: Execution) -> None:
        """There is nobody to take leave of."""

    async def close(self) -> None:
        """Stop."""
        if self._task is not None:
            self._task.cancel()

    async def _fill(self) -> None:
        while True:
            while not self._is_sated and self._feed.current is not None:
                self._send(*self._feed.pop())
            if not self._is_sated:
                await self._feed.wait()
            else:
                self._room.clear()
                await self._room.wait()

    def _send(self, tally: Tally, coordinate: int, index: int, due_ns: int) -> None:
        self._note_taken(tally.execution, coordinate, index)
        self._begin(tally, coordinate, index, due_ns)
        self._note_change()

    def _begin(self, tally: Tally, coordinate: int, _index: int, due_ns: int) -> None:
        lateness_us = (time.monotonic_ns() - due_ns) // 1000 if due_ns else 0
        answer = self._find_target(tally.execution.lease.run).take(coordinate)
        delay_s = min(answer.latency_s * self._slowness, self.spec.timeout_s * 0.9)
        if answer.outcome == TIMEOUT:
            delay_s = self.spec.timeout_s
        loop: Any = asyncio.get_running_loop()
        self._requests[tally, coordinate] = loop.call_later(
            delay_s, self._end, tally, coordinate, delay_s, lateness_us
        )
        self._note_sent(tally.execution.lease.run)

    def _end(self, tally: Tally, coordinate: int, took_s: float, lateness_us: int) -> None:
        del self._requests[tally, coordinate]
        answer = self._find_target(tally.execution.lease.run).find_answer(coordinate)
        if answer.outcome in (OK, UNEXPECTED_STATUS, FAILED_CHECK):
            latency_us = round(took_s * 1e6)
            if answer.outcome != OK:
                tally.explain(answer.outcome, coordinate, f"status {answer.status}")
            if answer.outcome == UNEXPECTED_STATUS:
                tally.record_split(latency_us, latency_us // 2)
            tally.answer(answer.outcome, answer.status, latency_us, answer.received, lateness_us)
        else:
            if answer.outcome == DISCONNECTED:
                tally.record_connection(200, 900)
            tally.fail(answer.outcome, coordinate, OUTCOMES[answer.outcome], lateness_us)
        self._note_change()
