"""The feed of an engine in an open run: each request is shown when it is due, regardless of its lease.

A timer wakes at the next due time, or for several where they are dense; all due requests may then be taken at
once. A request that is due while the window is full waits, in the order of due times, until it is too late;
then it is accounted as not sent. All times here are nanoseconds of Unix time by the coordinator's clock,
except for the timer and the times given to engines, which are of this machine's monotonic clock.
"""

import asyncio
import heapq
import math
from collections.abc import Mapping
from itertools import count

from oku_workers.executions.execution import Execution
from oku_workers.executions.scheduled_execution import ScheduledExecution
from oku_workers.executions.scheduled_tally import IN_FLIGHT_CAP, LATE
from oku_workers.feed.feed_protocol import NO_REQUESTER, NO_TAKER, LimitRequester, Parking, Taken, Taker
from oku_workers.timing.timing import Timing

_NS_PER_S = 1_000_000_000
_AHEAD_NS = 1_000_000_000
"""Due times are computed this long ahead; one chunk at a time, with pauses between."""
_PAUSE_S = 0.001
_EXPIRY_NS = 10_000_000
"""Requests that become too late within this time are accounted together."""
_TURN_NS = 5_000_000
"""How long late requests are accounted before the event loop serves others."""
_MOST_FETCHING, _MOST_FETCHED = 8, 1_024
"""How many executions compute due times at a time, those that are due first, and how many chunks are ready in
all: more than are taken in `_AHEAD_NS`."""


class ScheduledFeed:
    """The requests still to send of open runs; belongs to the thread of the event loop.

    Args:
        timing: clocks and timers.
        late_s: how late a request may be sent; None without a limit.
        requester: asks for higher limits as soon as one holds something back; a lease of an open run may
            mostly be taken as a whole.
    """

    is_paced = True
    lacks_work = False
    """Unknown: a missing request is late, or was not dealt."""

    def __init__(
        self, timing: Timing, late_s: float | None, requester: LimitRequester = NO_REQUESTER
    ) -> None:
        self._requester = requester
        self._taker = NO_TAKER
        self._timing = timing
        self._late_ns = None if late_s is None else round(late_s * _NS_PER_S)
        self._loop = asyncio.get_running_loop()
        self._timer = timing.build_timer(self._loop, self._wake)
        self._numbers = count()
        self._heap: list[tuple[int, int, ScheduledExecution]] = []
        """The executions that may be taken from, by the next due time of each."""
        self._fetching: list[ScheduledExecution] = []
        """Those that may be taken from and whose next due time is not computed yet."""
        self._limited: list[ScheduledExecution] = []
        """The executions whose next request a limit holds back."""
        self._offset_ns: int | None = None
        self._reached_ns = 0
        """When the timer woke last: requests due by then may be taken."""
        self._now_ns = 0
        """The time of the last access to `current` that found a due request."""
        self._full_since_ns: int | None = None
        """The first due time that found the window full, as long as anything that is due waits."""
        self._parking = Parking()
        self.wait = self._parking.wait
        self._fetch_handle: asyncio.TimerHandle | None = None
        self.refresh()

    @property
    def current(self) -> ScheduledExecution | None:
        """The execution whose request is due; None if none is."""
        heap, reached_ns = self._heap, self._reached_ns
        if not heap or heap[0][0] > reached_ns:
            return None
        self._now_ns = now_ns = self._read_now()
        if self._late_ns is not None and heap[0][0] < now_ns - self._late_ns:
            if not self._skip_expired(now_ns):
                self._timer.arm(self._timing.monotonic_ns())
                return None
            if not heap or heap[0][0] > reached_ns:
                if not heap or heap[0][0] > now_ns:
                    self._full_since_ns = None  # nothing that is due waits any more
                self._arm()
                return None
        return heap[0][2]

    @property
    def remaining(self) -> int:
        """How many requests are due now."""
        return sum(execution.count_due(self._reached_ns) for _, _, execution in self._heap)

    def add(self, execution: Execution) -> None:
        """Have the requests of an execution sent, each when it is due."""
        assert isinstance(execution, ScheduledExecution)
        execution.finish_if_done()
        self._enlist(execution)
        self._go_on()

    def find_first(self) -> ScheduledExecution | None:
        """The execution to take from next, now or later; None if nothing is left to take."""
        if self._heap:
            return self._heap[0][2]
        return next(iter((*self._fetching, *self._limited)), None)

    def find_starved(self) -> Execution | None:
        """An execution that its limit keeps from going on."""
        return self._limited[0] if self._limited else None

    def count_first(self, within_s: float) -> int:
        """How many requests will be due in so short a time from the first one on, by the rate."""
        first = self.find_first()
        return math.ceil(first.first_rps * within_s) if first is not None else 0

    def pop(self) -> Taken:
        """Take the request of `current`, of which there must be one."""
        now_ns = self._now_ns
        tally, coordinate, index, due_ns = self._heap[0][2].pop(now_ns // _NS_PER_S)
        self._replace_first()
        if self._heap and self._heap[0][0] <= self._reached_ns:
            if self._full_since_ns is None:
                self._check_window()
        else:
            self._full_since_ns = None
            self._arm()
        assert self._offset_ns is not None
        return tally, coordinate, index, min(due_ns, now_ns) - self._offset_ns

    def advance(self) -> None:
        """Requests are only taken with `take`; there is nothing to do."""

    def enter(self, phase: str) -> None:
        """The phase of a request is that in which it is due."""

    def raise_limits(self, limits: Mapping[Execution, int]) -> None:
        """Let more be taken; a limit never falls."""
        for execution, limit in limits.items():
            execution.limit = max(execution.limit, limit)
        limited, self._limited = self._limited, []
        for execution in limited:
            self._enlist(execution)
        self._go_on()

    def shorten(self, execution: Execution, end: int) -> None:
        """Take no position of an execution from `end` on; positions already taken stay."""
        execution.shorten(end)
        if not execution.untaken:
            self._heap = [entry for entry in self._heap if entry[2] is not execution]
            heapq.heapify(self._heap)
            self._fetching = [other for other in self._fetching if other is not execution]
            self._limited = [other for other in self._limited if other is not execution]
            self._go_on()

    def attach(self, taker: Taker) -> None:
        """Have an engine take the due requests, and account for its full window."""
        self._taker = taker

    def refresh(self) -> None:
        """Follow the coordinator's clock, and compute due times that are needed soon."""
        clock = self._timing.coordinator_clock
        if clock.is_known:  # else it goes on as it was known last
            self._offset_ns = -clock.to_local_ns(0.0)
        if self._fetch_handle is None:
            self._fetch()
        self._go_on()

    def close(self) -> None:
        """End: nothing more is shown."""
        self._timer.close()
        if self._fetch_handle is not None:
            self._fetch_handle.cancel()

    def _enlist(self, execution: ScheduledExecution) -> None:
        if not execution.untaken:
            execution.compact()
        elif not execution.allowed:
            self._limited.append(execution)
            self._requester.request_limits()
        elif execution.due_ns is None:
            self._fetching.append(execution)
            if self._fetch_handle is None:
                self._fetch()
        else:
            heapq.heappush(self._heap, (execution.due_ns, next(self._numbers), execution))

    def _replace_first(self) -> None:
        """The first of the heap has taken a step: put it where it belongs now."""
        _, number, execution = self._heap[0]
        # Before the end of a segment more is allowed: to look at that first is quicker.
        if execution.due_ns is not None and (execution.next_coordinate < execution.stop or execution.allowed):
            heapq.heapreplace(self._heap, (execution.due_ns, number, execution))
            return
        heapq.heappop(self._heap)
        self._enlist(execution)

    def _skip_expired(self, now_ns: int) -> bool:
        """Account for requests that are too late to send; False if it takes another turn of the loop."""
        heap = self._heap
        if self._late_ns is None or not heap or heap[0][0] >= (expired_ns := now_ns - self._late_ns):
            return True
        ends_ns = self._timing.monotonic_ns() + _TURN_NS

        def is_time_up() -> bool:
            return self._timing.monotonic_ns() > ends_ns

        while heap and heap[0][0] < expired_ns:
            due_ns, _, execution = heap[0]
            full_ns = self._full_since_ns
            if full_ns is None or due_ns >= full_ns:
                execution.skip(expired_ns, LATE if full_ns is None else IN_FLIGHT_CAP, is_time_up)
            else:
                execution.skip(min(full_ns, expired_ns), LATE, is_time_up)
            self._replace_first()
            if is_time_up():
                return False
        return True

    def _check_window(self) -> None:
        """Something is due: whether it finds the window full."""
        if not self._taker.has_room():
            self._full_since_ns = self._heap[0][0]

    def _wake(self) -> None:
        """It is time for the next request, or too late for one that waits."""
        if self._offset_ns is None:
            return
        self._reached_ns = now_ns = self._read_now()
        if not self._skip_expired(now_ns):
            self._timer.arm(self._timing.monotonic_ns())
            return
        if self._heap and self._heap[0][0] <= now_ns:
            if self._full_since_ns is None:
                self._check_window()
            self._show()
        else:
            self._full_since_ns = None
        self._arm()

    def _go_on(self) -> None:
        """Continue after a change: show the due requests, and plan the next wake."""
        if self._heap and self._heap[0][0] <= self._reached_ns:
            self._show()
        else:
            self._full_since_ns = None
        self._arm()

    def _arm(self) -> None:
        """Wake when the next request is due, or, as long as one that is due waits, when it is too late."""
        if not self._heap or self._offset_ns is None:
            self._timer.disarm()
            return
        due_ns, _, execution = self._heap[0]
        if due_ns > self._reached_ns:
            self._timer.arm(execution.find_wake_ns() - self._offset_ns)
        elif self._late_ns is None:
            self._timer.disarm()
        else:
            self._timer.arm(due_ns + self._late_ns + _EXPIRY_NS - self._offset_ns)

    def _fetch(self) -> None:
        """Compute due times that are needed soon, a chunk of each execution at a time."""
        self._fetch_handle = None
        fetching, self._fetching = self._fetching, []
        for execution in fetching:
            execution.fetch()
        must_go_on, chunks = False, 0
        soon_ns = 0 if self._offset_ns is None else self._read_now() + _AHEAD_NS
        for _, _, execution in heapq.nsmallest(_MOST_FETCHING, self._heap):
            chunks += execution.fetched_chunks
            if execution.fetched_ns < soon_ns and chunks < _MOST_FETCHED:
                execution.fetch()
                must_go_on = must_go_on or execution.fetched_ns < soon_ns
        if must_go_on or fetching:
            self._fetch_handle = self._loop.call_later(_PAUSE_S, self._fetch)
        if fetching:
            for execution in fetching:
                self._enlist(execution)
            self._go_on()

    def _show(self) -> None:
        """Something is due: let the engine take it."""
        if not self._taker.take_due():
            self._parking.wake(self.remaining if self._parking.is_crowded else 1)

    def _read_now(self) -> int:
        assert self._offset_ns is not None
        return self._timing.monotonic_ns() + self._offset_ns
