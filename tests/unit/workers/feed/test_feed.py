import asyncio
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from oku_core.accounting.histogram import HIGHEST_US
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import OK, UNEXPECTED_STATUS
from oku_core.messaging.lease import Lease
from oku_core.spec.spec import Spec
from oku_workers.executions.execution import Execution
from oku_workers.executions.tally import Tally
from oku_workers.feed.feed import Feed
from oku_workers.meters.progress_meter import ProgressMeter

if TYPE_CHECKING:
    from oku_core.messaging.progress import RunProgress

BuildExecution = Callable[..., Execution]

FAILURES = range(2, 6)


class Requester:
    """Counts how often higher limits are asked for.

    Args:
        reserve: what is enough to have left.
    """

    def __init__(self, reserve: float = math.inf) -> None:
        self.requests = 0
        self._reserve = reserve

    def request_limits(self) -> None:
        """Count it."""
        self.requests += 1

    def find_reserve(self) -> float:
        """What is enough."""
        return self._reserve


class FeedMachine(RuleBasedStateMachine):
    """Leases come, are taken from, answered, failed, cut off, shortened and allowed more, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.requester = Requester()
        self.feed = Feed(requester=self.requester)
        self.meter = ProgressMeter(lambda: 0.0, lambda: 0.0)
        self.meter.start()
        self.seconds: list[RunProgress] = []
        self.executions: list[Execution] = []
        self.ends: dict[Execution, int] = {}
        self.limits: dict[Execution, int] = {}
        self.let_go: set[Execution] = set()
        self.in_flight: list[tuple[Tally, int]] = []
        self.taken: dict[Execution, list[int]] = {}
        self.at = 0

    def teardown(self) -> None:
        """Whatever happened, the seconds add up to what the leases count."""
        self.refresh()
        for position, executions in enumerate(
            zip(*(execution.outcomes for execution in self.executions), strict=True)
        ):
            assert sum(executions) == sum(second.outcomes[position] for second in self.seconds)
        tallies = [tally for execution in self.executions for tally in execution.tallies]
        assert sum(tally.bytes_received for tally in tallies) == sum(s.bytes_received for s in self.seconds)
        assert sum(tally.latency.sum_us for tally in tallies) == sum(
            s.histogram(Time.LATENCY).sum_us for s in self.seconds
        )
        assert sum(execution.taken for execution in self.executions) == sum(s.sent for s in self.seconds)
        assert sum(map(count_buckets, self.executions)) == sum(
            s.histogram(Time.LATENCY).total for s in self.seconds
        )
        assert all(second.histogram(Time.LATENCY).find_fault() is None for second in self.seconds)
        self.loop.close()

    @rule(
        pieces=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=4),
        limit=st.integers(0, 12),
        is_stopped=st.booleans(),
    )
    def add(self, pieces: list[tuple[int, int]], limit: int, *, is_stopped: bool) -> None:
        """A lease of some ranges comes, perhaps after its own stop, perhaps without any index."""
        ranges = []
        for gap, length in pieces:
            self.at += gap
            ranges.append((self.at, self.at + length))
            self.at += length
        lease = Lease(id=str(len(self.executions)), run="r1", ranges=ranges, limit=limit)
        execution = Execution(lease, Spec(), self.loop.create_future())
        self.executions.append(execution)
        self.taken[execution] = []
        self.limits[execution], self.ends[execution] = limit, execution.ranges.length
        if is_stopped:
            self.ends[execution] = 0
            execution.shorten(0)
        self.feed.add(execution)

    @precondition(lambda self: self.feed.current)
    @rule(count=st.integers(1, 4))
    def take(self, count: int) -> None:
        """Slots take indices."""
        for _ in range(count):
            if self.feed.current is None:
                return
            tally, coordinate, index, due_ns = self.feed.pop()
            assert (index, due_ns) == (coordinate, 0)
            assert tally is tally.execution.tally
            self.taken[tally.execution].append(coordinate)
            self.in_flight.append((tally, coordinate))

    @precondition(lambda self: self.in_flight)
    @rule(
        data=st.data(),
        status=st.sampled_from([200, 404, 999]),
        latency_us=st.integers(0, 5000) | st.integers(0, 2 * HIGHEST_US),
        received=st.integers(0, 100),
    )
    def answer(self, data: st.DataObject, status: int, latency_us: int, received: int) -> None:
        """Some request is answered."""
        tally, _ = self.end_one(data)
        tally.answer(OK if status == 200 else UNEXPECTED_STATUS, status, latency_us, received)

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data(), outcome=st.sampled_from(FAILURES))
    def fail(self, data: st.DataObject, outcome: int) -> None:
        """Some request fails."""
        tally, coordinate = self.end_one(data)
        tally.fail(outcome, coordinate, "refused")

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """What is in flight of a lease is given back."""
        execution = data.draw(st.sampled_from([tally.execution for tally, _ in self.in_flight]))
        for coordinate in [each for tally, each in self.in_flight if tally.execution is execution]:
            execution.give_back(coordinate)
            assert execution.given_back.count(execution.ranges.position_of(coordinate)) == 1
        self.in_flight = [flight for flight in self.in_flight if flight[0].execution is not execution]

    @precondition(lambda self: self.executions)
    @rule(data=st.data(), end=st.integers(-1, 12))
    def shorten(self, data: st.DataObject, end: int) -> None:
        """A lease is to end earlier, the current one or any other."""
        execution = data.draw(st.sampled_from(self.executions))
        self.ends[execution] = max(min(self.ends[execution], end), len(self.taken[execution]))
        self.feed.shorten(execution, end)

    @precondition(lambda self: self.executions)
    @rule(data=st.data(), more=st.integers(-2, 8))
    def raise_limits(self, data: st.DataObject, more: int) -> None:
        """Some leases may go on, by an order that may be late."""
        chosen = data.draw(st.sets(st.sampled_from(self.executions), min_size=1))
        limits = {execution: self.limits[execution] + more for execution in chosen}
        for execution, limit in limits.items():
            self.limits[execution] = max(self.limits[execution], limit)
        self.feed.raise_limits(limits)

    @rule(phase=st.sampled_from(["", "warm-up", "soak"]))
    def enter(self, phase: str) -> None:
        """Another phase of the run begins."""
        self.feed.enter(phase)

    @rule()
    def refresh(self) -> None:
        """A second is over."""
        held = [execution for execution in self.executions if execution not in self.let_go]
        self.seconds += self.meter.measure(held, {}, len(self.in_flight)).runs.values()

    @precondition(lambda self: any(h.finished.done() and h not in self.let_go for h in self.executions))
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        """A final checkpoint is confirmed."""
        done = [
            execution
            for execution in self.executions
            if execution.finished.done() and execution not in self.let_go
        ]
        execution = data.draw(st.sampled_from(done))
        self.let_go.add(execution)
        self.meter.forget(execution)

    @invariant()
    def each_position_is_taken_once_and_in_order(self) -> None:
        """What was taken of a lease are its first positions, none of them beyond its limit or its end."""
        for execution in self.executions:
            taken = self.taken[execution]
            assert taken == execution.ranges.list_indices(range(len(taken)))
            assert execution.taken == len(taken) <= max(0, self.limits[execution])
            assert execution.end == self.ends[execution] >= len(taken)

    @invariant()
    def leases_are_taken_in_the_order_in_which_they_came(self) -> None:
        """The current one is the first that may take, and there is one as long as one may."""
        first = next((execution for execution in self.executions if self.count_allowed(execution)), None)
        assert self.feed.current is first
        assert self.feed.remaining == sum(map(self.count_allowed, self.executions))

    @invariant()
    def a_lease_is_finished_when_nothing_of_it_is_left(self) -> None:
        """Neither a position to take nor a request in flight; not before, and not later."""
        for execution in self.executions:
            in_flight = sum(tally.execution is execution for tally, _ in self.in_flight)
            assert execution.in_flight == in_flight
            is_left = in_flight or len(self.taken[execution]) < self.ends[execution]
            assert execution.finished.done() == (not is_left)

    @invariant()
    def what_is_taken_next_counts_in_the_phase_of_now(self) -> None:
        """Of each lease, there is one tally for each phase in which it was taken from."""
        if self.feed.current is not None:
            assert self.feed.current.tally.phase == self.feed.phase
        for execution in self.executions:
            assert len({tally.phase for tally in execution.tallies}) == len(execution.tallies)

    @invariant()
    def who_waits_for_a_limit_was_told_of(self) -> None:
        """As long as nothing may be taken although something is left, somebody was asked for more."""
        if self.feed.find_first() is not None and self.feed.current is None:
            assert self.requester.requests

    def count_allowed(self, execution: Execution) -> int:
        """How many positions may be taken now."""
        bound = min(self.limits[execution], self.ends[execution])
        return max(0, bound - len(self.taken[execution]))

    def end_one(self, data: st.DataObject) -> tuple[Tally, int]:
        """Some request in flight, which is none any more."""
        return self.in_flight.pop(data.draw(st.integers(0, len(self.in_flight) - 1)))


TestFeedMachine = FeedMachine.TestCase
TestFeedMachine.settings = settings(max_examples=25, stateful_step_count=40)


def count_buckets(execution: Execution) -> int:
    """How many latencies a lease has recorded."""
    return sum(count for tally in execution.tallies for _, count in tally.latency.list_counts())


async def test_who_waits_is_woken_by_a_lease(build_execution: BuildExecution) -> None:
    """Every waiter is woken, even if one of them has gone away meanwhile."""
    feed = Feed()
    waiting = [asyncio.ensure_future(feed.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[1].cancel()

    feed.add(build_execution((0, 5)))

    await asyncio.wait_for(asyncio.gather(waiting[0], waiting[2]), 1)
    assert waiting[1].cancelled()


async def test_who_waits_is_woken_by_a_limit_that_rises_and_not_by_an_empty_lease(
    build_execution: BuildExecution,
) -> None:
    """A lease none of which may be taken wakes nobody, until it may."""
    feed, execution = Feed(), build_execution((0, 5), limit=0)
    waiting = asyncio.ensure_future(feed.wait())
    feed.add(execution)
    await asyncio.sleep(0)
    assert (waiting.done(), feed.current, feed.find_first()) == (False, None, execution)
    feed.raise_limits({execution: 2})
    await asyncio.wait_for(waiting, 1)
    assert feed.current is execution
    # An empty lease wakes nobody. There is nothing to take.
    feed = Feed()
    waiting = asyncio.ensure_future(feed.wait())
    await asyncio.sleep(0)
    feed.add(build_execution())
    await asyncio.sleep(0)
    assert not waiting.done()
    assert feed.current is None
    waiting.cancel()


def test_the_clock_of_a_lease_starts_with_its_turn(build_execution: BuildExecution) -> None:
    """One that waits behind another begins when the other has no index left."""
    now = 100.0
    feed = Feed()
    first, second = build_execution((0, 1), now=lambda: now), build_execution((1, 2), now=lambda: now)
    feed.add(first)
    feed.add(second)
    now = 107.0

    feed.pop()

    assert (first.started_at, second.started_at) == (100.0, 107.0)


def count_taken_until_low(feed: Feed, requester: Requester) -> int:
    """How many indices can be taken before the feed asks for higher limits."""
    requests, taken = requester.requests, 0
    while requester.requests == requests:
        assert feed.current is not None
        feed.pop()
        taken += 1
    return taken


def test_when_higher_limits_are_asked_for(build_execution: BuildExecution) -> None:
    """It counts what may be taken of all leases together; each rise begins anew."""
    requester = Requester()
    feed = Feed(requester=requester)
    first, second = build_execution((0, 10)), build_execution((10, 99), limit=30)
    feed.add(first)
    feed.add(second)
    assert count_taken_until_low(feed, requester) == 27
    feed.raise_limits({second: 50})
    assert count_taken_until_low(feed, requester) == 22
    # It tells once that nothing may be taken. However many leases come that may not be taken from either.
    requester = Requester()
    feed = Feed(requester=requester)
    for start in range(0, 50, 10):
        feed.add(build_execution((start, start + 10), limit=0))
    assert requester.requests == 1
    # What is enough is not little though it is less than a third.
    requester = Requester(8.0)
    feed = Feed(requester=requester)
    execution = build_execution((0, 999), limit=60)
    feed.add(execution)
    assert count_taken_until_low(feed, requester) == 52
    feed.raise_limits({execution: 64})
    assert count_taken_until_low(feed, requester) == 8
    # It says nothing when limits hold nothing back. Nobody could allow more.
    requester = Requester()
    feed = Feed(requester=requester)
    feed.add(build_execution((0, 10)))
    while feed.current is not None:
        feed.pop()
    assert requester.requests == 0
