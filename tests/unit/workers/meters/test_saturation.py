from collections.abc import Callable

import pytest

from oku_core.accounting.outcome import OK
from oku_workers.executions.execution import Execution
from oku_workers.meters.saturation import LATE_S, SATURATED_SHARE, SaturationMeter

BuildExecution = Callable[..., Execution]
LOOK_S = 0.05


class Worker:
    """A worker with one lease at a time, whose clocks a test sets."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.now = self.busy_s = 100.0
        self.meter = SaturationMeter(lambda: self.busy_s, lambda: self.now)

    def work(self, seconds: float, *, busy: float = 0.0, late_s: float = 0.0, rate: int = 10) -> None:
        """Go on for some time: busy for a share of it, late at the first sample, so many answers a sample."""
        for sample in range(round(seconds / LOOK_S)):
            for _ in range(rate):
                self.execution.next_coordinate += 1
                self.execution.tally.answer(OK, 200, 1000, 0)
            self.now += LOOK_S
            self.busy_s += busy * LOOK_S
            self.meter.sample([self.execution], 0.0 if sample else late_s)

    def rest(self, seconds: float, *, busy: float) -> None:
        """Nothing is in flight."""
        self.now += seconds
        self.busy_s += busy * seconds
        self.meter.sample([], 0.0)


def begin(execution: Execution) -> Execution:
    """Take the first index."""
    execution.begin_segment()
    execution.next_coordinate += 1
    return execution


@pytest.fixture
def worker(build_execution: BuildExecution) -> Worker:
    """One that has begun with a lease, and has a request in flight all the time."""
    execution = begin(build_execution((0, 1_000_000)))
    worker = Worker(execution)
    worker.meter.sample([execution], 0.0)
    return worker


def test_a_tenth_of_a_second_is_not_judged(worker: Worker) -> None:
    """It does not matter how busy the worker was in it, or before it as it started."""
    worker.rest(5.0, busy=1.0)
    worker.meter.sample([worker.execution], 0.0)
    worker.work(0.1, busy=1.0, late_s=0.5)
    worker.meter.record_end(worker.execution)
    assert (worker.execution.saturated, worker.execution.lagged, worker.execution.max_busy_share) == (
        0,
        0,
        0.0,
    )


def test_requests_are_affected_by_the_second_that_they_end_in(worker: Worker) -> None:
    """Half of this time is busy, and so is half of what is counted."""
    worker.work(5.0, busy=0.5)
    worker.work(5.0, busy=1.0)
    worker.meter.record_end(worker.execution)
    assert worker.execution.saturated == pytest.approx(1000, abs=200)
    assert worker.execution.max_busy_share == pytest.approx(1.0)
    assert worker.execution.lagged == 0


LIMITS = [(SATURATED_SHARE + 0.001, True), (SATURATED_SHARE - 0.01, False)]


@pytest.mark.parametrize(("busy", "is_saturated"), LIMITS)
def test_a_second_is_saturated_from_the_limit_on(worker: Worker, busy: float, *, is_saturated: bool) -> None:
    """A busy part of it does not count by itself."""
    worker.work(1.05, busy=busy)
    assert bool(worker.execution.saturated) is is_saturated


def test_a_late_loop_affects_its_second_and_what_is_read_after_it(worker: Worker) -> None:
    """The other seconds are as they were."""
    worker.work(3.0)
    worker.work(1.0, late_s=LATE_S)
    worker.work(6.0)
    worker.meter.record_end(worker.execution)
    assert 200 <= worker.execution.lagged <= 420
    assert worker.execution.saturated == 0


def test_what_is_within_the_limit_affects_nothing(worker: Worker) -> None:
    """A pause of some milliseconds is there in any process."""
    worker.work(3.0, busy=0.2, late_s=LATE_S - 0.001)
    worker.meter.record_end(worker.execution)
    assert (worker.execution.saturated, worker.execution.lagged) == (0, 0)


def test_short_leases_of_a_busy_worker_are_judged(worker: Worker, build_execution: BuildExecution) -> None:
    """A lease that ends before its second is over is as the second before it was."""
    worker.work(1.05, busy=1.0)
    affected = 0
    for _ in range(10):
        worker.execution = begin(build_execution((0, 1_000_000)))
        worker.work(0.3, busy=1.0)
        worker.meter.record_end(worker.execution)
        affected += worker.execution.saturated
    assert affected == 10 * 6 * 10


@pytest.mark.parametrize("late_s", [LATE_S / 2, 3.0])
def test_what_counts_as_lagged_says_by_how_much(
    worker: Worker, build_execution: BuildExecution, late_s: float
) -> None:
    """Also of a lease that is short, and judged by the second before it."""
    worker.work(1.0, late_s=late_s)
    worker.meter.record_end(worker.execution)
    worker.execution = begin(build_execution((0, 100)))
    worker.work(0.2)
    worker.meter.record_end(worker.execution)
    assert (worker.execution.lagged > 0) == (late_s >= LATE_S)
    assert worker.execution.max_lag_s == (late_s if late_s >= LATE_S else 0.0)


def test_what_was_busy_before_a_pause_does_not_count_after_it(
    worker: Worker, build_execution: BuildExecution
) -> None:
    """The next run on this worker begins anew."""
    worker.work(2.0, busy=1.0)
    worker.rest(1.0, busy=1.0)
    worker.execution = begin(build_execution((0, 1_000_000)))
    worker.meter.sample([worker.execution], 0.0)
    worker.work(0.5, busy=1.0)
    worker.meter.record_end(worker.execution)
    assert worker.execution.saturated == 0


def test_what_is_given_back_is_not_affected(worker: Worker) -> None:
    """It is not counted anywhere else, either."""
    worker.work(1.05, busy=1.0)
    answered = worker.execution.saturated
    worker.execution.give_back(0)
    worker.meter.record_end(worker.execution)
    assert worker.execution.saturated == answered == sum(worker.execution.outcomes)


def test_the_strain_of_one_run_is_not_that_of_the_next(build_execution: BuildExecution) -> None:
    """A second that began with the work of another run says nothing of this one."""
    before = begin(build_execution((0, 1_000_000)))
    after = begin(build_execution((0, 1_000_000), run="r2"))
    worker = Worker(before)
    worker.meter.sample([before], 0.0)
    worker.work(1.95, busy=1.0, late_s=2 * LATE_S)
    worker.execution = after
    worker.meter.sample([before, after], 0.0)
    worker.work(0.5, busy=0.1)
    worker.meter.record_end(before)
    assert before.saturated > 0
    assert before.lagged > 0
    worker.work(1.0, busy=0.1)
    worker.meter.record_end(after)
    assert (after.saturated, after.lagged) == (0, 0)
    assert after.max_busy_share == pytest.approx(0.1, abs=0.02)
    worker.work(2.0, busy=1.0)
    assert after.saturated > 0
