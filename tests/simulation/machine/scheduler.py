"""Simulated time: what is due next happens next, and waiting costs nothing.

There is one queue for all processes. Two things that are due at the same instant happen in the order in which
they were asked for, so one seed always gives one history.
"""

import heapq
from collections.abc import Callable
from typing import Protocol


class Runnable(Protocol):
    """What a process runs when it is due."""

    def cancelled(self) -> bool:
        """Whether it is not to be run any more."""
        ...


class Runner(Protocol):
    """A process, as far as the scheduler knows it."""

    def run_due(self, due: Runnable) -> None:
        """Run what is due now."""
        ...


class Scheduler:
    """The queue of all that is to happen.

    Attributes:
        now: true time in seconds since the beginning; the clocks of processes may differ from it.
        steps: how many things have happened.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.steps = 0
        self._asked = 0
        self._due: list[tuple[float, int, Runner | None, Runnable | Callable[[], object]]] = []

    def push(self, when: float, runner: Runner, due: Runnable) -> None:
        """Let a process run something at a true time."""
        self._asked += 1
        heapq.heappush(self._due, (max(when, self.now), self._asked, runner, due))

    def after(self, delay_s: float, call: Callable[[], object]) -> None:
        """Call a function of the world itself, which no process runs."""
        self._asked += 1
        heapq.heappush(self._due, (self.now + max(0.0, delay_s), self._asked, None, call))

    def step(self) -> bool:
        """Let the next thing happen; False when nothing is to happen any more."""
        if not self._due:
            return False
        self.now, _, runner, due = heapq.heappop(self._due)
        self.steps += 1
        if runner is None:
            due()  # type: ignore[operator]  # what has no process is a function
        else:
            runner.run_due(due)  # type: ignore[arg-type]
        return True

    def run_until(self, is_over: Callable[[], bool]) -> bool:
        """Go on until it is over; False when nothing is to happen any more before that."""
        while not is_over():
            if not self.step():
                return False
        return True
