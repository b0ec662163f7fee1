"""The way to the workers, as the rest of the coordinator knows it.

Callers wait for nothing. The parts that send repeat lost messages: leases that workers do not report, control
as the answer to the next checkpoint, orders until they take effect.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Protocol

from oku_core.messaging.order import ClockNotice, FilesAddress, Intervals, Outbound


class Link(Protocol):
    """The state of a connection to the broker."""

    @property
    def is_connected(self) -> bool:
        """Whether the broker is reachable."""


class Broker(ABC):
    """Sends messages to workers."""

    def __init__(self) -> None:
        self._interval_number = 0

    @property
    @abstractmethod
    def is_away(self) -> bool:
        """Whether the broker is known to be down, or a message has waited for seconds."""

    @abstractmethod
    def send(self, messages: Iterable[Outbound]) -> None:
        """Send leases and orders, each of which may get lost; returns at once, in any thread."""

    @abstractmethod
    def fetch_peak_mb(self) -> float | None:
        """The peak memory of the broker in MB; None when it does not report it, is down, or there is none."""

    @abstractmethod
    def end(self, wait_s: float) -> None:
        """Send all waiting messages, for at most this long."""

    def send_intervals(
        self,
        heartbeat_s: float,
        checkpoint_s: float,
        clock: ClockNotice | None = None,
        files: FilesAddress | None = None,
        run: str = "",
    ) -> None:
        """Send all workers their intervals, the time, the address of files, and the active run."""
        # Above the numbers of an earlier coordinator, unless the clock was set back.
        self._interval_number = max(self._interval_number + 1, time.time_ns())
        self.send(
            [
                Intervals(
                    number=self._interval_number,
                    heartbeat_s=heartbeat_s,
                    checkpoint_s=checkpoint_s,
                    clock=clock,
                    files=files,
                    run=run,
                )
            ]
        )
