"""One attempt at a lease: which index comes next, and what came of those that have ended.

All of it belongs to the thread of the event loop. `answer` and `fail` are the hot path: integer arithmetic on
attributes, no allocation that lasts.
"""

import asyncio
import time
from collections.abc import Callable

from oku_core.accounting.histogram import (
    BUCKETS,
    HIGHEST_US,
    SUB_BUCKET_BITS,
    HistogramSnapshot,
    bucket_index,
    build_buckets,
)
from oku_core.accounting.outcome import OUTCOMES
from oku_core.messaging.lease import Lease

OK, UNEXPECTED_STATUS, TIMEOUT, CONNECT_ERROR, DISCONNECTED, PROTOCOL_ERROR = range(len(OUTCOMES))
"""The outcomes as indices, for the hot path."""

_HALF_BITS = SUB_BUCKET_BITS - 1


class Execution:
    """One attempt at a lease, counted as it goes on.

    `finished` is done when every index that was taken has ended or was given back, and none will be taken
    any more.

    Args:
        lease: what to send.
        finished: becomes done with the execution.
        now: gives Unix time.
    """

    __slots__ = (
        "_now",
        "bytes_received",
        "clock_step_s",
        "counts",
        "cpu_s",
        "ended",
        "ended_at",
        "finished",
        "judged",
        "lagged",
        "lease",
        "max_busy_share",
        "max_lag_s",
        "max_us",
        "min_us",
        "next_index",
        "outcomes",
        "saturated",
        "started_at",
        "statuses",
        "stop",
        "sum_us",
        "unfinished",
    )

    def __init__(
        self, lease: Lease, finished: asyncio.Future[None], now: Callable[[], float] = time.time
    ) -> None:
        self._now = now
        self.lease = lease
        self.finished = finished
        self.next_index = lease.start
        self.stop = max(lease.stop, lease.start)  # a forged lease may end before it starts
        self.ended = 0
        self.outcomes = [0] * len(OUTCOMES)
        self.statuses: dict[int, int] = {}
        self.bytes_received = 0
        self.counts = [0] * BUCKETS
        self.sum_us = 0
        self.min_us = HIGHEST_US
        self.max_us = 0
        self.unfinished: list[int] = []
        self.max_lag_s = 0.0
        self.max_busy_share = 0.0
        self.judged = self.saturated = self.lagged = 0
        self.cpu_s = self.clock_step_s = 0.0
        self.restart_clock()

    def restart_clock(self) -> None:
        """The first request is about to be sent: the lease has come to the front of the feed."""
        self.started_at = self.ended_at = self._now()

    @property
    def has_begun(self) -> bool:
        """Whether any index was taken."""
        return self.next_index > self.lease.start

    @property
    def in_flight(self) -> int:
        """How many indices were taken and have not ended."""
        return self.next_index - self.lease.start - self.ended

    def answer(self, status: int, latency_us: int, received: int, *, expected: bool) -> None:
        """A complete response came, `latency_us` after the request was sent, with `received` bytes of body.

        `expected` says whether its status counts as ok.
        """
        self.outcomes[OK if expected else UNEXPECTED_STATUS] += 1
        statuses = self.statuses
        statuses[status] = statuses.get(status, 0) + 1
        self.bytes_received += received
        if latency_us > HIGHEST_US:  # noqa: PLR1730  # half the time of min()
            latency_us = HIGHEST_US
        shift = latency_us.bit_length() - SUB_BUCKET_BITS
        self.counts[(shift << _HALF_BITS) + (latency_us >> shift) if shift > 0 else latency_us] += 1
        self.sum_us += latency_us
        if latency_us < self.min_us:  # noqa: PLR1730
            self.min_us = latency_us
        if latency_us > self.max_us:  # noqa: PLR1730
            self.max_us = latency_us
        self.ended += 1
        if self.next_index == self.stop:
            self.settle()

    def fail(self, outcome: int) -> None:
        """A request ended without a complete response."""
        self.outcomes[outcome] += 1
        self.ended += 1
        self.settle()

    def give_back(self, index: int) -> None:
        """A request was cut off before its answer was in: somebody has to send it again."""
        self.unfinished.append(index)
        self.ended += 1
        self.settle()

    def withdraw(self) -> None:
        """Take no further index."""
        self.stop = self.next_index
        self.settle()

    def abandon(self, error: BaseException) -> None:
        """Finish with an error of our own: nobody can say any more what became of the lease."""
        if not self.finished.done():
            self.finished.set_exception(error)

    def settle(self) -> None:
        """Finish if nothing is in flight and nothing is left to take."""
        if self.next_index == self.stop and not self.in_flight and not self.finished.done():
            self.ended_at = self._now()
            self.unfinished.sort()
            self.finished.set_result(None)

    def build_latency(self) -> HistogramSnapshot:
        """The latencies so far."""
        if not self.max_us and self.min_us == HIGHEST_US:
            return HistogramSnapshot()
        return HistogramSnapshot(
            buckets=build_buckets(self.counts), sum_us=self.sum_us, min_us=self.min_us, max_us=self.max_us
        )

    def bucket_range(self) -> range:
        """The buckets that may hold something."""
        return range(bucket_index(min(self.min_us, self.max_us)), bucket_index(self.max_us) + 1)
