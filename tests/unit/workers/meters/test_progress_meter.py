import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.outcomes import make_counts

from oku_core.accounting.histogram import HIGHEST_US, Histogram, HistogramSnapshot, merge
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import OK, TIMEOUT, UNEXPECTED_STATUS
from oku_core.messaging.lease import Lease
from oku_core.messaging.progress import RunProgress
from oku_core.spec.spec import Spec
from oku_workers.executions.execution import Execution
from oku_workers.meters.progress_meter import ProgressMeter

BuildExecution = Callable[..., Execution]

MANY = 10**6
"""So many requests are in flight at most."""


@pytest.fixture
def execution(build_execution: BuildExecution) -> Execution:
    """A lease whose indices are all in flight."""
    return take_all(build_execution((0, 1000)))


def take_all(execution: Execution) -> Execution:
    """Take every index."""
    execution.begin_segment()
    execution.next_coordinate = execution.stop
    return execution


def build_bare_execution(requests: int, run: str = "r1") -> Execution:
    """A lease whose indices are all in flight, without an event loop."""
    lease = Lease(id=f"{run}.000000001.x", run=run, ranges=[(0, requests)], limit=requests)
    loop = asyncio.new_event_loop()
    try:
        return take_all(Execution(lease, Spec(), loop.create_future()))
    finally:
        loop.close()


def build_meter() -> ProgressMeter:
    """A meter for which no time goes by."""
    return ProgressMeter(lambda: 0.0, lambda: 0.0)


def take(meter: ProgressMeter, *executions: Execution, run: str = "r1") -> RunProgress:
    """What is new of a run."""
    return meter.measure(executions, {}, MANY).runs.get(run, RunProgress())


def test_seconds_have_what_happened_in_them(build_execution: BuildExecution) -> None:
    """It has nothing of what was there before."""
    execution = take_all(build_execution((0, 1000)))
    meter = build_meter()
    execution.tally.answer(OK, 200, 1000, 7)
    take(meter, execution)
    execution.tally.answer(OK, 200, 1000, 5)
    execution.tally.answer(UNEXPECTED_STATUS, 500, 1500, 6)
    execution.tally.fail(TIMEOUT, execution.ranges.index_at(0), "late")
    second = take(meter, execution)
    assert second.outcomes == make_counts(1, unexpected_status=1, timeout=1)
    assert second.bytes_received == 11
    assert second.histogram(Time.LATENCY) == HistogramSnapshot(
        buckets=[1000, 1, 1500, 1], sum_us=2500, min_us=1000, max_us=1500
    )
    # A second without answers is empty. It is, even if there were answers before it.
    execution = take_all(build_execution((0, 1000)))
    meter = build_meter()
    execution.tally.answer(OK, 200, 1000, 7)
    take(meter, execution)
    second = take(meter, execution)
    assert (sum(second.outcomes), second.bytes_received, second.histogram(Time.LATENCY)) == (
        0,
        0,
        HistogramSnapshot(),
    )
    # Executions are added up. A second is one of the worker, not of an execution.
    meter = build_meter()
    executions = [take_all(build_execution((0, 10))), take_all(build_execution((10, 20)))]
    for execution in executions:
        execution.tally.answer(OK, 200, 3000, 1)
    second = take(meter, *executions)
    assert second.outcomes[0] == second.bytes_received == second.histogram(Time.LATENCY).total == 2
    # A lease that leaves is looked at once more.
    execution = take_all(build_execution((0, 1000)))
    meter = build_meter()
    execution.tally.answer(OK, 200, 10, 1)
    take(meter, execution)
    execution.tally.answer(OK, 200, 10, 1)
    meter.forget(execution)
    assert [sum(take(meter).outcomes) for _ in range(3)] == [1, 0, 0]
    # What two runs did in one second is kept apart.
    meter = build_meter()
    before, after = build_bare_execution(3, "r1"), build_bare_execution(5, "r2")
    before.tally.answer(OK, 200, 700_000, 4)
    meter.measure([before], {}, MANY)
    for _ in range(2):
        before.tally.answer(OK, 200, 700_000, 4)
    meter.forget(before)
    after.tally.answer(OK, 200, 1000, 1)
    after.tally.fail(TIMEOUT, 1, "late")
    runs = meter.measure([after], {"r1": 0.5, "r2": 0.0123}, MANY).runs
    assert list(runs) == ["r1", "r2"]
    assert [done.outcomes for done in runs.values()] == [make_counts(2), make_counts(1, timeout=1)]
    assert [(done.sent, done.in_flight, done.bytes_received, done.lag_s) for done in runs.values()] == [
        (0, 0, 8, 0.5), (5, 3, 1, 0.0123),
    ]  # fmt: skip
    assert [done.histogram(Time.LATENCY).max_us for done in runs.values()] == [700_415, 1000]
    assert list(meter.measure([after], {}, MANY).runs) == ["r2"]


@given(
    seconds=st.lists(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 10**7)), max_size=8), max_size=5),
    compacted_in=st.integers(0, 5),
    dense=st.sampled_from([(False, False), (False, True), (True, True)]),
)
def test_the_seconds_together_are_what_was_recorded(
    seconds: list[list[tuple[int, int]]], compacted_in: int, dense: tuple[bool, bool]
) -> None:
    """Each time is in one second, in its bucket, whatever form a lease keeps its times in, and since when."""
    meter, found = build_meter(), Histogram()
    executions = [build_bare_execution(5000 if is_dense else 10) for is_dense in dense]
    expected: list[HistogramSnapshot] = []
    for number, second in enumerate(seconds):
        here = Histogram()
        for lease, latency_us in second:
            executions[lease].tally.answer(OK, 200, latency_us, 0)
            here.record(latency_us)
        if number == compacted_in:
            executions[0].compact()
        latency = take(meter, *executions).histogram(Time.LATENCY)
        assert latency.buckets == here.build_latency().buckets
        assert latency.sum_us == here.sum_us
        assert latency.find_fault() is None
        found.add(latency)
        expected.append(here.build_latency())
    assert found.build_latency().buckets == merge(expected).buckets


def test_no_more_is_in_flight_than_was_sent(build_execution: BuildExecution) -> None:
    """What was taken may wait for a connection, or in the process of user code."""
    execution = take_all(build_execution((0, 1000)))
    assert build_meter().measure([execution], {}, 7).runs["r1"].in_flight == 7
    # The longest latency is not a fault. The last bucket reaches beyond an hour; a second does not.
    execution = take_all(build_execution((0, 1000)))
    meter = build_meter()
    execution.tally.answer(OK, 200, 2 * HIGHEST_US, 0)
    latency = take(meter, execution).histogram(Time.LATENCY)
    assert latency.max_us == HIGHEST_US
    assert latency.find_fault() is None


def test_the_processor_share_is_of_the_time_since_the_last_look() -> None:
    """It is processor time over wall time, and 0 when no time has passed."""
    cpu_s, now = 5.0, 100.0
    meter = ProgressMeter(lambda: cpu_s, lambda: now)
    meter.start()
    assert meter.measure([], {}, MANY).cpu_share == 0.0
    cpu_s, now = 5.5, 102.0
    assert meter.measure([], {}, MANY).cpu_share == 0.25
    cpu_s, now = 6.5, 103.0
    assert meter.measure([], {}, MANY).cpu_share == 1.0
