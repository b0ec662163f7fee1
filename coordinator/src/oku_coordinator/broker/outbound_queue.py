"""Messages to workers, oldest first; a newer one replaces a waiting one of its kind."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

import msgspec

from oku_core.messaging.lease import LeaseBatch
from oku_core.messaging.order import CallHook, Control, DropHooks, Fetch, Outbound, Stop
from oku_core.process.clock import Clock


class _Waiting(NamedTuple):
    message: Outbound
    since: float


class OutboundQueue:
    """A queue between callers and the sending threads; thread-safe. The clock is monotonic."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: OrderedDict[Hashable, _Waiting] = OrderedDict()
        self._changed = threading.Condition()
        self._number = 0
        self._has_ended = False

    def put(self, messages: Iterable[Outbound]) -> None:
        """Add messages; they are merged with waiting control, or replace waiting orders of their kind."""
        with self._changed:
            for message in messages:
                key = self._find_key(message)
                if waiting := self._waiting.get(key):
                    self._waiting[key] = _Waiting(_merge(waiting.message, message), waiting.since)
                else:
                    self._waiting[key] = _Waiting(message, self._clock())
            self._changed.notify()

    def get(self, most: int) -> list[Outbound]:
        """Wait for at least one message; returns none when the queue has ended and is empty."""
        with self._changed:
            while not self._waiting and not self._has_ended:
                self._changed.wait()
            count = min(most, len(self._waiting))
            taken = [self._waiting.popitem(last=False)[1].message for _ in range(count)]
            if self._waiting:
                self._changed.notify()
            return taken

    def measure_wait_s(self) -> float:
        """How long the oldest message has waited; 0 if the queue is empty."""
        with self._changed:
            oldest = next(iter(self._waiting.values()), None)
            return 0.0 if oldest is None else self._clock() - oldest.since

    def drop(self) -> int:
        """Drop all messages and return their number."""
        with self._changed:
            count = len(self._waiting)
            self._waiting.clear()
            return count

    def end(self) -> None:
        """End the queue: `get` returns at once when it is empty."""
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def _find_key(self, message: Outbound) -> Hashable:
        if isinstance(message, LeaseBatch):
            self._number += 1
            return self._number
        if isinstance(message, Control):
            return message.incarnation
        if isinstance(message, (Fetch, CallHook, DropHooks)):
            return (type(message), message.incarnation)
        return (type(message), message.run if isinstance(message, Stop) else "")


def _merge(older: Outbound, newer: Outbound) -> Outbound:
    if not (isinstance(older, Control) and isinstance(newer, Control)):
        return newer
    return msgspec.structs.replace(
        newer,
        confirmed=_combine(older.confirmed, newer.confirmed, max),
        limits=_combine(older.limits, newer.limits, max),
        ends=_combine(older.ends, newer.ends, min),
        share=older.share if newer.share is None else newer.share,
        may_leave=older.may_leave or newer.may_leave,
        renew=older.renew or newer.renew,
    )


def _combine(
    older: dict[str, int], newer: dict[str, int], choose: Callable[[int, int], int]
) -> dict[str, int]:
    return older | {lease: choose(older.get(lease, number), number) for lease, number in newer.items()}
