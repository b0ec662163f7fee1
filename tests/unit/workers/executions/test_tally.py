"""What a tally makes of requests that end."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.outcomes import make_counts

from oku_core.accounting.histogram import HIGHEST_US, Histogram, HistogramSnapshot
from oku_core.accounting.measured_time import Time, find_time_fault
from oku_core.accounting.outcome import CONNECT_ERROR, EXCEPTION, FAILED_CHECK, OK, UNEXPECTED_STATUS
from oku_core.messaging.checkpoint import LONGEST_TRACEBACK, MOST_TRACEBACKS
from oku_core.messaging.lease import Lease
from oku_core.spec.spec import Spec
from oku_workers.executions.execution import Execution
from oku_workers.executions.tally import Tally

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


@given(st.lists(st.tuples(TIMES_US.filter(bool).map(max), st.integers(0, 2 * HIGHEST_US))))
def test_first_byte_and_transfer_of_split_answers_are_their_latency(answers: list[tuple[int, int]]) -> None:
    """They sum up exactly, also where times are longer than can be told."""
    tally = Tally(build_execution(10**6))
    for latency_us, first_byte_us in answers:
        tally.record_split(latency_us, first_byte_us)
        tally.answer(OK, 200, latency_us, 0)
    times = {time: distribution.build_snapshot() for time, distribution in tally.times.items()}
    assert find_time_fault(times, tally.outcomes) is None
    assert times.get(Time.SPLIT_LATENCY, HistogramSnapshot()) == times[Time.LATENCY]


def test_without_due_times_nothing_is_late() -> None:
    """There is one distribution then."""
    tally = Tally(build_execution(10))
    tally.answer(OK, 200, 10, 0, 5)
    assert list(tally.times) == [Time.LATENCY]
    # Tallies without timings share nothing that changes. One that has some has its own.
    execution = build_execution(10)
    tally, other = Tally(execution), Tally(execution)
    tally.record_connection(200, None)
    tally.record_connection(300, 900)
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


BuildExecution = Callable[..., Execution]


@pytest.fixture
def execution(build_execution: BuildExecution) -> Execution:
    """Five of its ten iterations were taken."""
    execution = build_execution((20, 30))
    assert execution.begin_segment()
    execution.next_coordinate = 25
    return execution


def test_inner_requests_are_counted_beside_their_execution(execution: Execution) -> None:
    """However many there are, no iteration has ended by them."""
    inner = execution.find_inner("", "login")
    for _ in range(7):
        inner.add(OK, 200, 1500, 10)
    inner.add(UNEXPECTED_STATUS, 404, 500, 3)
    inner.explain(UNEXPECTED_STATUS, 22, "404")
    assert (inner.count, inner.outcomes) == (8, make_counts(7, unexpected_status=1))
    assert (inner.statuses, inner.bytes_received) == ({200: 7, 404: 1}, 73)
    assert inner.latency.build_snapshot().sum_us == 7 * 1500 + 500
    assert (execution.ended, execution.outcomes) == (0, make_counts())


def test_what_has_no_status_or_was_not_answered_is_counted_without(execution: Execution) -> None:
    """A database answers without a status, and a connection that fails has no latency."""
    inner = execution.find_inner("", "query")
    inner.add(OK, 0, 1500, 0)
    inner.add(CONNECT_ERROR, 0, 9000, 0)
    assert (inner.statuses, inner.latency.build_snapshot().sum_us) == ({}, 1500)
    assert inner.outcomes == make_counts(1, connect_error=1)


def test_reasons_name_the_positions_of_iterations_and_no_failed_positions(execution: Execution) -> None:
    """The part of the iterations says which of them have failed."""
    inner = execution.find_inner("", "login")
    for coordinate in (24, 21):
        inner.add(CONNECT_ERROR, 0, 0, 0)
        inner.explain(CONNECT_ERROR, coordinate, "refused")
    assert [(each.requests, each.first, each.last) for each in inner.failures.build_reasons()] == [(2, 1, 4)]
    assert inner.failures.build_failed() == {}


def test_each_phase_and_name_has_a_tally_of_its_own(execution: Execution) -> None:
    """The same one whenever it is asked for."""
    login = execution.find_inner("main", "login")
    assert execution.find_inner("main", "login") is login
    others = [execution.find_inner("warm-up", "login"), execution.find_inner("main", "orders")]
    assert list(execution.inner.values()) == [login, *others]


def test_the_first_traceback_of_a_reason_is_kept_as_far_as_there_is_room(execution: Execution) -> None:
    """It is cut off where it is too long."""
    execution.keep_traceback("ValueError", "x" * (LONGEST_TRACEBACK + 9))
    execution.keep_traceback("ValueError", "later")
    assert execution.tracebacks == {"ValueError": "x" * LONGEST_TRACEBACK}
    for number in range(MOST_TRACEBACKS + 3):
        execution.keep_traceback(f"KeyError: {number}", "x")
    assert len(execution.tracebacks) == MOST_TRACEBACKS


def test_what_is_given_back_untouched_is_told_apart(execution: Execution) -> None:
    """Both are to be sent by somebody else."""
    execution.give_back(23)
    execution.give_back(21, is_untouched=True)
    assert (execution.given_back, execution.untouched, execution.ended) == ([3, 1], [1], 2)
