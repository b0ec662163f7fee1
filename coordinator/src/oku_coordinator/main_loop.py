"""When the coordinator does what it does: a round begins when something has changed, and twice a second.

A coordinator that stalled, or could not hear its workers, blames nobody for a silence.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable

from oku_coordinator.inbound import Inbound
from oku_coordinator.ledger.storage.records import BreachError
from oku_coordinator.rounds import Rounds
from oku_core.process.supervision import Health

_ROUND_S = 0.5
_ROUND_SHARE = 0.2
"""Rounds take at most this share of the time: with thousands of workers they come less often."""
_LONGEST_REST_S = 0.5
_STALL_S = 2.0


class LoopSignals:
    """What the main loop waits for; all but `wake` is for the event loop's thread."""

    def __init__(self) -> None:
        self.woken = asyncio.Event()
        self.ending = asyncio.Event()

    def wake(self) -> None:
        """Let the next round begin at once."""
        self.woken.set()

    def end(self) -> None:
        """Let the loop end soon."""
        self.ending.set()

    async def rest(self, seconds: float) -> None:
        """Pause, until all is to end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ending.wait()

    async def wait(self, seconds: float) -> None:
        """Pause, until something has changed or all is to end."""
        ending = asyncio.ensure_future(self.ending.wait())
        woken = asyncio.ensure_future(self.woken.wait())
        await asyncio.wait({ending, woken}, timeout=max(0.0, seconds), return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        woken.cancel()


class MainLoop:
    """Runs rounds until it is told to end.

    Args:
        rounds: what is done in each.
        inbound: says whether workers can be heard.
        signals: begin a round early, and end the loop.
        announce_breach: is told of a run that does not balance; the others go on.
        monotonic: monotonic seconds.
        cpu_clock: seconds of processor time of this thread.
    """

    def __init__(
        self,
        rounds: Rounds,
        inbound: Inbound,
        signals: LoopSignals,
        announce_breach: Callable[[BreachError], None],
        monotonic: Callable[[], float] = time.monotonic,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._rounds = rounds
        self._inbound = inbound
        self._signals = signals
        self._announce_breach = announce_breach
        self._monotonic = monotonic
        self._cpu_clock = cpu_clock
        self._has_noted_start = False
        self._round_at = monotonic()

    async def run(self, health: Health) -> None:
        """Go on until the end; what fails is raised, and the loop can be run again."""
        if not self._has_noted_start and not self._signals.ending.is_set():
            self._rounds.note_start()
            self._has_noted_start = True
        while not self._signals.ending.is_set():
            now = self._monotonic()
            self._signals.woken.clear()  # what comes from here on is for the next round
            if now - self._round_at > _STALL_S or self._inbound.is_deaf(now, _STALL_S):
                self._rounds.reset_timers(now)
            self._round_at, began_cpu_s = now, self._cpu_clock()
            try:
                await self._rounds.step(now)
            except BreachError as error:
                self._announce_breach(error)
            health.note_well()
            round_cpu_s = self._cpu_clock() - began_cpu_s
            await asyncio.sleep(min(round_cpu_s / _ROUND_SHARE - round_cpu_s, _LONGEST_REST_S))
            await self._signals.wait(now + _ROUND_S - self._monotonic())
