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

BuildExecution = Callable[..., Execution]


def test_the_outcomes_have_the_order_of_the_account() -> None:
    """The indices of the hot path mean what they are called."""
    for index, outcome in enumerate(OUTCOMES):
        assert getattr(execution_module, outcome.name) == index
    assert OUTCOMES[TIMEOUT] == Outcome.TIMEOUT


def take(execution: Execution, count: int) -> list[int]:
    """Take indices, as a feed does."""
    taken = []
    for _ in range(count):
        if execution.next_index == execution.stop and not execution.begin_segment():
            break
        taken.append(execution.next_index)
        execution.next_index += 1
    return taken


def test_it_is_finished_by_its_last_answer(build_execution: BuildExecution) -> None:
    """It is not before every index was taken and has ended."""
    execution = build_execution((5, 7))
    take(execution, 1)
    execution.answer(200, 10, 3, expected=True)
    assert not execution.finished.done()
    take(execution, 1)
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
    execution = build_execution((0, 1))
    take(execution, 1)
    execution.fail(outcome)
    assert execution.finished.done()
    assert execution.outcomes[outcome] == sum(execution.outcomes) == 1
    assert (execution.statuses, execution.build_latency()) == ({}, HistogramSnapshot())


def test_what_is_given_back_are_positions_in_rising_order(build_execution: BuildExecution) -> None:
    """The order in which requests are cut off does not matter, and neither does where the indices are."""
    execution = build_execution((10, 12), (100, 102))
    assert take(execution, 9) == [10, 11, 100, 101]
    for index in (100, 10, 101, 11):
        execution.give_back(index)
    assert execution.finished.done()
    assert execution.given_back == [0, 1, 2, 3]
    assert sum(execution.outcomes) == 0


def test_a_limit_holds_back_what_lies_beyond(build_execution: BuildExecution) -> None:
    """It may lie within a range, and is in positions; below it nothing is held back."""
    execution = build_execution((10, 13), (20, 23), limit=4)
    assert take(execution, 9) == [10, 11, 12, 20]
    assert (execution.taken, execution.untaken, execution.allowed) == (4, 2, 0)
    execution.limit = 6
    assert execution.allowed == 2
    assert take(execution, 9) == [21, 22]


def test_a_limit_that_is_reached_does_not_finish_it(build_execution: BuildExecution) -> None:
    """There is more to come, though nothing is in flight."""
    execution = build_execution((0, 9), limit=1)
    take(execution, 9)
    execution.answer(200, 1, 0, expected=True)
    assert (execution.in_flight, execution.finished.done()) == (0, False)


def test_a_mark_divides_a_segment(build_execution: BuildExecution) -> None:
    """Whoever takes has to ask there, and may go on."""
    execution = build_execution((0, 9))
    execution.mark = 4
    assert execution.begin_segment()
    assert execution.stop == 4
    assert take(execution, 99) == list(range(9))


def test_a_shortened_one_waits_for_what_is_in_flight(build_execution: BuildExecution) -> None:
    """It is finished when that has ended; indices that were not taken do not concern it."""
    execution = build_execution((0, 100))
    take(execution, 3)
    execution.answer(200, 1, 0, expected=True)
    execution.shorten(0)
    assert (execution.end, execution.in_flight, execution.finished.done()) == (3, 2, False)
    execution.fail(TIMEOUT)
    execution.give_back(2)
    assert (execution.in_flight, execution.finished.done()) == (0, True)


def test_an_end_never_rises(build_execution: BuildExecution) -> None:
    """A wish that is late changes nothing, and one that comes first counts."""
    execution = build_execution((0, 50), (60, 110))
    execution.shorten(70)
    execution.shorten(90)
    assert execution.end == 70
    assert take(execution, 999) == [*range(50), *range(60, 80)]


def test_an_untouched_one_is_finished_by_its_withdrawal(build_execution: BuildExecution) -> None:
    """A second withdrawal has no effect."""
    execution = build_execution((0, 100))
    execution.shorten(0)
    assert execution.finished.done()
    execution.shorten(0)
    assert (execution.taken, execution.started_at, execution.is_under_way) == (0, 0.0, False)


def test_an_abandoned_one_ends_with_its_error(build_execution: BuildExecution) -> None:
    """What still comes for it does no harm."""
    execution = build_execution((0, 2))
    take(execution, 2)
    error = ValueError("a fault of our own")
    execution.abandon(error)
    execution.abandon(KeyError())
    execution.fail(TIMEOUT)
    execution.answer(200, 1, 0, expected=True)
    assert execution.finished.exception() is error
    assert execution.is_abandoned


def test_a_lease_without_a_range_has_no_index(build_execution: BuildExecution) -> None:
    """It is finished at once."""
    execution = build_execution()
    assert (execution.untaken, execution.begin_segment()) == (0, False)
    execution.settle()
    assert execution.finished.done()


@pytest.mark.parametrize("ranges", [[(5, 3)], [(0, 5), (4, 9)], [(0, 0)]])
def test_ranges_that_do_not_rise_are_refused(
    build_execution: BuildExecution, ranges: list[tuple[int, int]]
) -> None:
    """They may be forged, and an index would have two positions."""
    with pytest.raises(ValueError, match="is empty or does not follow"):
        build_execution(*ranges)


@given(
    latencies_us=st.lists(
        st.integers(0, 5000) | st.integers(0, HIGHEST_US) | st.integers(HIGHEST_US, 2 * HIGHEST_US)
    ),
    compacted_after=st.integers(0, 100),
    is_large=st.booleans(),
)
def test_its_latencies_are_those_of_a_histogram(
    latencies_us: list[int], compacted_after: int, *, is_large: bool
) -> None:
    """What is recorded in place, in a list or in less memory, is exactly what a `Histogram` records."""
    loop = asyncio.new_event_loop()
    count = len(latencies_us) + (10_000 if is_large else 0)
    lease = Lease(id="l", run="r", ranges=[(0, count)] if count else [], limit=count)
    execution, histogram = Execution(lease, Spec(), loop.create_future()), Histogram()
    loop.close()
    take(execution, count)
    for place, latency_us in enumerate(latencies_us):
        if place == compacted_after:
            execution.compact()
        execution.answer(200, latency_us, 0, expected=True)
        histogram.record(latency_us)
    assert execution.build_latency() == histogram.build_latency()
    assert list(execution.list_counts()) == list(histogram.filled())
