"""Decides when to ask an unresponsive coordinator again, and builds the messages for the user."""

import time
from asyncio import sleep
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from oku_cli.backends.coordinator_ref import UnreachableError
from oku_cli.terminal.printable import write_note
from oku_core.process.clock import Clock

_T = TypeVar("_T")

TRIES_S = 60.0
"""How long a call that can be repeated is tried again."""
PATIENCE_S = 5.0
"""An outage that ends within this time is not reported."""
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0
_SHARE = 0.1
"""A pause is this share of the outage so far, so that its end is noticed at most a tenth later."""


class Outage:
    """Measures an outage from its creation, and again from each `end`.

    Args:
        warn: takes a line for people.
        over: the line at the end of an outage that was reported.
        patience_s: how long an outage is not reported.
        clock: returns a monotonic time in seconds.
    """

    def __init__(
        self,
        warn: Callable[[str], None],
        over: str,
        patience_s: float = PATIENCE_S,
        clock: Clock = time.monotonic,
    ) -> None:
        self._warn = warn
        self._over = over
        self._patience_s = patience_s
        self._clock = clock
        self._heard_at = clock()
        self._said: set[str] = set()

    def report(self, reason: str) -> float:
        """Report why there is no answer, each reason once; return the seconds to wait before the next try."""
        silent_s = self._clock() - self._heard_at
        if silent_s >= self._patience_s and reason not in self._said:
            self._said.add(reason)
            self._warn(f"{reason}; trying again")
        return min(max(_SHARE * silent_s, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S)

    def end(self) -> None:
        """Note an answer: the outage is over."""
        self._heard_at = self._clock()
        if self._said:
            self._said.clear()
            self._warn(self._over)


async def try_again(call: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """Repeat a call while the coordinator does not answer, for `TRIES_S`; then raise `UnreachableError`."""
    until, outage = time.monotonic() + TRIES_S, Outage(write_note, "the coordinator answers again")
    while True:
        try:
            answer = await call()
        except UnreachableError as error:
            if time.monotonic() > until:
                raise
            await sleep(outage.report(str(error)))
        else:
            outage.end()
            return answer
