"""What a feed is to engines and to those who have leases, and where engines wait for it."""

import asyncio
import math
from collections import deque
from collections.abc import Mapping
from typing import Protocol

from oku_workers.executions.execution import Execution
from oku_workers.executions.tally import Tally

Taken = tuple[Tally, int, int, int]
"""A request taken from a feed: its tally, its place in the ledger, its index, and its due time in nanoseconds
of the monotonic clock; 0 if it may be sent at any time."""


class LimitRequester(Protocol):
    """Asks the coordinator for higher limits before the leases reach theirs."""

    def request_limits(self) -> None:
        """Ask now: little is left to take, and limits hold the rest back."""

    def find_reserve(self) -> float:
        """How many requests are enough to have left, however few of all they are; infinite if unknown."""


class _NoRequester:
    """Requests nothing: there are no limits, or they never rise."""

    def request_limits(self) -> None:
        """Request nothing."""

    def find_reserve(self) -> float:
        """It is not known."""
        return math.inf


NO_REQUESTER: LimitRequester = _NoRequester()


class Taker(Protocol):
    """An engine, as its feed knows it."""

    def has_room(self) -> bool:
        """Whether it could send another request now."""
        ...

    def take_due(self) -> bool:
        """Take the due requests; False if its tasks wait in `FeedProtocol.wait` instead."""
        ...


class _NoTaker:
    """Stands for an engine that has not begun."""

    def has_room(self) -> bool:
        """It could send all."""
        return True

    def take_due(self) -> bool:
        """Those who wait are woken."""
        return False


NO_TAKER: Taker = _NoTaker()


class FeedProtocol(Protocol):
    """Shows an engine what to send next; belongs to the thread of the event loop.

    Attributes:
        is_paced: whether time decides when `current` is there, and not the leases alone.
    """

    is_paced: bool

    @property
    def current(self) -> Execution | None:
        """The execution to take from now; None if nothing may be taken."""
        ...

    @property
    def lacks_work(self) -> bool:
        """Whether time would allow to take a request now, and there is none."""
        ...

    @property
    def remaining(self) -> int:
        """How many requests may be taken now."""
        ...

    def count_first(self, within_s: float) -> int:
        """How many requests will be due in so short a time from the first one on; 0 if that is not known."""
        ...

    def pop(self) -> Taken:
        """Take the next request of `current`, of which there must be one."""
        ...

    def advance(self) -> None:
        """Go on: an engine has taken the last request of a segment of `current` without `take`."""
        ...

    def attach(self, taker: Taker) -> None:
        """Ask an engine from now on whether it has room, and have it take the due requests."""
        ...

    async def wait(self) -> None:
        """Wait until there may be a request to take."""
        ...

    def add(self, execution: Execution) -> None:
        """Take in an execution; one without a request is finished at once."""
        ...

    def enter(self, phase: str) -> None:
        """Count requests in this phase from now on, unless their due times decide it."""
        ...

    def find_first(self) -> Execution | None:
        """The execution to take from, now or later; None if nothing is left to take."""
        ...

    def find_starved(self) -> Execution | None:
        """An execution that its limit keeps from going on; None if there is none, or it need not yet."""
        ...

    def raise_limits(self, limits: Mapping[Execution, int]) -> None:
        """Let more be taken; a limit never falls."""
        ...

    def shorten(self, execution: Execution, end: int) -> None:
        """Take no position of an execution from `end` on; positions already taken stay."""
        ...

    def refresh(self) -> None:
        """Follow the coordinator's clock; called some twenty times a second."""
        ...

    def close(self) -> None:
        """End."""
        ...


class Parking:
    """Wakes those who wait, in the order in which they came."""

    def __init__(self) -> None:
        self._parked: deque[asyncio.Future[None]] = deque()

    @property
    def is_crowded(self) -> bool:
        """Whether more than one waits."""
        return len(self._parked) > 1

    async def wait(self) -> None:
        """Wait to be woken."""
        parked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._parked.append(parked)
        await parked

    def wake(self, most: int) -> None:
        """Wake at most this many."""
        while self._parked and most > 0:
            parked = self._parked.popleft()
            if not parked.done():
                parked.set_result(None)
                most -= 1

    def wake_all(self) -> None:
        """Wake everybody."""
        self.wake(len(self._parked))
