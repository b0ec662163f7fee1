import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest
from tests.kit.outcomes import make_counts
from tests.kit.workers.engines_in_memory import Bench, build_lease, settle

from oku_core.process.clock import SteadyClock
from oku_workers.leases.checkpointer import DEFAULT_INTERVAL_S
from oku_workers.meters.saturation import LagMeter, SaturationMeter
from oku_workers.meters.worker_meter import ProcessGauges, WorkerMeter

if TYPE_CHECKING:
    from tests.kit.workers.checkpoint_book import LeaseAccount


class Lateness(LagMeter):
    """Stands for the meter of the event loop."""

    late_s = 0.0


class Machine:
    """A worker whose every gauge a test sets; no sample comes by itself."""

    def __init__(self) -> None:
        self.wall = self.now = 1000.0
        self.cpu_s = self.busy_s = 0.0
        self.lateness = Lateness()
        self.meter = WorkerMeter(
            SteadyClock(lambda: self.wall, lambda: self.now),
            ProcessGauges(monotonic=lambda: self.now, cpu_s=lambda: self.cpu_s, peak_rss_mb=lambda: 77.0),
            SaturationMeter(lambda: self.busy_s, lambda: self.now),
            self.lateness,
        )
        self.bench = Bench(self.meter)


@pytest.fixture
async def machine() -> AsyncIterator[Machine]:
    """One that has just started."""
    machine = Machine()
    yield machine
    await machine.bench.close()


async def tell() -> None:
    """Let a checkpoint be sent, by the clock of the event loop."""
    await asyncio.sleep(0.1)


async def test_a_checkpoint_has_the_worst_of_its_time(machine: Machine) -> None:
    """It names the largest lateness while the lease was under way, and the processor time of all of it."""
    bench = machine.bench
    [account] = bench.take(build_lease(0, 6))
    await settle()
    for new_cpu_s, lag_s in ((0.3, 0.2), (0.9, 0.05), (0.1, 0.01)):
        machine.cpu_s, machine.lateness.late_s = machine.cpu_s + new_cpu_s, lag_s
        bench.engine.fill()
        bench.runner.build_progress()
    machine.lateness.late_s = 0.4
    bench.engine.answer_all()
    await bench.engine.work()
    await tell()

    assert account.checkpoint.figures.max_lag_s == 0.4
    assert account.checkpoint.figures.cpu_s == pytest.approx(1.3)
    assert account.checkpoint.figures.peak_rss_mb == 77.0


async def test_the_lateness_of_one_run_is_not_that_of_the_next(machine: Machine) -> None:
    """Of each run it is that of the time in which it had work, though one message tells of both."""
    bench = machine.bench
    [before] = bench.take(build_lease(0, 1, run="r1"))
    await settle()
    bench.engine.fill()
    machine.meter.sample(0.7)
    bench.engine.answer_all()
    [after] = bench.take(build_lease(0, 3, run="r2"))
    await settle()
    bench.engine.fill()
    machine.meter.sample(0.02)
    progress = bench.runner.build_progress()
    bench.engine.answer_all()
    await tell()
    assert {run: done.lag_s for run, done in progress.runs.items()} == {"r1": 0.7, "r2": 0.02}
    assert {run: sum(done.outcomes) for run, done in progress.runs.items()} == {"r1": 1, "r2": 0}
    assert {run: done.in_flight for run, done in progress.runs.items()} == {"r1": 0, "r2": 3}
    assert (before.checkpoint.figures.max_lag_s, after.checkpoint.figures.max_lag_s) == (0.7, 0.02)


async def test_a_checkpoint_says_how_many_requests_were_affected(machine: Machine) -> None:
    """They ended while processor time was short or the loop was late, as the looks of the loop show."""
    bench = machine.bench
    [account] = bench.take(build_lease(0, 6))
    await settle()
    bench.engine.fill()
    machine.meter.sample(0.0)
    bench.engine.answer_all()
    bench.engine.fill()
    machine.busy_s, machine.now = 1.0, machine.now + 1.1
    machine.meter.sample(0.3)
    bench.engine.answer_all()
    await tell()

    assert (account.checkpoint.figures.saturated, account.checkpoint.figures.lagged) == (6, 6)
    assert account.checkpoint.figures.busy_share == pytest.approx(1.0 / 1.1)


async def test_processor_time_is_charged_once(machine: Machine) -> None:
    """Leases add up to what was used while they were under way; idle time belongs to no run."""
    bench = machine.bench
    machine.cpu_s = 2.0
    accounts = [*bench.take(build_lease(0, 3)), *bench.take(build_lease(3, 6))]
    await settle()
    for _ in range(2):
        machine.cpu_s += 0.5
        bench.engine.fill()
        bench.engine.answer_all()
        await tell()
    machine.cpu_s += 10.0
    accounts += bench.take(build_lease(6, 9))
    await settle()
    machine.cpu_s += 0.25
    await bench.engine.work()
    await tell()

    assert [account.checkpoint.figures.cpu_s for account in accounts] == pytest.approx([0.5, 0.5, 0.25])


async def test_processor_time_is_shared_by_what_has_ended(machine: Machine) -> None:
    """Two leases that end side by side have their parts of it, and together all of it."""
    bench = machine.bench
    accounts = [*bench.take(build_lease(0, 1)), *bench.take(build_lease(1, 6))]
    await settle()
    machine.cpu_s = 0.9
    bench.engine.fill()
    bench.engine.answer_all()
    await asyncio.sleep(DEFAULT_INTERVAL_S)
    machine.cpu_s += 0.6
    await bench.engine.work()
    await tell()
    assert [account.checkpoint.figures.cpu_s for account in accounts] == pytest.approx([0.3, 1.2])


async def test_a_clock_that_is_set_changes_no_figure_and_is_told(machine: Machine) -> None:
    """A lease lasts as long as it did; its checkpoint says that the clock was set, and no later one does."""
    accounts: list[LeaseAccount] = []
    for step_s in (-3600.0, 0.0):
        accounts += machine.bench.take(build_lease(len(accounts), len(accounts) + 1))
        await settle()
        machine.wall, machine.now = machine.wall + step_s + 2, machine.now + 2
        await machine.bench.engine.work()
        await tell()
    figures = [account.checkpoint.figures for account in accounts]
    assert [each.clock_step_s for each in figures] == [3600, 0]
    assert [each.ended_at - each.started_at for each in figures] == [2, 2]


async def test_what_ends_is_counted_in_its_second(machine: Machine) -> None:
    """The looks of the loop see when a second is over."""
    bench = machine.bench
    [account] = bench.take(build_lease(0, 6))
    await settle()
    bench.engine.fill()
    machine.meter.sample(0.0)
    machine.now += 0.9
    bench.engine.answer_all()
    machine.now += 0.1
    machine.meter.sample(0.0)
    bench.engine.fill()
    machine.now += 0.5
    bench.engine.answer_all()
    await tell()
    assert account.per_second == {1000: make_counts(3), 1001: make_counts(3)}
