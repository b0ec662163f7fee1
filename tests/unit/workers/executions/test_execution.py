import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.accounting.histogram import HIGHEST_US, Histogram, HistogramSnapshot
from oku_core.accounting.outcome import OUTCOMES, Outcome
from oku_core.messaging.lease import Lease
from oku_core.spec.spec import Spec
from oku_workers.executions import execution as execution_module
from oku_workers.executions.execution import CONNECT_ERROR, DISCONNECTED, PROTOCOL_ERROR, TIMEOUT, Execution

BuildExecution = Callable[[int, int], Execution]


def test_the_outcomes_have_the_order_of_the_account() -> None:
    """The indices of the hot path mean what they are called."""
    for index, outcome in enumerate(OUTCOMES):
        assert getattr(execution_module, outcome.name) == index
    assert OUTCOMES[TIMEOUT] == Outcome.TIMEOUT


def take_all(execution: Execution) -> None:
    """Take every index, as a feed does."""
    execution.next_index = execution.stop


def test_it_is_finished_by_its_last_answer(build_execution: BuildExecution) -> None:
    """It is not before every index was taken and has ended."""
    execution = build_execution(5, 7)
    execution.next_index = 6
    execution.answer(200, 10, 3, expected=True)
    assert not execution.finished.done()
    take_all(execution)
    assert not execution.finished.done()
    execution.answer(404, 20, 4, expected=False)
    assert execution.finished.done()
    assert (execution.outcomes, execution.statuses, execution.bytes_received) == (
        [1, 1, 0, 0, 0, 0],
        {200: 1, 404: 1},
        7,
    )


@pytest.mark.parametrize("outcome", [TIMEOUT, CONNECT_ERROR, DISCONNECTED, PROTOCOL_ERROR])
def test_a_failure_ends_an_index_as_an_answer_does(build_execution: BuildExecution, outcome: int) -> None:
    """It counts as its outcome, and has neither status nor latency."""
    execution = build_execution(0, 1)
    take_all(execution)
    execution.fail(outcome)
    assert execution.finished.done()
    assert execution.outcomes[outcome] == sum(execution.outcomes) == 1
    assert (execution.statuses, execution.build_latency()) == ({}, HistogramSnapshot())


def test_what_is_given_back_is_in_rising_order(build_execution: BuildExecution) -> None:
    """The order in which requests are cut off does not matter."""
    execution = build_execution(0, 4)
    take_all(execution)
    for index in (2, 0, 3, 1):
        execution.give_back(index)
    assert execution.finished.done()
    assert execution.unfinished == [0, 1, 2, 3]
    assert sum(execution.outcomes) == 0


def test_a_withdrawn_one_waits_for_what_is_in_flight(build_execution: BuildExecution) -> None:
    """It is finished when that has ended; indices that were not taken do not concern it."""
    execution = build_execution(0, 100)
    execution.next_index = 3
    execution.answer(200, 1, 0, expected=True)
    execution.withdraw()
    assert (execution.in_flight, execution.finished.done()) == (2, False)
    execution.fail(TIMEOUT)
    execution.give_back(2)
    assert (execution.in_flight, execution.finished.done()) == (0, True)


def test_an_untouched_one_is_finished_by_its_withdrawal(build_execution: BuildExecution) -> None:
    """A second withdrawal has no effect."""
    execution = build_execution(0, 100)
    execution.withdraw()
    assert execution.finished.done()
    execution.withdraw()
    assert not execution.has_begun


def test_an_abandoned_one_ends_with_its_error(build_execution: BuildExecution) -> None:
    """What still comes for it does no harm."""
    execution = build_execution(0, 2)
    take_all(execution)
    error = ValueError("a fault of our own")
    execution.abandon(error)
    execution.abandon(KeyError())
    execution.fail(TIMEOUT)
    execution.answer(200, 1, 0, expected=True)
    assert execution.finished.exception() is error


def test_a_lease_that_ends_before_it_starts_has_no_index(build_execution: BuildExecution) -> None:
    """A forged lease is empty at worst."""
    execution = build_execution(10, 3)
    assert execution.stop == execution.next_index == 10
    execution.settle()
    assert execution.finished.done()


@given(st.lists(st.integers(0, 5000) | st.integers(0, HIGHEST_US) | st.integers(HIGHEST_US, 2 * HIGHEST_US)))
def test_its_latencies_are_those_of_a_histogram(latencies_us: list[int]) -> None:
    """What is recorded in place is what a `Histogram` records, its exact figures included."""
    loop = asyncio.new_event_loop()
    lease = Lease(id="l", run="r", start=0, stop=len(latencies_us), start_by=0.0, spec=Spec())
    execution, histogram = Execution(lease, loop.create_future()), Histogram()
    loop.close()
    take_all(execution)
    for latency_us in latencies_us:
        execution.answer(200, latency_us, 0, expected=True)
        histogram.record(latency_us)
    assert execution.build_latency() == histogram.build_latency()
    filled = {index for index, count in enumerate(execution.counts) if count}
    assert filled <= set(execution.bucket_range())
