"""The feed of an engine: the indices of all executions, one execution after the other.

So the window of requests stays full where one lease ends and the next begins. An engine looks at `current`,
which says whose index comes next, and takes it. An execution that has reached its limit is passed over until
the limit is raised.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Mapping

from oku_workers.executions.execution import NO_MARK, Execution


def _ignore() -> None:
    """Nobody wants to know."""


class Feed:
    """The indices that are still to be sent; belongs to the thread of the event loop.

    Attributes:
        on_low: called when little is left of what may be taken, and limits hold more back.
        find_enough: gives the number of indices that is not little, however few of all it is; without it a
            third of what may be taken is little.
    """

    def __init__(self) -> None:
        self.current: Execution | None = None
        """The execution to take from; its `next_index` is below its `stop`."""
        self.on_low: Callable[[], None] = _ignore
        self.find_enough: Callable[[], float] = lambda: math.inf
        self._order: deque[Execution] = deque()
        self._marked: Execution | None = None
        self._is_low = False
        self._parked: deque[asyncio.Future[None]] = deque()

    def add(self, execution: Execution) -> None:
        """Put an execution behind those that are there; one without an index is finished at once."""
        execution.settle()
        self._order.append(execution)
        if self.current is None and execution.begin_segment():
            self.current = execution
        if self.current is not None:
            self._wake()
        if execution.allowed < execution.untaken and self._marked is None and not self._is_low:
            self._set_mark()

    @property
    def remaining(self) -> int:
        """How many indices may be taken now."""
        return sum(execution.allowed for execution in self._order)

    def find_first(self) -> Execution | None:
        """The execution to take from, now or once a limit allows it; None if nothing is left to take."""
        return self.current or next((each for each in self._order if each.untaken), None)

    def take(self, execution: Execution) -> int:
        """The next index of an execution, which must be `current`."""
        index = execution.next_index
        execution.next_index = index + 1
        if execution.next_index == execution.stop:
            self.advance()
        return index

    def raise_limits(self, limits: Mapping[Execution, int]) -> None:
        """Let more be taken; a limit never falls."""
        for execution, limit in limits.items():
            execution.limit = max(execution.limit, limit)
        self._choose()
        self._set_mark()

    def shorten(self, execution: Execution, end: int) -> None:
        """Take no position of an execution from `end` on; what was taken stays."""
        execution.shorten(end)
        if self.current is execution and execution.next_index == execution.stop:
            self.advance()

    def withdraw(self, execution: Execution) -> None:
        """Take no further index of an execution."""
        self.shorten(execution, 0)

    async def wait(self) -> None:
        """Wait until there may be an index to take."""
        parked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._parked.append(parked)
        await parked

    def advance(self) -> None:
        """Go on to the next segment, of this execution or of the next that may take."""
        execution = self.current
        if execution is not None:
            if execution is self._marked and execution.taken >= execution.mark:
                self._note_low()
            if execution.begin_segment():
                return
        self._choose()

    def _choose(self) -> None:
        """Take from the first execution that may, in the order in which they came."""
        order = self._order
        while order and not order[0].untaken:
            execution = order.popleft()
            execution.compact()
            if execution is self._marked:
                self._note_low()
        self.current = next((execution for execution in order if execution.begin_segment()), None)
        if self.current is not None:
            self._wake()

    def _set_mark(self) -> None:
        """Mark where little of what may be taken is left, unless limits hold nothing back."""
        if self._marked is not None:
            self._marked.mark = NO_MARK
        self._marked, self._is_low = None, False
        left = self.remaining
        if left == sum(execution.untaken for execution in self._order):
            return
        ahead = left - int(min(left // 3, self.find_enough()))
        for execution in self._order:
            allowed = execution.allowed
            if 0 < ahead <= allowed:
                execution.mark = execution.taken + ahead
                self._marked = execution
                if execution is self.current:
                    execution.begin_segment()
                return
            ahead -= allowed
        self._note_low()

    def _note_low(self) -> None:
        self._marked, self._is_low = None, True
        self.on_low()

    def _wake(self) -> None:
        while self._parked:
            parked = self._parked.popleft()
            if not parked.done():
                parked.set_result(None)
