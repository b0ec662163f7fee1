"""The feed of an engine in a closed run with a highest rate: `Feed`, where each request needs a slot of time.

The workers of a run share the slots; without a share nothing may be taken.
"""

import asyncio
from collections.abc import Mapping
from fractions import Fraction

from oku_core.schedule.pacing import Pacer
from oku_workers.executions.execution import Execution
from oku_workers.feed.feed import Feed
from oku_workers.feed.feed_protocol import NO_REQUESTER, NO_TAKER, LimitRequester, Parking, Taken, Taker
from oku_workers.timing.timing import Timing


class PacedFeed:
    """The requests still to send, no faster than a rate; belongs to the thread of the event loop.

    Args:
        timing: clocks and timers.
        rate: the highest rate of all workers together, in requests per second.
        requester: asks for higher limits when little is left.
    """

    is_paced = True

    def __init__(self, timing: Timing, rate: Fraction, requester: LimitRequester = NO_REQUESTER) -> None:
        self._taker = NO_TAKER
        self._timing = timing
        self._rate = rate
        self._feed = Feed(requester=requester)
        self._timer = timing.build_timer(asyncio.get_running_loop(), self._wake)
        self._share: tuple[int, int] | None = None
        self._pacer: Pacer | None = None
        self._offset_ns = 0
        self._parking = Parking()
        self.refresh()

    @property
    def current(self) -> Execution | None:
        """The execution to take from; None if nothing may be taken now."""
        return self._feed.current if self._feed.current is not None and self._count_allowed() else None

    @property
    def lacks_work(self) -> bool:
        """Whether a slot has come for which there is nothing to take."""
        return self._feed.current is None and self._count_allowed() > 0

    @property
    def remaining(self) -> int:
        """How many requests may be taken now."""
        return min(self._feed.remaining, self._count_allowed())

    def share(self, share: tuple[int, int] | None) -> None:
        """Use the slots of this place among this many workers from now on; None has none."""
        if share == self._share:
            return
        self._share = share
        self._pacer = None if share is None else Pacer(self._rate, *share, self._read_now())
        self._go_on()

    def count_first(self, within_s: float) -> int:
        """It is not known: answers decide it, too."""
        return self._feed.count_first(within_s)

    def pop(self) -> Taken:
        """Take the next request of `current`, of which there must be one."""
        assert self._pacer is not None
        self._pacer.use(1)
        taken = self._feed.pop()
        self._arm()
        return taken

    def advance(self) -> None:
        """Requests are only taken with `take`; there is nothing to do."""

    async def wait(self) -> None:
        """Wait until there may be a request to take."""
        self._arm()
        await self._parking.wait()

    def add(self, execution: Execution) -> None:
        """Put an execution behind those that are there."""
        self._feed.add(execution)
        self._go_on()

    def enter(self, phase: str) -> None:
        """Count requests in this phase from now on."""
        self._feed.enter(phase)

    def find_first(self) -> Execution | None:
        """The execution to take from, now or later; None if nothing is left to take."""
        return self._feed.find_first()

    def find_starved(self) -> Execution | None:
        """The first execution, if its limit keeps it from going on and nothing else can be taken."""
        return self._feed.find_starved()

    def raise_limits(self, limits: Mapping[Execution, int]) -> None:
        """Let more be taken; a limit never falls."""
        self._feed.raise_limits(limits)
        self._go_on()

    def shorten(self, execution: Execution, end: int) -> None:
        """Take no position of an execution from `end` on; positions already taken stay."""
        self._feed.shorten(execution, end)

    def attach(self, taker: Taker) -> None:
        """Have an engine take the due requests; a slot that finds no room is lost."""
        self._taker = taker

    def refresh(self) -> None:
        """Follow the coordinator's clock, by which workers share slots."""
        clock = self._timing.coordinator_clock
        if clock.is_known:
            self._offset_ns = -clock.to_local_ns(0.0)
        self._go_on()

    def close(self) -> None:
        """End: nothing more is shown."""
        self._pacer = None
        self._timer.close()

    def _count_allowed(self) -> int:
        return 0 if self._pacer is None else self._pacer.count_allowed(self._read_now())

    def _wake(self) -> None:
        if self._feed.current is not None:
            if not self._taker.take_due():
                self._parking.wake(self._count_allowed())
            self._arm()

    def _go_on(self) -> None:
        if self.current is not None:
            self._wake()
        else:
            self._arm()

    def _arm(self) -> None:
        """Wake when the next slot comes; as long as one is there, who takes it arms."""
        if self._pacer is not None and self._feed.current is not None and not self._count_allowed():
            self._timer.arm(self._pacer.next_ns - self._offset_ns)

    def _read_now(self) -> int:
        return self._timing.monotonic_ns() + self._offset_ns
