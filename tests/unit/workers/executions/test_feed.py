import asyncio
from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from oku_core.accounting.histogram import HIGHEST_US
from oku_core.messaging.lease import Lease, Report, find_fault
from oku_core.spec.spec import Spec
from oku_workers.executions.execution import Execution
from oku_workers.executions.feed import Feed
from oku_workers.executions.progress_meter import ProgressDelta, ProgressMeter

BuildExecution = Callable[..., Execution]

FAILURES = range(2, 6)


class FeedMachine(RuleBasedStateMachine):
    """Leases come, are taken from, answered, failed, cut off and withdrawn in any order, and looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.feed = Feed()
        self.meter = ProgressMeter()
        self.meter.start()
        self.seconds: list[ProgressDelta] = []
        self.executions: list[Execution] = []
        self.withdrawn: set[Execution] = set()
        self.let_go: set[Execution] = set()
        self.in_flight: list[tuple[Execution, int]] = []
        self.taken: dict[Execution, list[int]] = {}
        self.at = 0

    def teardown(self) -> None:
        """Whatever happened, the seconds add up to what the leases report."""
        self.look()
        for position, executions in enumerate(
            zip(*(execution.outcomes for execution in self.executions), strict=True)
        ):
            assert sum(executions) == sum(second.outcomes[position] for second in self.seconds)
        assert sum(h.bytes_received for h in self.executions) == sum(s.bytes_received for s in self.seconds)
        assert sum(h.sum_us for h in self.executions) == sum(s.latency.sum_us for s in self.seconds)
        assert sum(map(count_buckets, self.executions)) == sum(s.latency.total for s in self.seconds)
        assert all(second.latency.find_fault() is None for second in self.seconds)
        self.loop.close()

    @rule(length=st.integers(-1, 6), is_stopped=st.booleans())
    def add(self, length: int, *, is_stopped: bool) -> None:
        """A lease comes, perhaps after its own stop; one without an index may be forged."""
        lease = Lease(
            id=str(len(self.executions)),
            run="r1",
            start=self.at,
            stop=self.at + length,
            start_by=0.0,
            spec=Spec(),
        )
        self.at += max(length, 0)
        execution = Execution(lease, self.loop.create_future())
        self.executions.append(execution)
        self.taken[execution] = []
        if is_stopped:
            self.withdrawn.add(execution)
            execution.withdraw()
        self.feed.add(execution)

    @precondition(lambda self: self.feed.current)
    @rule(count=st.integers(1, 4))
    def take(self, count: int) -> None:
        """Slots take indices."""
        for _ in range(count):
            execution = self.feed.current
            if execution is None:
                return
            index = self.feed.take(execution)
            self.taken[execution].append(index)
            self.in_flight.append((execution, index))

    @precondition(lambda self: self.in_flight)
    @rule(
        data=st.data(),
        status=st.sampled_from([200, 404, 999]),
        latency_us=st.integers(0, 5000) | st.integers(0, 2 * HIGHEST_US),
        received=st.integers(0, 100),
    )
    def answer(self, data: st.DataObject, status: int, latency_us: int, received: int) -> None:
        """Some request is answered."""
        execution, _ = self.end_one(data)
        execution.answer(status, latency_us, received, expected=status == 200)

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data(), outcome=st.sampled_from(FAILURES))
    def fail(self, data: st.DataObject, outcome: int) -> None:
        """Some request fails."""
        execution, _ = self.end_one(data)
        execution.fail(outcome)

    @precondition(lambda self: self.withdrawn & {execution for execution, _ in self.in_flight})
    @rule(data=st.data())
    def cut_off(self, data: st.DataObject) -> None:
        """The grace time of a lease is over: what is in flight of it is given back."""
        execution = data.draw(
            st.sampled_from([execution for execution, _ in self.in_flight if execution in self.withdrawn])
        )
        for position, index in enumerate([index for other, index in self.in_flight if other is execution]):
            execution.give_back(index)
            assert execution.unfinished.count(index) == 1, position
        self.in_flight = [(other, index) for other, index in self.in_flight if other is not execution]

    @precondition(lambda self: self.executions)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        """A lease is stopped, the current one or any other."""
        execution = data.draw(st.sampled_from(self.executions))
        self.withdrawn.add(execution)
        self.feed.withdraw(execution)

    @rule()
    def look(self) -> None:
        """A second is over."""
        self.seconds.append(
            self.meter.take(execution for execution in self.executions if execution not in self.let_go)
        )

    @precondition(lambda self: any(h.finished.done() and h not in self.let_go for h in self.executions))
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        """A report has reached the broker."""
        done = [
            execution
            for execution in self.executions
            if execution.finished.done() and execution not in self.let_go
        ]
        execution = data.draw(st.sampled_from(done))
        self.let_go.add(execution)
        self.meter.forget(execution)

    @invariant()
    def each_index_is_taken_once_and_in_order(self) -> None:
        """What was taken of a lease is a prefix of it, index by index."""
        for execution in self.executions:
            assert self.taken[execution] == list(range(execution.lease.start, execution.next_index))
            assert execution.next_index <= max(execution.lease.start, execution.lease.stop)

    @invariant()
    def leases_are_taken_in_the_order_in_which_they_came(self) -> None:
        """The current one is the first with an index left, and there is one as long as there is an index."""
        left = [execution for execution in self.executions if self.has_index_left(execution)]
        assert self.feed.current is (left[0] if left else None)

    @invariant()
    def a_lease_is_finished_when_nothing_of_it_is_left(self) -> None:
        """Neither an index to take nor a request in flight; not before, and not later."""
        for execution in self.executions:
            in_flight = sum(other is execution for other, _ in self.in_flight)
            assert execution.in_flight == in_flight
            assert execution.finished.done() == (not in_flight and not self.has_index_left(execution))

    @invariant()
    def a_finished_lease_has_a_true_report(self) -> None:
        """The coordinator would believe it."""
        for execution in self.executions:
            if execution.finished.done():
                stop = max(execution.lease.start, execution.lease.stop)
                assert find_fault(build_report(execution), execution.lease.start, stop) is None

    def has_index_left(self, execution: Execution) -> bool:
        """Whether an index can still be taken."""
        return (
            execution not in self.withdrawn
            and len(self.taken[execution]) < execution.lease.stop - execution.lease.start
        )

    def end_one(self, data: st.DataObject) -> tuple[Execution, int]:
        """Some request in flight, which is none any more."""
        return self.in_flight.pop(data.draw(st.integers(0, len(self.in_flight) - 1)))


TestFeedMachine = FeedMachine.TestCase
TestFeedMachine.settings = settings(max_examples=40, stateful_step_count=40)


def count_buckets(execution: Execution) -> int:
    """How many latencies a lease has recorded."""
    return sum(execution.counts)


def build_report(execution: Execution) -> Report:
    """The report of a finished lease."""
    return Report(
        lease=execution.lease.id,
        execution="e1",
        worker="w1",
        incarnation="b1",
        start=execution.lease.start,
        done=execution.next_index,
        unfinished=execution.unfinished,
        outcomes=execution.outcomes,
        statuses={str(status): count for status, count in execution.statuses.items()},
        bytes_received=execution.bytes_received,
        latency=execution.build_latency(),
        started_at=execution.started_at,
        ended_at=execution.ended_at,
    )


async def test_who_waits_is_woken_by_a_lease(build_execution: BuildExecution) -> None:
    """Every waiter is woken, even if one of them has gone away meanwhile."""
    feed = Feed()
    waiting = [asyncio.ensure_future(feed.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[1].cancel()

    feed.add(build_execution(0, 5))

    await asyncio.wait_for(asyncio.gather(waiting[0], waiting[2]), 1)
    assert waiting[1].cancelled()


async def test_an_empty_lease_wakes_nobody(build_execution: BuildExecution) -> None:
    """There is nothing to take."""
    feed = Feed()
    waiting = asyncio.ensure_future(feed.wait())
    await asyncio.sleep(0)

    feed.add(build_execution(3, 3))
    await asyncio.sleep(0)

    assert not waiting.done()
    assert feed.current is None
    waiting.cancel()


def test_the_clock_of_a_lease_starts_with_its_turn(build_execution: BuildExecution) -> None:
    """One that waits behind another begins when the other has no index left."""
    now = 100.0
    feed, first, second = Feed(), build_execution(0, 1, lambda: now), build_execution(1, 2, lambda: now)
    feed.add(first)
    feed.add(second)
    now = 107.0

    feed.take(first)

    assert (first.started_at, second.started_at) == (100.0, 107.0)
