"""The link to the coordinator: it takes messages, sends checkpoints, and tracks whether there is one.

A coordinator sends something to all workers every few seconds, so a worker that receives nothing has lost it
or the broker. Celery logs a lost connection to the broker; the recovery is logged here, with the
coordinator's next message.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.lease import LeaseBatch
from oku_core.messaging.order import Order
from oku_core.process.clock import Clock
from oku_core.process.redaction import redact

SendCheckpoints = Callable[[CheckpointBatch], None]
"""Sends one message, and may block."""
Notify = Callable[[], None]
ReadLeases = Callable[[], LeaseBatch]
ReadOrder = Callable[[], Order]
"""Read a message that has arrived, or raise `RejectedMessageError`."""

_log = logging.getLogger(__name__)

_SILENCE_S = 20.0
"""A coordinator that was silent for longer was away."""
_LOG_EVERY_S = 60.0
"""Between two lines that it is back: a connection that breaks again and again does not fill the log."""


class WorkerInbox(Protocol):
    """Takes messages, in a thread of the transport; it is given the function that reads one."""

    def on_connected(self) -> None:
        """There is a new connection."""

    def on_lost(self) -> None:
        """A connection without a broker is lost, with all that was on its way."""

    def take_leases(self, read: ReadLeases) -> None:
        """Take leases, or refuse those that cannot be read."""

    def take_order(self, read: ReadOrder) -> None:
        """Obey an order."""


class CoordinatorLink:
    """Tracks the coordinator's messages, in the thread that takes orders.

    Args:
        broker_url: the broker in between.

    Attributes:
        is_made: whether the coordinator has sent anything yet; it stays true while it is away.
    """

    def __init__(self, broker_url: str, clock: Clock = time.monotonic) -> None:
        self._broker = redact(broker_url)
        self._clock = clock
        self.is_made = False
        self._is_new = True
        """Whether nothing has arrived on this connection to the broker."""
        self._heard_at = self._logged_at = -math.inf
        self._untold_s: float | None = None
        """The longest silence that is over and not logged."""

    def on_connected(self) -> None:
        """There is a new connection to the broker."""
        self._is_new = True

    def on_heard(self) -> None:
        """The coordinator has spoken."""
        now = self._clock()
        silent_s, self._heard_at = now - self._heard_at, now
        if not self.is_made:
            self.is_made = True
            _log.info("connected to the coordinator through %s", self._broker)
        elif self._is_new or silent_s >= _SILENCE_S:
            self._untold_s = max(self._untold_s or 0.0, silent_s)
        self._is_new = False
        if self._untold_s is not None and now - self._logged_at >= _LOG_EVERY_S:
            context = {"silent_s": round(self._untold_s, 1)}
            _log.info("connected to the coordinator again after %.0f s", self._untold_s, extra=context)
            self._untold_s, self._logged_at = None, now


class CheckpointSender:
    """Sends one message after the other."""

    def __init__(self, send: SendCheckpoints) -> None:
        self._send = send
        self._thread = ThreadPoolExecutor(1, "checkpoints")

    async def send(self, batch: CheckpointBatch) -> None:
        """Return when they are sent; raise an error of the transport if they are not."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._send, batch)

    def end(self) -> None:
        """Send nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)
