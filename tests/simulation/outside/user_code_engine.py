"""The engine of a simulated worker that runs user code: what it has in hand is with a host that may die.

The host has some iterations more than it can begin at once, unless they have a pace; these are untouched as
long as they wait. Each iteration makes some requests, which are counted by name just before it ends. When the
host dies, what it has begun is given back as perhaps sent, and the rest as untouched.
"""

import asyncio
from collections import deque
from typing import Any

from tests.simulation.outside.engine import SimulatedEngine
from tests.simulation.outside.target import FAILED_CHECK, OK, TIMEOUT

from oku_core.accounting.outcome import OUTCOMES
from oku_workers.executions.execution import Execution
from oku_workers.executions.tally import Tally

_AHEAD = 5
_RESTART_S = 0.5


class SimulatedUserCode(SimulatedEngine):
    """The same with a host; the arguments are those of `SimulatedEngine`."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._waiting: deque[tuple[Tally, int, int, int]] = deque()
        self._is_dead = False

    @property
    def in_flight(self) -> int:
        """Iterations that the host has, begun or not."""
        return len(self._requests) + len(self._waiting)

    @property
    def _is_full(self) -> bool:
        """Whether no iteration can begin; a dead host begins none."""
        return self._is_dead or len(self._requests) >= self.window

    @property
    def _is_sated(self) -> bool:
        ahead = 0 if self._feed.is_paced else min(self.window, _AHEAD)
        return self._is_dead or self.in_flight >= self.window + ahead

    def group_in_flight(self) -> dict[Execution, list[int]]:
        """The coordinates that the host has of each execution, begun or not."""
        grouped = {execution: list(indices) for execution, indices in super().group_in_flight().items()}
        for tally, coordinate, *_ in self._waiting:
            grouped.setdefault(tally.execution, []).append(coordinate)
        return grouped

    def cancel(self, execution: Execution) -> None:
        """Drop the iterations of an execution; those that have not begun are untouched."""
        self._drop_waiting(execution)
        super().cancel(execution)

    def kill_host(self) -> None:
        """The host dies with all that it has; after a while there is another."""
        if self._is_dead:
            return
        self._is_dead = True
        self._drop_waiting()
        for execution in {tally.execution: None for tally, _ in self._requests}:
            super().cancel(execution)
        self._note_change()
        asyncio.get_running_loop().call_later(_RESTART_S, self._revive)

    def _revive(self) -> None:
        self._is_dead = False
        self._note_change()

    def _drop_waiting(self, execution: Execution | None = None) -> None:
        kept: deque[tuple[Tally, int, int, int]] = deque()
        while self._waiting:
            handed = self._waiting.popleft()
            if execution is None or handed[0].execution is execution:
                handed[0].execution.give_back(handed[1], is_untouched=True)
            else:
                kept.append(handed)
        self._waiting = kept

    def _note_change(self) -> None:
        while self._waiting and not self._is_full:
            self._begin(*self._waiting.popleft())
        super()._note_change()

    def _send(self, tally: Tally, coordinate: int, index: int, due_ns: int) -> None:
        self._note_taken(tally.execution, coordinate, index)
        self._waiting.append((tally, coordinate, index, due_ns))
        self._note_change()

    def _end(self, tally: Tally, coordinate: int, took_s: float, lateness_us: int) -> None:
        del self._requests[tally, coordinate]
        target = self._find_target(tally.execution.lease.run)
        outcome = target.find_answer(coordinate).outcome
        latency_us = round(took_s * 1e6)
        for name in target.list_inner(coordinate):
            target.inner[name] += 1
            tally.execution.find_inner(tally.phase, name).add(OK, 200, latency_us, 10)
        if outcome in (OK, FAILED_CHECK):
            if outcome != OK:
                tally.explain(outcome, coordinate, "step 0: check")
            tally.complete(outcome, latency_us, lateness_us)
        else:
            tally.fail(
                outcome, coordinate, "no end" if outcome == TIMEOUT else OUTCOMES[outcome], lateness_us
            )
        self._note_change()
