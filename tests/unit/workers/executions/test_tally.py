"""What a tally makes of requests that end."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from tests.kit.outcomes import make_counts

from oku_core.accounting.histogram import HIGHEST_US, Histogram, HistogramSnapshot
from oku_core.accounting.measured_time import Time, find_time_fault
from oku_core.messaging.lease import Lease
from oku_core.spec.spec import Spec
from oku_workers.executions.execution import Execution
from oku_workers.executions.tally import EXCEPTION, FAILED_CHECK, OK, Tally

TIMES_US = st.lists(
    st.integers(0, 5000) | st.integers(0, HIGHEST_US) | st.integers(HIGHEST_US, 2 * HIGHEST_US)
)


def build_execution(length: int) -> Execution:
    """An execution of so many requests, none of which was taken."""
    loop = asyncio.new_event_loop()
    lease = Lease(id="l", run="r", ranges=[(0, length)] if length else [], limit=length)
    execution = Execution(lease, Spec(), loop.create_future())
    loop.close()
    return execution


@given(latencies_us=TIMES_US, compacted_after=st.integers(0, 100), is_dense=st.booleans())
def test_its_latencies_are_those_of_a_histogram(
    latencies_us: list[int], compacted_after: int, *, is_dense: bool
) -> None:
    """What is recorded in place, in a list or in less memory, is exactly what a `Histogram` records."""
    tally, histogram = Tally(build_execution(10**6), is_dense=is_dense), Histogram()
    for place, latency_us in enumerate(latencies_us):
        if place == compacted_after:
            tally.compact()
        tally.answer(OK, 200, latency_us, 0)
        histogram.record(latency_us)
    assert tally.latency.build_snapshot() == histogram.build_latency()
    assert list(tally.latency.list_counts()) == list(histogram.filled())


def test_without_due_times_nothing_is_late() -> None:
    """There is one distribution then."""
    tally = Tally(build_execution(10))
    tally.answer(OK, 200, 10, 0, 5)
    assert list(tally.times) == [Time.LATENCY]


@given(st.lists(st.tuples(TIMES_US.filter(bool).map(max), st.integers(0, 2 * HIGHEST_US))))
def test_first_byte_and_transfer_of_split_answers_are_their_latency(answers: list[tuple[int, int]]) -> None:
    """They sum up exactly, also where times are longer than can be told."""
    tally = Tally(build_execution(10**6))
    for latency_us, first_byte_us in answers:
        tally.note_split(latency_us, first_byte_us)
        tally.answer(OK, 200, latency_us, 0)
    times = {time: distribution.build_snapshot() for time, distribution in tally.times.items()}
    assert find_time_fault(times, tally.outcomes) is None
    assert times.get(Time.SPLIT_LATENCY, HistogramSnapshot()) == times[Time.LATENCY]


def test_tallies_without_timings_share_nothing_that_changes() -> None:
    """One that has some has its own."""
    execution = build_execution(10)
    tally, other = Tally(execution), Tally(execution)
    tally.note_connection(200, None)
    tally.note_connection(300, 900)
    assert (tally.times[Time.CONNECT].sum_us, tally.times[Time.TLS].sum_us) == (500, 900)
    assert list(other.times) == [Time.LATENCY]


def test_an_iteration_that_ran_to_its_end_has_a_latency_and_no_status() -> None:
    """Whether it was ok or failed a check; one that raised an exception has neither."""
    execution = build_execution(3)
    execution.begin_segment()
    execution.next_coordinate = 3
    tally = execution.tally
    tally.complete(OK, 1500)
    tally.explain(FAILED_CHECK, 1, "check")
    tally.complete(FAILED_CHECK, 2500)
    assert not execution.finished.done()
    tally.fail(EXCEPTION, 2, "ValueError")
    assert execution.finished.done()
    assert tally.outcomes == make_counts(1, failed_check=1, exception=1)
    assert (tally.statuses, tally.latency.build_snapshot().sum_us) == ({}, 4000)


@given(latencies_us=TIMES_US.filter(bool), is_dense=st.booleans())
def test_answers_that_are_counted_together_count_as_one_by_one(
    latencies_us: list[int], *, is_dense: bool
) -> None:
    """All figures are the same, also those of times beyond the longest."""
    one_by_one, together = (Tally(build_execution(len(latencies_us)), is_dense=is_dense) for _ in range(2))
    for latency_us in latencies_us:
        one_by_one.answer(OK, 201, latency_us, 7)
    together.answer_all(201, latencies_us, 7 * len(latencies_us))
    for tally in (one_by_one, together):
        assert tally.execution.ended == len(latencies_us)
    assert together.outcomes == one_by_one.outcomes
    assert together.statuses == one_by_one.statuses
    assert together.bytes_received == one_by_one.bytes_received
    assert together.latency.build_snapshot() == one_by_one.latency.build_snapshot()
