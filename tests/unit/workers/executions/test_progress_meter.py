from collections.abc import Callable

import pytest

from oku_core.accounting.histogram import HIGHEST_US, HistogramSnapshot
from oku_workers.executions.execution import TIMEOUT, Execution
from oku_workers.executions.progress_meter import ProgressMeter

BuildExecution = Callable[..., Execution]


@pytest.fixture
def execution(build_execution: BuildExecution) -> Execution:
    """A lease whose indices are all in flight."""
    return take_all(build_execution((0, 1000)))


def take_all(execution: Execution) -> Execution:
    """Take every index."""
    execution.begin_segment()
    execution.next_index = execution.stop
    return execution


def build_meter() -> ProgressMeter:
    """A meter for which no time goes by."""
    return ProgressMeter(lambda: 0.0, lambda: 0.0)


def test_a_second_has_what_happened_in_it(execution: Execution) -> None:
    """It has nothing of what was there before."""
    meter = build_meter()
    execution.answer(200, 1000, 7, expected=True)
    meter.take([execution])
    execution.answer(200, 1000, 5, expected=True)
    execution.answer(500, 1500, 6, expected=False)
    execution.fail(TIMEOUT)

    second = meter.take([execution])

    assert second.outcomes == [1, 1, 1, 0, 0, 0]
    assert second.bytes_received == 11
    assert second.latency == HistogramSnapshot(
        buckets=[1000, 1, 1500, 1], sum_us=2500, min_us=1000, max_us=1500
    )


def test_a_second_without_answers_is_empty(execution: Execution) -> None:
    """It is, even if there were answers before it."""
    meter = build_meter()
    execution.answer(200, 1000, 7, expected=True)
    meter.take([execution])
    second = meter.take([execution])
    assert (sum(second.outcomes), second.bytes_received, second.latency) == (0, 0, HistogramSnapshot())


def test_executions_are_added_up(build_execution: BuildExecution) -> None:
    """A second is one of the worker, not of an execution."""
    meter = build_meter()
    executions = [take_all(build_execution((0, 10))), take_all(build_execution((10, 20)))]
    for execution in executions:
        execution.answer(200, 3000, 1, expected=True)
    second = meter.take(executions)
    assert second.outcomes[0] == second.bytes_received == second.latency.total == 2


def test_a_lease_that_leaves_is_looked_at_once_more(execution: Execution) -> None:
    """What it did since the last look is not lost, and not counted twice."""
    meter = build_meter()
    execution.answer(200, 10, 1, expected=True)
    meter.take([execution])
    execution.answer(200, 10, 1, expected=True)
    meter.forget(execution)
    assert [sum(meter.take([]).outcomes) for _ in range(3)] == [1, 0, 0]


def test_the_longest_latency_is_not_a_fault(execution: Execution) -> None:
    """The last bucket reaches beyond an hour; a second does not."""
    meter = build_meter()
    execution.answer(200, 2 * HIGHEST_US, 0, expected=True)
    latency = meter.take([execution]).latency
    assert latency.max_us == HIGHEST_US
    assert latency.find_fault() is None


def test_the_processor_share_is_of_the_time_since_the_last_look() -> None:
    """It is processor time over wall time, and 0 when no time has passed."""
    cpu_s, now = 5.0, 100.0
    meter = ProgressMeter(lambda: cpu_s, lambda: now)
    meter.start()
    assert meter.take([]).cpu_share == 0.0
    cpu_s, now = 5.5, 102.0
    assert meter.take([]).cpu_share == 0.25
    cpu_s, now = 6.5, 103.0
    assert meter.take([]).cpu_share == 1.0
