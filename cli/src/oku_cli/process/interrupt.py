"""Takes Ctrl-C, SIGTERM and SIGHUP while a run begins and is followed, and acts on them where it is safe."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")

PATIENCE_S = 3.0
"""Work that cannot be undone gets this long to end by itself."""


class InterruptedAtOnceError(Exception):
    """Is raised when a command ends before its run rests; the message says what that leaves behind."""


class Interrupts:
    """Catches the signals from its creation until the event loop ends."""

    def __init__(self) -> None:
        self._noted = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._noted.set)

    async def take(self) -> None:
        """Wait for the next signal, or take one that has come already."""
        await self._noted.wait()
        self._noted.clear()

    async def cut(self, work: Coroutine[Any, Any, _T], message: str) -> _T:
        """Do `work`, but abandon it on a signal and raise `InterruptedAtOnceError` with `message`."""
        return await self._do(work, message, patience_s=0.0)

    async def let_end(self, work: Coroutine[Any, Any, _T], message: str) -> _T:
        """Do `work` that cannot be undone: it has time to end, and the signal is kept for the next `take`."""
        return await self._do(work, message, patience_s=PATIENCE_S)

    async def _do(self, work: Coroutine[Any, Any, _T], message: str, patience_s: float) -> _T:
        working = asyncio.ensure_future(work)
        noted = asyncio.ensure_future(self._noted.wait())
        try:
            await asyncio.wait({working, noted}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                await asyncio.wait({working}, timeout=patience_s)
            if not working.done():
                raise InterruptedAtOnceError(message)
            return await working
        finally:
            for task in (working, noted):
                task.cancel()
            await asyncio.gather(working, noted, return_exceptions=True)
