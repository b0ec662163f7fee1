from collections.abc import Callable

import pytest
from tests.kit.outcomes import make_counts

from oku_core.accounting import outcome as outcome_module
from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.outcome import (
    CONNECT_ERROR,
    DISCONNECTED,
    OK,
    OUTCOMES,
    PROTOCOL_ERROR,
    TIMEOUT,
    UNEXPECTED_STATUS,
    Outcome,
)
from oku_core.messaging.checkpoint import MOST_INNER_PARTS, OTHER_NAMES
from oku_workers.executions.execution import Execution

BuildExecution = Callable[..., Execution]


def test_the_outcomes_have_the_order_of_the_account() -> None:
    """The indices of the hot path mean what they are called."""
    for index, outcome in enumerate(OUTCOMES):
        assert getattr(outcome_module, outcome.name) == index
    assert OUTCOMES[TIMEOUT] == Outcome.TIMEOUT


def take(execution: Execution, count: int) -> list[int]:
    """Take indices, as a feed does."""
    taken = []
    for _ in range(count):
        if execution.next_coordinate == execution.stop and not execution.begin_segment():
            break
        taken.append(execution.next_coordinate)
        execution.next_coordinate += 1
    return taken


def test_it_is_finished_by_its_last_answer_or_failure(build_execution: BuildExecution) -> None:
    """It is not before every index was taken and has ended."""
    execution = build_execution((5, 7))
    take(execution, 1)
    execution.tally.answer(OK, 200, 10, 3)
    assert not execution.finished.done()
    take(execution, 1)
    assert not execution.finished.done()
    execution.tally.answer(UNEXPECTED_STATUS, 404, 20, 4)
    assert execution.finished.done()
    assert (execution.tally.outcomes, execution.tally.statuses, execution.tally.bytes_received) == (
        make_counts(1, unexpected_status=1),
        {200: 1, 404: 1},
        7,
    )
    for outcome in [TIMEOUT, CONNECT_ERROR, DISCONNECTED, PROTOCOL_ERROR]:
        # A failure ends an index as an answer does.
        execution = build_execution((0, 1))
        take(execution, 1)
        execution.tally.fail(outcome, 0, "refused")
        assert execution.finished.done()
        assert execution.tally.outcomes[outcome] == sum(execution.tally.outcomes) == 1
        assert (execution.tally.statuses, execution.tally.latency.build_snapshot()) == (
            {},
            HistogramSnapshot(),
        )


def test_what_is_given_back_are_positions_in_rising_order(build_execution: BuildExecution) -> None:
    """The order in which requests are cut off does not matter, and neither does where the indices are."""
    execution = build_execution((10, 12), (100, 102))
    assert take(execution, 9) == [10, 11, 100, 101]
    for index in (100, 10, 101, 11):
        execution.give_back(index)
    assert execution.finished.done()
    assert execution.given_back == [0, 1, 2, 3]
    assert sum(execution.outcomes) == 0


def test_a_limit_and_a_mark_hold_back_what_lies_beyond(build_execution: BuildExecution) -> None:
    """It may lie within a range, and is in positions; below it nothing is held back."""
    execution = build_execution((10, 13), (20, 23), limit=4)
    assert take(execution, 9) == [10, 11, 12, 20]
    assert (execution.taken, execution.untaken, execution.allowed) == (4, 2, 0)
    execution.limit = 6
    assert execution.allowed == 2
    assert take(execution, 9) == [21, 22]
    # A limit that is reached does not finish it. There is more to come, though nothing is in flight.
    execution = build_execution((0, 9), limit=1)
    take(execution, 9)
    execution.tally.answer(OK, 200, 1, 0)
    assert (execution.in_flight, execution.finished.done()) == (0, False)
    # A mark divides a segment. Whoever takes has to ask there, and may go on.
    execution = build_execution((0, 9))
    execution.mark = 4
    assert execution.begin_segment()
    assert execution.stop == 4
    assert take(execution, 99) == list(range(9))


def test_a_shortened_one(build_execution: BuildExecution) -> None:
    """It is finished when that has ended; indices that were not taken do not concern it."""
    execution = build_execution((0, 100))
    take(execution, 3)
    execution.tally.answer(OK, 200, 1, 0)
    execution.shorten(0)
    assert (execution.end, execution.in_flight, execution.finished.done()) == (3, 2, False)
    execution.tally.fail(TIMEOUT, 0, "no answer")
    execution.give_back(2)
    assert (execution.in_flight, execution.finished.done()) == (0, True)
    # An end never rises. An end that is late changes nothing, and one that comes first counts.
    execution = build_execution((0, 50), (60, 110))
    execution.shorten(70)
    execution.shorten(90)
    assert execution.end == 70
    assert take(execution, 999) == [*range(50), *range(60, 80)]
    # An untouched one is finished by its withdrawal. A second withdrawal has no effect.
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
    execution.tally.fail(TIMEOUT, 0, "no answer")
    execution.tally.answer(OK, 200, 1, 0)
    assert execution.finished.exception() is error
    assert execution.is_abandoned
    # A lease without a range has no index. It is finished at once.
    execution = build_execution()
    assert (execution.untaken, execution.begin_segment()) == (0, False)
    execution.finish_if_done()
    assert execution.finished.done()
    cases: list[list[tuple[int, int]]] = [[(5, 3)], [(0, 5), (4, 9)], [(0, 0)]]
    for ranges in cases:
        # Ranges that do not rise are refused. They may be forged, and an index would have two positions.
        with pytest.raises(ValueError, match="is empty or does not follow"):
            build_execution(*ranges)


def test_a_lease_tells_of_no_more_names_than_a_checkpoint_holds(build_execution: BuildExecution) -> None:
    """Names with an index in them are ever new ones with each host; one with all would be refused."""
    execution = build_execution()
    for number in range(MOST_INNER_PARTS + 1):
        execution.find_inner("", f"order {number}").add(OK, 200, 1, 1)
    assert len(execution.inner) <= MOST_INNER_PARTS
    assert sum(inner.count for inner in execution.inner.values()) == MOST_INNER_PARTS + 1
    assert execution.find_inner("", OTHER_NAMES).count > 1
    assert execution.find_inner("", "order 0").count == 1
