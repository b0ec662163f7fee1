"""The engine of a simulated worker: it takes from the real feed, and sends to the simulated target.

It keeps its window full, as those do that speak HTTP. Each request takes as long as the target draws, times
the slowness of the worker.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.simulation.outside.target import OK, TIMEOUT, UNEXPECTED_STATUS, Target

from oku_core.spec.spec import Spec
from oku_workers.executions.execution import Execution
from oku_workers.executions.feed import Feed


class SimulatedEngine:
    """An engine as `EngineProtocol` wants it.

    Args:
        spec: what to send.
        feed: gives the indices.
        find_target: where to, by run.
        slowness: how many times longer than the target's pace a request takes.
        note_taken: is told of the execution and each index that is taken.

    Attributes:
        window: how many requests are in flight at most.
    """

    def __init__(
        self,
        spec: Spec,
        feed: Feed,
        find_target: Callable[[str], Target],
        slowness: float,
        note_taken: Callable[[Execution, int], None],
    ) -> None:
        self.window = spec.concurrency
        self._spec = spec
        self._feed = feed
        self._find_target = find_target
        self._slowness = slowness
        self._note_taken = note_taken
        self._requests: dict[tuple[Execution, int], asyncio.TimerHandle] = {}
        self._task: asyncio.Task[None] | None = None
        self._has_room = asyncio.Event()

    @property
    def in_flight(self) -> int:
        """Requests sent and not yet answered."""
        return len(self._requests)

    def group_in_flight(self) -> Mapping[Execution, Sequence[int]]:
        """The indices in flight of each execution that has any."""
        grouped: dict[Execution, list[int]] = {}
        for execution, index in self._requests:
            grouped.setdefault(execution, []).append(index)
        return grouped

    def start(self) -> None:
        """Begin to take from the feed."""
        self._task = asyncio.get_running_loop().create_task(self._fill())

    def cut_off(self, execution: Execution) -> None:
        """Drop the requests of an execution that are in flight and give their indices back."""
        for (owner, index), handle in tuple(self._requests.items()):
            if owner is execution:
                handle.cancel()
                del self._requests[owner, index]
                execution.give_back(index)
        self._has_room.set()

    def sweep(self) -> None:
        """Nothing takes longer than the limit here."""

    async def close(self) -> None:
        """Stop."""
        if self._task is not None:
            self._task.cancel()

    async def _fill(self) -> None:
        while True:
            while len(self._requests) < self.window and (execution := self._feed.current) is not None:
                self._send(execution, self._feed.take(execution))
            if len(self._requests) < self.window:
                await self._feed.wait()
            else:
                self._has_room.clear()
                await self._has_room.wait()

    def _send(self, execution: Execution, index: int) -> None:
        self._note_taken(execution, index)
        answer = self._find_target(execution.lease.run).take(index)
        delay_s = min(answer.latency_s * self._slowness, self._spec.timeout_s * 0.9)
        if answer.outcome == TIMEOUT:
            delay_s = self._spec.timeout_s
        loop: Any = asyncio.get_running_loop()
        self._requests[execution, index] = loop.call_later(delay_s, self._end, execution, index, delay_s)

    def _end(self, execution: Execution, index: int, took_s: float) -> None:
        del self._requests[execution, index]
        answer = self._find_target(execution.lease.run).answers[index]
        if answer.outcome in (OK, UNEXPECTED_STATUS):
            execution.answer(
                answer.status, round(took_s * 1e6), answer.received, expected=answer.outcome == OK
            )
        else:
            execution.fail(answer.outcome)
        self._has_room.set()
