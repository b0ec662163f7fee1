"""The feed of an engine: the indices of all executions, one execution after the other.

So the window of requests stays full where one lease ends and the next begins. An engine looks at `current`,
which says whose index comes next, and takes it.
"""

import asyncio
from collections import deque

from oku_workers.executions.execution import Execution


class Feed:
    """The indices that are still to be sent; belongs to the thread of the event loop."""

    def __init__(self) -> None:
        self.current: Execution | None = None
        """The execution to take from; its `next_index` is below its `stop`."""
        self._waiting: deque[Execution] = deque()
        self._parked: deque[asyncio.Future[None]] = deque()

    def add(self, execution: Execution) -> None:
        """Put an execution behind those that are there; one without an index is finished at once."""
        execution.settle()
        self._waiting.append(execution)
        if self.current is None:
            self.advance()

    @property
    def remaining(self) -> int:
        """How many indices there are to take."""
        executions = self._waiting if self.current is None else (self.current, *self._waiting)
        return sum(execution.stop - execution.next_index for execution in executions)

    def take(self, execution: Execution) -> int:
        """The next index of an execution, which must be `current`."""
        index = execution.next_index
        execution.next_index = index + 1
        if execution.next_index == execution.stop:
            self.advance()
        return index

    def withdraw(self, execution: Execution) -> None:
        """Take no further index of an execution."""
        execution.withdraw()
        if self.current is execution:
            self.advance()

    async def wait(self) -> None:
        """Wait until there may be an index to take."""
        parked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._parked.append(parked)
        await parked

    def advance(self) -> None:
        """Go on to the next execution that has an index to take."""
        self.current = None
        while self._waiting:
            execution = self._waiting.popleft()
            if execution.next_index < execution.stop:
                execution.restart_clock()
                self.current = execution
                self._wake()
                return

    def _wake(self) -> None:
        while self._parked:
            parked = self._parked.popleft()
            if not parked.done():
                parked.set_result(None)
