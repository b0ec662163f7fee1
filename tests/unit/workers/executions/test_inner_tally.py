from collections.abc import Callable

import pytest
from tests.kit.outcomes import make_counts

from oku_core.messaging.checkpoint import LONGEST_TRACEBACK, MOST_TRACEBACKS
from oku_workers.executions.execution import Execution
from oku_workers.executions.tally import CONNECT_ERROR, OK, UNEXPECTED_STATUS

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
