import time

import pytest
from tests.kit.workers.engines_in_memory import (
    BuiltEngines,
    begin,
    build_lease,
    build_runner,
    receive,
    settle,
)

from oku_core.messaging.lease import find_fault
from oku_core.process.clock import SteadyClock
from oku_workers.executions.saturation import SaturationMeter
from oku_workers.leases.lag_meter import LagMeter
from oku_workers.leases.lease_runner import LeaseRunner
from oku_workers.leases.worker_meter import WorkerMeter


class Lateness(LagMeter):
    """Stands for the meter of the event loop."""

    worst_s = 0.0

    def take_worst_s(self) -> float:
        """As the meter."""
        worst_s, self.worst_s = self.worst_s, 0.0
        return worst_s


async def test_a_report_has_the_worst_of_its_time(
    built: BuiltEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the largest lateness while the lease was under way, and the processor time of all of it."""
    lateness, cpu_s = Lateness(), 0.0
    monkeypatch.setattr(time, "process_time", lambda: cpu_s)
    runner = build_runner(built, WorkerMeter(lag=lateness))
    task = begin(runner, build_lease(0, 6))
    await settle()
    for new_cpu_s, lag_s in ((0.3, 0.2), (0.9, 0.05), (0.1, 0.01)):
        cpu_s, lateness.worst_s = cpu_s + new_cpu_s, lag_s
        built.engine.fill()
        runner.build_progress()
    lateness.worst_s = 0.4
    built.engine.answer_all()
    await built.engine.work()

    report = await receive(task)

    assert report.max_lag_s == 0.4
    assert report.cpu_s == pytest.approx(1.3)


async def test_a_report_says_how_many_requests_were_affected(built: BuiltEngines) -> None:
    """They ended while processor time was short or the loop was late, as the looks of the loop show."""
    busy_s, now = 0.0, 0.0
    meter = WorkerMeter(saturation=SaturationMeter(lambda: busy_s, lambda: now))
    task = begin(build_runner(built, meter), build_lease(0, 6))
    await settle()
    built.engine.fill()
    meter.look(0.0)
    built.engine.answer_all()
    built.engine.fill()
    busy_s, now = 1.0, 1.1
    meter.look(0.3)
    built.engine.answer_all()

    report = await receive(task)

    assert (report.saturated, report.lagged) == (6, 6)
    assert report.busy_share == pytest.approx(1.0 / 1.1)
    assert find_fault(report, 0, 6) is None


async def test_processor_time_is_reported_once(
    runner: LeaseRunner, built: BuiltEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports add up to what was used while leases were under way; idle time belongs to no run."""
    cpu_s = 2.0
    monkeypatch.setattr(time, "process_time", lambda: cpu_s)
    tasks = [begin(runner, build_lease(0, 3)), begin(runner, build_lease(3, 6))]
    await settle()
    for task in tasks:
        cpu_s += 0.5
        built.engine.fill()
        built.engine.answer_all()
        runner.forget((await receive(task)).lease)
    cpu_s += 10.0
    tasks.append(begin(runner, build_lease(6, 9)))
    await settle()
    cpu_s += 0.25
    await built.engine.work()

    assert [(await receive(task)).cpu_s for task in tasks] == [0.5, 0.5, 0.25]


async def test_a_clock_that_is_set_changes_no_figure_and_is_told(built: BuiltEngines) -> None:
    """A lease lasts as long as it did; its report says that the clock was set, and no later one does."""
    wall = elapsed_s = 1000.0
    runner = build_runner(built, WorkerMeter(SteadyClock(lambda: wall, lambda: elapsed_s)))
    reports = []
    for step_s in (-3600.0, 0.0):
        task = begin(runner, build_lease(0, 3))
        await settle()
        wall, elapsed_s = wall + step_s + 2, elapsed_s + 2
        await built.engine.work()
        report = await receive(task)
        runner.forget(report.lease)
        reports.append(report)
    assert [report.clock_step_s for report in reports] == [3600, 0]
    assert [report.ended_at - report.started_at for report in reports] == [2, 2]
