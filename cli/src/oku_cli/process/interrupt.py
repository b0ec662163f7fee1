"""Takes Ctrl-C, SIGTERM and SIGHUP while a run begins and is followed, and acts on them where it is safe."""

import asyncio
import signal
from collections.abc import Coroutine
from enum import StrEnum
from typing import Any, TypeVar

from oku_core.process.supervision import cancel_tasks

_T = TypeVar("_T")

PATIENCE_S = 3.0
"""Work that cannot be undone gets this long to end by itself."""


class SignalAction(StrEnum):
    """What a signal does to the run that a command follows."""

    PAUSE = "pause"
    CANCEL = "cancel"
    DETACH = "detach"
    """Only the command ends; the run goes on at its coordinator."""


class InterruptedAtOnceError(Exception):
    """Is raised when a command ends before its run rests; the message explains the consequences.

    Attributes:
        action: the action of the signal.
    """

    def __init__(self, message: str, action: SignalAction = SignalAction.PAUSE) -> None:
        super().__init__(message)
        self.action = action


class Interrupts:
    """Catches the signals from its creation until the event loop ends.

    Attributes:
        received: what the last signal does, also if it was taken; None before the first.
    """

    def __init__(
        self,
        on_sigterm: SignalAction = SignalAction.PAUSE,
        *,
        on_others: SignalAction = SignalAction.PAUSE,
    ) -> None:
        self._noted = asyncio.Event()
        self.received: SignalAction | None = None
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._receive, on_sigterm)
        for number in (signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._receive, on_others)

    def _receive(self, action: SignalAction) -> None:
        if not self._noted.is_set():  # the first of several that wait counts
            self.received = action
        self._noted.set()

    async def next_signal(self) -> SignalAction:
        """Wait for the next signal, or take one that has come already; return what it does."""
        await self._noted.wait()
        self._noted.clear()
        assert self.received is not None
        return self.received

    async def cut(self, work: Coroutine[Any, Any, _T], message: str) -> _T:
        """Do `work`, but abandon it on a signal and raise `InterruptedAtOnceError` with `message`."""
        return await self._do(work, message, patience_s=0.0)

    async def let_end(self, work: Coroutine[Any, Any, _T], message: str) -> _T:
        """Do `work` that cannot be undone: give it time to end, and keep the signal for `next_signal`."""
        return await self._do(work, message, patience_s=PATIENCE_S)

    async def _do(self, work: Coroutine[Any, Any, _T], message: str, patience_s: float) -> _T:
        working, noted = asyncio.create_task(work), asyncio.create_task(self._noted.wait())
        try:
            await asyncio.wait({working, noted}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                await asyncio.wait({working}, timeout=patience_s)
            if not working.done():
                raise InterruptedAtOnceError(message)
            return await working
        finally:
            await cancel_tasks((working, noted))
