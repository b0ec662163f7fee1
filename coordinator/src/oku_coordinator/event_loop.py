"""Tools of the event loop: signals that wake the main loop, and services that run beside it.

The main loop waits until something has changed, a sweep of all workers and leases is due, or it must end.
"""

import asyncio
import contextlib
from abc import abstractmethod
from typing import ClassVar

from oku_core.process.supervision import Health, Supervisor, cancel_tasks


class LoopSignals:
    """Any thread may call `wake`; the rest is for the thread of the event loop."""

    def __init__(self) -> None:
        self.woken = asyncio.Event()
        self.ending = asyncio.Event()
        self.is_sweep_due = False

    def wake(self) -> None:
        """Start the next round at once."""
        self.woken.set()

    def sweep(self) -> None:
        """Start the next round at once, with a sweep of all workers and leases."""
        self.is_sweep_due = True
        self.wake()

    def end(self) -> None:
        """Let the loop end soon."""
        self.ending.set()

    async def rest(self, seconds: float) -> None:
        """Pause until the end is requested."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ending.wait()

    async def wait(self, seconds: float) -> None:
        """Pause until something has changed or the end is requested."""
        ending = asyncio.ensure_future(self.ending.wait())
        woken = asyncio.ensure_future(self.woken.wait())
        await asyncio.wait({ending, woken}, timeout=max(0.0, seconds), return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        woken.cancel()


class BackgroundService:
    """Work beside the main loop, from `start` to `end`; restarted after a failure."""

    service_name: ClassVar[str]
    """Its name in notices."""
    _task: asyncio.Task[None] | None = None

    def start(self, supervisor: Supervisor) -> None:
        """Start working, in the running event loop."""
        self._task = supervisor.start(self.service_name, self._work)

    async def end(self) -> None:
        """Stop."""
        await cancel_tasks([self._task])

    @abstractmethod
    async def _work(self, health: Health) -> None:
        """Work until cancelled."""
