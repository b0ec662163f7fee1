"""One attempt at a lease: the next index to take, and the counts of those that have ended.

All of it belongs to the thread of the event loop. Coordinates are taken in segments: consecutive ones of one
range of the lease that may all be taken, so that taking one is a comparison of two numbers. Outcomes are
counted in tallies, one for each phase in which any index was taken.
"""

import asyncio
import time
from typing import TYPE_CHECKING, Protocol

from oku_core.accounting.index_ranges import Room
from oku_core.accounting.outcome import build_no_counts
from oku_core.messaging.checkpoint import (
    LONGEST_TRACEBACK,
    MOST_FAILED_RANGES,
    MOST_INNER_PARTS,
    MOST_REASON_RANGES,
    MOST_TRACEBACKS,
    OTHER_NAMES,
)
from oku_core.messaging.hook import NO_SETUP
from oku_core.messaging.lease import Lease
from oku_core.process.clock import Clock
from oku_core.spec.request_template import find_target_turns, list_target_names
from oku_core.spec.spec import Spec
from oku_workers.executions.tally import InnerTally, Tally

if TYPE_CHECKING:
    from oku_workers.executions.flight_recording import FlightRecording

_DENSE_FROM = 4096
"""A lease of fewer requests counts their times in dictionaries, which are slower than lists and take less."""
_MOST_NAMES = MOST_INNER_PARTS // 2
"""A host reports a limited number of names, but its successor may report others. The remaining parts of a
checkpoint are for `OTHER_NAMES`, one for each phase."""
NO_MARK = -1
"""The mark of an execution that has none."""


class ExecutionKeeper(Protocol):
    """Keeps executions open that may be the last of their run."""

    def keeps_open(self, execution: "Execution") -> bool:
        """Whether an execution that has come to its end is kept open."""
        ...


class Execution:
    """One attempt at a lease, counted as it goes on.

    `finished` is done when every position taken has ended or was given back and no more will be taken. An
    execution that is kept open for later counts must also be released.

    Args:
        lease: which indices to send; `ValueError` if its ranges do not rise.
        spec: what to send.
        finished: becomes done with the execution.
        now: gives Unix time.

    Attributes:
        setup: what the setup of its scenario returned.
        next_coordinate: the place in the ledger that is taken next, if it is below `stop`.
        stop: the end of the segment that coordinates are taken from.
        end: the first position that will not be taken.
        limit: the first position that must not be taken yet.
        mark: a position at which the feed wants to be asked, although more may be taken.
        recording: writes how far it may go, before it goes there; None if nothing is written.
        tally: counts the requests taken now, if the spec has one target, or else stands for the tallies of
            all of them (`Tally.by_target`); there is none before the first segment.
        tallies: one for each target in each phase in which anything was taken.
        turns: which target each index asks (`find_target_turns`); None if there is only one.
        ended: how many positions have ended, or were given back.
        given_back: the positions that were taken and that another worker must send.
        untouched: the positions given back that were certainly not sent here.
        inner: the tallies of inner requests, by phase and name.
        tracebacks: of exceptions of user code, by their reason; the first of each.
        room: for the ranges of positions that have failed.
        reason_room: for these ranges by their reasons.
        keeper: decides at its end whether it is kept open.
        is_kept: whether it has come to its end and is kept open.
        is_last: whether its worker must take no more of the run.
    """

    __slots__ = (
        "_base",
        "_now",
        "_range",
        "cancel_at",
        "clock_step_s",
        "end",
        "ended",
        "ended_at",
        "finished",
        "given_back",
        "inner",
        "is_kept",
        "is_last",
        "judged",
        "keeper",
        "lagged",
        "lease",
        "limit",
        "mark",
        "max_busy_share",
        "max_lag_s",
        "next_coordinate",
        "ranges",
        "reason_room",
        "recording",
        "room",
        "saturated",
        "setup",
        "spec",
        "started_at",
        "stop",
        "tallies",
        "tally",
        "tracebacks",
        "turns",
        "untouched",
    )

    def __init__(
        self,
        lease: Lease,
        spec: Spec,
        finished: asyncio.Future[None],
        now: Clock = time.time,
    ) -> None:
        self._now = now
        self.lease = lease
        self.spec = spec
        self.setup = NO_SETUP
        self.finished = finished
        self.ranges = lease.build_ranges()
        self.end = self.ranges.length
        self.limit = max(lease.limit, 0)
        self.mark = NO_MARK
        self.recording: FlightRecording | None = None
        self._range = 0
        self.next_coordinate = self.stop = self.ranges.ranges[0][0] if self.end else 0
        self._base = -self.next_coordinate
        self.ended = 0
        self.tally: Tally
        self.tallies: list[Tally] = []
        self.turns = find_target_turns(spec) if len(spec.targets) > 1 else None
        self.given_back: list[int] = []
        self.untouched: list[int] = []
        self.inner: dict[tuple[str, str], InnerTally] = {}
        self.tracebacks: dict[str, str] = {}
        self.room = Room(MOST_FAILED_RANGES)
        self.reason_room = Room(MOST_REASON_RANGES)
        self.max_lag_s = 0.0
        self.max_busy_share = 0.0
        self.judged = self.saturated = self.lagged = 0
        self.clock_step_s = self.started_at = self.ended_at = 0.0
        self.keeper: ExecutionKeeper | None = None
        self.is_kept = self.is_last = False
        self.cancel_at = float("inf")
        """The time at which requests in flight are cut off, by the clock of the event loop."""

    @property
    def next_index(self) -> int:
        """The index of the request that is taken next; it is its place in the ledger, too."""
        return self.next_coordinate

    @property
    def taken(self) -> int:
        """The first position that was not taken."""
        return self.next_coordinate + self._base

    @property
    def untaken(self) -> int:
        """How many positions will still be taken, now or once the limit allows it."""
        return self.end - self.next_coordinate - self._base

    @property
    def allowed(self) -> int:
        """How many positions may be taken now."""
        return max(0, min(self.end, self.limit) - self.taken)

    @property
    def in_flight(self) -> int:
        """How many positions were taken and have not ended."""
        return self.taken - self.ended

    @property
    def sent(self) -> int:
        """How many requests were sent."""
        return self.taken

    @property
    def outcomes(self) -> list[int]:
        """The counts of outcomes of all phases together."""
        counts = [tally.outcomes for tally in self.tallies]
        return [sum(of_one) for of_one in zip(build_no_counts(), *counts, strict=True)]

    @property
    def is_under_way(self) -> bool:
        """Whether it has had its turn and is not finished."""
        return self.started_at > 0 and not self.finished.done()

    @property
    def is_abandoned(self) -> bool:
        """Whether it has ended with an error of our own."""
        return self.finished.done() and self.finished.exception() is not None

    def begin_segment(self, phase: str = "") -> bool:
        """Go on to the next coordinates that may be taken, in a phase; False if there are none now."""
        taken = self.taken
        bound = min(self.end, self.limit)
        if taken >= bound:
            return False
        if not self.started_at:
            self.started_at = self.ended_at = self._now()
        self.enter(phase)
        if taken < self.mark < bound:
            bound = self.mark
        if self.recording is not None:
            bound = self.recording.extend(taken, bound)
        ranges = self.ranges
        stop = ranges.ranges[self._range][1]
        if self.next_coordinate == stop:
            self._range += 1
            self.next_coordinate, stop = ranges.ranges[self._range]
            self._base = taken - self.next_coordinate
        self.stop = min(stop, bound - self._base)
        return True

    def pass_over(self, position: int) -> None:
        """Go on at a position, which may be taken or is the end; all before it count as taken and ended."""
        self.ended += position - self.taken
        ranges = self.ranges
        self._range = number = ranges.find_range(min(position, ranges.length - 1))
        self._base = ranges.offset(number) - ranges.ranges[number][0]
        self.next_coordinate = self.stop = position - self._base
        self.finish_if_done()

    def enter(self, phase: str) -> None:
        """Count requests in this phase from now on."""
        if self.tallies and self.tally.phase == phase:
            return
        self.compact()
        known = next((tally for tally in self.tallies if tally.phase == phase), None)
        self.tally = known or self._add_tallies(phase)

    def find_inner(self, phase: str, name: str) -> InnerTally:
        """The tally of inner requests of a name, of iterations that were taken in a phase."""
        tally = self.inner.get((phase, name))
        if tally is None and len(self.inner) >= _MOST_NAMES:
            name = OTHER_NAMES
            tally = self.inner.get((phase, name))
        if tally is None:
            tally = self.inner[phase, name] = InnerTally(self, phase, name)
        return tally

    def keep_traceback(self, reason: str, traceback: str) -> None:
        """Keep where an exception of user code came from, if it is the first for its reason."""
        if len(self.tracebacks) < MOST_TRACEBACKS:
            self.tracebacks.setdefault(reason, traceback[:LONGEST_TRACEBACK])

    def _add_tallies(self, phase: str) -> Tally:
        """Count by target in a phase; returns the tally of the first target."""
        names = list_target_names(self.spec)
        is_dense = self.ranges.length >= _DENSE_FROM * len(names)
        tallies = tuple(self._build_tally(phase, name, is_dense=is_dense) for name in names)
        if len(tallies) > 1:
            for tally in tallies:
                tally.by_target = tallies
        self.tallies += tallies
        return tallies[0]

    def _build_tally(self, phase: str, name: str, *, is_dense: bool) -> Tally:
        return Tally(self, phase, name, is_dense=is_dense)

    def shorten(self, end: int) -> None:
        """Take no position from `end` on; positions already taken stay."""
        self.end = max(min(self.end, end), self.taken)
        self.stop = min(self.stop, self.end - self._base)
        self.finish_if_done()

    def compact(self) -> None:
        """Keep the counts in less memory, since few more are to come."""
        for tally in self.tallies:
            tally.compact()

    def give_back(self, coordinate: int, *, is_untouched: bool = False) -> None:
        """Give back a request that was cut off before its answer came; a worker must send it, perhaps again.

        Args:
            coordinate: its place in the ledger.
            is_untouched: whether it was certainly not sent here.
        """
        position = self.ranges.position_of(coordinate)
        self.given_back.append(position)
        if is_untouched:
            self.untouched.append(position)
        self.ended += 1
        self.finish_if_done()

    def abandon(self, error: BaseException) -> None:
        """Finish with an internal error: the counts of the lease are unknown from now on."""
        if not self.finished.done():
            self.finished.set_exception(error)

    def finish_if_done(self) -> None:
        """Finish if nothing is in flight and nothing is left to take, unless it is kept open."""
        if self.taken == self.end == self.ended and not self.finished.done() and not self.is_kept:
            if self.keeper is not None and self.taken and self.keeper.keeps_open(self):
                self.is_kept = True
            else:
                self._finish()

    def release(self) -> None:
        """Finish an execution that was kept open."""
        self.keeper, self.is_kept = None, False
        self.finish_if_done()

    def drop_tallies(self) -> None:
        """Break the reference cycle of an execution and its tallies, so that both are freed at once.

        The tallies of an abandoned execution stay, since they may still count requests in flight.
        """
        if self.in_flight or not self.tallies:
            return
        for tally in self.tallies:
            tally.by_target = ()
        self.tallies, self.inner = [], {}
        del self.tally

    def _finish(self) -> None:
        if not self.finished.done():
            self.ended_at = self._now()
            self.given_back.sort()
            self.finished.set_result(None)
