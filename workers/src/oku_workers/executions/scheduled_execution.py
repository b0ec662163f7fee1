"""One attempt at a lease of an open run: each of its requests has an index and a due time.

Positions, coordinates and due times rise together. Due times are computed in chunks, ahead of their need: the
random ones of a second must all be drawn before the first of them is known.
"""

import asyncio
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from oku_core.messaging.lease import Lease
from oku_core.process.clock import Clock
from oku_core.schedule.lane import MOST_IN_CHUNK, Chunk, Lane
from oku_core.schedule.schedule import Schedule
from oku_core.schedule.wave import ActivePeriod
from oku_core.spec.request_template import TurnCounts
from oku_core.spec.spec import Spec
from oku_workers.executions.execution import Execution
from oku_workers.executions.scheduled_tally import ScheduledTally

if TYPE_CHECKING:
    from oku_workers.executions.tally import Tally

_NS_PER_S = 1_000_000_000
_NEVER_NS = 1 << 63
_DENSE_GAP_NS, _GRAIN_NS = 250_000, 500_000
"""Where due times are closer than the first, wakes are as far apart as the second: 20,000 requests a second
take all of a processor if each has a wake of its own, and half of one this way."""
_SENDING_NS = 60_000
"""The last wake of a second precedes its end by this much, so that its requests are sent within it."""
_FASTEST_DRAWN_RPS, _DRAWING_NS = 100_000, 100_000_000
"""Faster random arrivals, which no worker can send, would all be late by the time they are drawn. So this
much more of the schedule is passed over, and some of the arrivals that follow are in time."""
_MOST_LISTED = 8_192
"""If more requests to several targets are passed over together, they are counted by target and not listed."""
_NO_CHUNK = Chunk((), ())


class ScheduledExecution(Execution):
    """One attempt at a lease of an open run.

    Args:
        lease: which coordinates to send, of one lane of a wave.
        spec: what to send.
        finished: becomes done with the execution.
        now: gives Unix time.
        schedule: the schedule of the spec.
        period: when its clock runs.

    Attributes:
        due_ns: when the request that is taken next is due, by the coordinator's clock in nanoseconds of Unix
            time; None until it is computed.
        fetched_ns: the latest due time that is computed.
        first_rps: how many requests its lane has in the first second of its wave.

    Raises:
        ValueError: the lease is not of one lane of the schedule, or there is no period.
    """

    __slots__ = (
        "_at",
        "_chunk",
        "_chunks",
        "_fetched",
        "_grain_ns",
        "_grid_ns",
        "_lane",
        "_origin_ns",
        "_phase",
        "_turn_counts",
        "due_ns",
        "fetched_ns",
        "first_rps",
    )

    def __init__(
        self,
        lease: Lease,
        spec: Spec,
        finished: asyncio.Future[None],
        now: Clock,
        schedule: Schedule,
        period: ActivePeriod | None,
    ) -> None:
        super().__init__(lease, spec, finished, now)
        if lease.wave is None or period is None:
            raise ValueError("a lease of an open run has no wave or no period")
        self._lane = lane = Lane(schedule, lease.wave, lease.lane)
        ranges = self.ranges.ranges
        if ranges and not lane.start <= ranges[0][0] < ranges[-1][1] <= lane.stop:
            raise ValueError(f"its ranges are not all in the lane [{lane.start}, {lane.stop})")
        self._phase = schedule.find_phase(lease.wave.begin).name
        self._origin_ns = round(period.unix_time(0.0) * _NS_PER_S)
        self._turn_counts: TurnCounts | None = None
        self._chunks = lane.iter_chunks(ranges)
        self._fetched: deque[Chunk] = deque()
        self._chunk = _NO_CHUNK
        self._at = 0
        self.due_ns: int | None = None
        self.fetched_ns = 0
        self.first_rps = lease.wave.blocks[0] / lease.wave.lanes
        # The wakes of several workers lie evenly between each other.
        self._grid_ns = self._origin_ns - _SENDING_NS - _GRAIN_NS * lease.lane // lease.wave.lanes
        self._grain_ns = 1
        if ranges:
            self.fetch()

    @property
    def next_index(self) -> int:
        """The index of the request that is taken next; its due time is known."""
        return self._chunk.indices[self._at]

    @property
    def fetched_chunks(self) -> int:
        """How many chunks of due times are computed, besides the one that requests are taken from."""
        return len(self._fetched)

    @property
    def sent(self) -> int:
        """How many requests were sent."""
        return self.taken - sum(sum(tally.not_sent) for tally in self.tallies)

    def find_wake_ns(self) -> int:
        """When to wake for the request that is taken next: when it is due, or for several together.

        Where they are dense, wakes lie on a grid, so that each second has as many requests as the plan.
        """
        assert self.due_ns is not None
        return self.due_ns + (self._grid_ns - self.due_ns) % self._grain_ns

    def fetch(self) -> None:
        """Compute some more due times, if there are any."""
        chunk = next(self._chunks, None)
        if chunk is None:
            self.fetched_ns = _NEVER_NS
        elif chunk.dues_ns:
            self.fetched_ns = self._origin_ns + chunk.dues_ns[-1]
            self._fetched.append(chunk)
            if self.due_ns is None:
                self._begin_chunk()

    def pop(self, second: int) -> tuple["Tally", int, int, int]:
        """Take the next request, which may be taken and is sent in a Unix second.

        Gives the tally, the coordinate, the index and the due time.
        """
        if self.next_coordinate == self.stop:
            self.begin_segment(self._phase)
        due_ns = self.due_ns
        assert due_ns is not None
        index, coordinate = self._chunk.indices[self._at], self.next_coordinate
        tally = self._find_tally(index)
        counts = tally.sent_per_second
        counts[second] = counts.get(second, 0) + 1
        self._step()
        return tally, coordinate, index, due_ns

    def skip(self, until_ns: int, cause: int, is_time_up: Callable[[], bool] = lambda: False) -> None:
        """Skip all requests that may be taken and are due before a time, without a limit on their number.

        If random arrivals could not be drawn in time, some that are due a little later are skipped, too.

        Args:
            until_ns: nanoseconds of the coordinator's clock.
            cause: why they are not sent, as an index.
            is_time_up: asked now and then; once it holds, the rest is left to another call.
        """
        until_ns -= self._origin_ns
        while self.allowed and self._chunk.dues_ns and self._chunk.dues_ns[self._at] < until_ns:
            dues_ns, at = self._chunk.dues_ns, self._at
            count = min(bisect_left(dues_ns, until_ns, at) - at, self.allowed)
            self._pass_over(self._chunk.indices[at : at + count], cause)
            # If a whole chunk was too late, the due times that follow need not be computed.
            if count < len(dues_ns) or not self._jump(until_ns, cause, is_time_up):
                self._advance(count)
            if is_time_up():
                return

    def count_due(self, until_ns: int) -> int:
        """How many requests that are computed are due at a time of the coordinator's clock, or before."""
        until_ns -= self._origin_ns
        count = bisect_right(self._chunk.dues_ns, until_ns) - self._at
        for chunk in self._fetched:
            if chunk.dues_ns[0] > until_ns:
                break
            count += bisect_right(chunk.dues_ns, until_ns)
        return min(max(0, count), self.allowed)

    def find_end(self, until_ns: int) -> int:
        """The first position that is due at a time of the coordinator's clock or after it."""
        return self._find_position(self._lane.find_first_due(until_ns - self._origin_ns))

    def _find_position(self, coordinate: int) -> int:
        """How many of its positions are before a coordinate of the lane."""
        return sum(max(0, min(stop, coordinate) - start) for start, stop in self.ranges.ranges)

    def _build_tally(self, phase: str, name: str, *, is_dense: bool) -> ScheduledTally:
        return ScheduledTally(self, phase, name, is_dense=is_dense)

    def _find_tally(self, index: int) -> "Tally":
        turns = self.turns
        return self.tally if turns is None else self.tally.by_target[turns[index % len(turns)]]

    def _step(self) -> None:
        self.next_coordinate += 1
        self._at = at = self._at + 1
        dues_ns = self._chunk.dues_ns
        if at < len(dues_ns):
            self.due_ns = self._origin_ns + dues_ns[at]
        else:
            self._end_chunk()

    def _advance(self, count: int) -> None:
        """Move on by this many requests of the chunk, which were skipped."""
        self._at += count
        if self._at < len(self._chunk.dues_ns):
            self.due_ns = self._origin_ns + self._chunk.dues_ns[self._at]
        else:
            self._end_chunk()

    def _end_chunk(self) -> None:
        """Go on to the next chunk."""
        self.due_ns, self._chunk, self._at = None, _NO_CHUNK, 0
        if self._fetched:
            self._begin_chunk()
        elif self.untaken:
            self.fetch()

    def _jump(self, until_ns: int, cause: int, is_time_up: Callable[[], bool]) -> bool:
        """Skip the requests due before a time of the schedule, without computing when; whether any were."""
        position = min(self._find_position(self._find_past(until_ns)), self.taken + self.allowed)
        if position <= self.taken:
            return False
        if self.turns is None:
            self._pass_over(range(position - self.taken), cause)
        elif position - self.taken <= _MOST_LISTED:
            for chunk in self._lane.iter_chunks(self.ranges.cut(self.taken, position)):
                if chunk.indices:
                    self._pass_over(chunk.indices, cause)
        else:
            for number, indices in enumerate(self._lane.iter_indices(self.ranges.cut(self.taken, position))):
                self._pass_over(indices, cause)
                # The first may be the rest of a cell, and the second all cells after it.
                if number and is_time_up():
                    break
        self._chunks = self._lane.iter_chunks(self.ranges.cut(self.taken, self.ranges.length))
        self._fetched.clear()
        self._end_chunk()
        return True

    def _find_past(self, until_ns: int) -> int:
        """The first coordinate that may be due at a time of the schedule or after it, and can be in time."""
        lane = self._lane
        if not lane.is_random:
            return lane.find_first_due(until_ns)
        is_fast = len(lane.indices) > _FASTEST_DRAWN_RPS * lane.duration_s
        return lane.find_cell_start(until_ns + _DRAWING_NS * is_fast)

    def _pass_over(self, indices: Sequence[int], cause: int) -> None:
        """Count the next requests, which may be taken, as not sent."""
        if self.next_coordinate == self.stop:
            self.begin_segment(self._phase)
        first, count, turns = self.taken, len(indices), self.turns
        tallies = [
            tally for tally in self.tally.by_target or (self.tally,) if isinstance(tally, ScheduledTally)
        ]
        if turns is None:
            tallies[0].skip(cause, range(first, first + count))
        elif isinstance(indices, range) and (count > MOST_IN_CHUNK or self._lane.is_random):
            # Too many to visit each, or not in the order of their positions.
            if self._turn_counts is None:
                self._turn_counts = TurnCounts(turns, self._lane.indices)
            at = self._lane.indices.index(indices[0])
            for target, requests, lowest, highest in self._turn_counts.count(at, at + count):
                positions = range(first + lowest - at, first + highest - at + 1)
                tallies[target].skip(cause, positions, requests)
        else:
            for position, index in enumerate(indices, first):
                tallies[turns[index % len(turns)]].skip(cause, range(position, position + 1))
        self.pass_over(first + count)

    def _begin_chunk(self) -> None:
        self._chunk, self._at = self._fetched.popleft(), 0
        dues_ns = self._chunk.dues_ns
        self.due_ns = self._origin_ns + dues_ns[0]
        is_dense = dues_ns[-1] - dues_ns[0] < _DENSE_GAP_NS * (len(dues_ns) - 1)
        self._grain_ns = _GRAIN_NS if is_dense else 1
