"""The feed: the indices of all leases in hand, one after the other, so that the window of requests stays full
where one lease ends and the next begins.

An engine looks at `current`, which says whose index comes next, and takes it.
"""

import asyncio
from collections import deque

from oku_workers.leases.execution import Execution


class Feed:
    """See the module. Belongs to the thread of the event loop."""

    def __init__(self) -> None:
        self.current: Execution | None = None
        """The lease to take from; its `next_index` is below its `stop`."""
        self._waiting: deque[Execution] = deque()
        self._parked: deque[asyncio.Future[None]] = deque()

    def add(self, hand: Execution) -> None:
        """Put a lease behind those that are there; one without an index is finished at once."""
        hand.settle()
        self._waiting.append(hand)
        if self.current is None:
            self.advance()

    @property
    def remaining(self) -> int:
        """How many indices there are to take."""
        hands = self._waiting if self.current is None else (self.current, *self._waiting)
        return sum(hand.stop - hand.next_index for hand in hands)

    def take(self, hand: Execution) -> int:
        """The next index of `hand`, which must be `current`."""
        index = hand.next_index
        hand.next_index = index + 1
        if hand.next_index == hand.stop:
            self.advance()
        return index

    def withdraw(self, hand: Execution) -> None:
        """Take no further index of a lease."""
        hand.withdraw()
        if self.current is hand:
            self.advance()

    async def wait(self) -> None:
        """Wait until there may be an index to take."""
        parked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._parked.append(parked)
        await parked

    def advance(self) -> None:
        """Go on to the next lease that has an index to take."""
        self.current = None
        while self._waiting:
            hand = self._waiting.popleft()
            if hand.next_index < hand.stop:
                hand.restart_clock()
                self.current = hand
                self._wake()
                return

    def _wake(self) -> None:
        while self._parked:
            parked = self._parked.popleft()
            if not parked.done():
                parked.set_result(None)
