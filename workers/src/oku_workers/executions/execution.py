"""One attempt at a lease: which index comes next, and what came of those that have ended.

All of it belongs to the thread of the event loop. `answer` and `fail` are the hot path: integer arithmetic on
attributes, no allocation that lasts. Indices are taken in segments: consecutive indices of one range of the
lease that may all be taken, so that taking one is a comparison of two numbers.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterator

from oku_core.accounting.histogram import (
    BUCKETS,
    HIGHEST_US,
    SUB_BUCKET_BITS,
    HistogramSnapshot,
    bucket_index,
)
from oku_core.accounting.outcome import OUTCOMES
from oku_core.messaging.lease import Lease
from oku_core.spec.spec import Spec

OK, UNEXPECTED_STATUS, TIMEOUT, CONNECT_ERROR, DISCONNECTED, PROTOCOL_ERROR = range(len(OUTCOMES))
"""The outcomes as indices, for the hot path."""

_HALF_BITS = SUB_BUCKET_BITS - 1
_DENSE_FROM = 4096
"""A lease of fewer indices counts latencies in a dictionary, which is slower than a list and takes less."""
NO_MARK = -1
"""The mark of an execution that has none."""


class Execution:
    """One attempt at a lease, counted as it goes on.

    `finished` is done when every index that was taken has ended or was given back, and none will be taken
    any more.

    Args:
        lease: which indices to send; `ValueError` if its ranges do not rise.
        spec: what to send.
        finished: becomes done with the execution.
        now: gives Unix time.

    Attributes:
        next_index: the index that is taken next, if it is below `stop`.
        stop: the end of the segment that indices are taken from.
        end: the first position that will not be taken.
        limit: the first position that must not be taken yet.
        mark: a position at which the feed wants to be asked, although more may be taken.
        given_back: the positions that were taken and must be sent by somebody else.
    """

    __slots__ = (
        "_base",
        "_now",
        "_range",
        "bytes_received",
        "clock_step_s",
        "counts",
        "cut_at",
        "end",
        "ended",
        "ended_at",
        "finished",
        "given_back",
        "judged",
        "lagged",
        "lease",
        "limit",
        "mark",
        "max_busy_share",
        "max_lag_s",
        "max_us",
        "min_us",
        "next_index",
        "outcomes",
        "ranges",
        "saturated",
        "spec",
        "started_at",
        "statuses",
        "stop",
        "sum_us",
    )

    def __init__(
        self,
        lease: Lease,
        spec: Spec,
        finished: asyncio.Future[None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._now = now
        self.lease = lease
        self.spec = spec
        self.finished = finished
        self.ranges = lease.build_ranges()
        self.end = self.ranges.length
        self.limit = max(lease.limit, 0)
        self.mark = NO_MARK
        self._range = 0
        self.next_index = self.stop = self.ranges.ranges[0][0] if self.end else 0
        self._base = -self.next_index
        self.ended = 0
        self.outcomes = [0] * len(OUTCOMES)
        self.statuses: dict[int, int] = {}
        self.bytes_received = 0
        self.counts: list[int] | defaultdict[int, int] = defaultdict(int)
        self.sum_us = 0
        self.min_us = HIGHEST_US
        self.max_us = 0
        self.given_back: list[int] = []
        self.max_lag_s = 0.0
        self.max_busy_share = 0.0
        self.judged = self.saturated = self.lagged = 0
        self.clock_step_s = self.started_at = self.ended_at = 0.0
        self.cut_at = float("inf")
        """When what is in flight is to be cut off, by the clock of the event loop."""

    @property
    def taken(self) -> int:
        """The first position that was not taken."""
        return self.next_index + self._base

    @property
    def untaken(self) -> int:
        """How many positions will still be taken, now or once the limit allows it."""
        return self.end - self.next_index - self._base

    @property
    def allowed(self) -> int:
        """How many positions may be taken now."""
        return max(0, min(self.end, self.limit) - self.taken)

    @property
    def in_flight(self) -> int:
        """How many positions were taken and have not ended."""
        return self.taken - self.ended

    @property
    def is_under_way(self) -> bool:
        """Whether it has had its turn and is not finished."""
        return self.started_at > 0 and not self.finished.done()

    @property
    def is_abandoned(self) -> bool:
        """Whether it has ended with an error of our own."""
        return self.finished.done() and self.finished.exception() is not None

    def begin_segment(self) -> bool:
        """Go on to the next indices that may be taken; False if there are none now."""
        taken = self.taken
        bound = min(self.end, self.limit)
        if taken >= bound:
            return False
        if not self.started_at:
            self._begin()
        if taken < self.mark < bound:
            bound = self.mark
        ranges = self.ranges
        stop = ranges.ranges[self._range][1]
        if self.next_index == stop:
            self._range += 1
            self.next_index, stop = ranges.ranges[self._range]
            self._base = taken - self.next_index
        self.stop = min(stop, bound - self._base)
        return True

    def _begin(self) -> None:
        self.started_at = self.ended_at = self._now()
        if self.ranges.length >= _DENSE_FROM:
            self.counts = [0] * BUCKETS

    def shorten(self, end: int) -> None:
        """Take no position from `end` on; what was taken stays."""
        self.end = max(min(self.end, end), self.taken)
        self.stop = min(self.stop, self.end - self._base)
        self.settle()

    def compact(self) -> None:
        """Keep the latencies in less memory: few are still to come."""
        if isinstance(self.counts, list):
            self.counts = defaultdict(int, self.list_counts())

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
        self.given_back.append(self.ranges.position_of(index))
        self.ended += 1
        self.settle()

    def abandon(self, error: BaseException) -> None:
        """Finish with an error of our own: nobody can say any more what became of the lease."""
        if not self.finished.done():
            self.finished.set_exception(error)

    def settle(self) -> None:
        """Finish if nothing is in flight and nothing is left to take."""
        if self.taken == self.end == self.ended and not self.finished.done():
            self.ended_at = self._now()
            self.given_back.sort()
            self.finished.set_result(None)

    def list_counts(self) -> Iterator[tuple[int, int]]:
        """Each bucket that holds something, with its count; in rising order."""
        counts = self.counts
        if not isinstance(counts, list):
            yield from sorted(counts.items())
            return
        first = bucket_index(min(self.min_us, self.max_us))
        for bucket, count in enumerate(counts[first : bucket_index(self.max_us) + 1], first):
            if count:
                yield bucket, count

    def build_latency(self) -> HistogramSnapshot:
        """The latencies so far."""
        buckets = [number for pair in self.list_counts() for number in pair]
        if not buckets:
            return HistogramSnapshot()
        return HistogramSnapshot(buckets=buckets, sum_us=self.sum_us, min_us=self.min_us, max_us=self.max_us)
