"""Ctrl-C, SIGTERM and SIGHUP while a run is begun and followed: noted, and acted upon where it fits."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")

PATIENCE_S = 3.0
"""What cannot be taken back gets so long to end by itself."""


class InterruptedAtOnceError(Exception):
    """A command ends before its run rests; says what that leaves behind."""


class Interrupts:
    """Takes the signals from its creation until the event loop ends."""

    def __init__(self) -> None:
        self._noted = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._noted.set)

    async def take(self) -> None:
        """Wait for the next, or take one that has come already."""
        await self._noted.wait()
        self._noted.clear()

    async def cut(self, work: Coroutine[Any, Any, _T], message: str) -> _T:
        """Do `work`, but give it up on a signal: `InterruptedAtOnceError` then says `message`."""
        return await self._do(work, message, patience_s=0.0)

    async def let_end(self, work: Coroutine[Any, Any, _T], message: str) -> _T:
        """The same with what cannot be taken back: it may end, and the signal waits for the next to take."""
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
