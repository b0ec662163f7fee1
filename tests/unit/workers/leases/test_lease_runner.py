import asyncio
import logging
import time
from typing import Any

import pytest

from oku_core.messaging.lease import Lease, Report, find_fault
from oku_core.messaging.order import Stop
from oku_core.process.clock import SteadyClock
from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Spec
from oku_core.spec.url import Url
from oku_workers.engines import window
from oku_workers.executions.execution import DISCONNECTED, Execution
from oku_workers.executions.feed import Feed
from oku_workers.executions.saturation import SaturationMeter
from oku_workers.leases.engine_switch import EngineSwitch
from oku_workers.leases.lag_meter import LagMeter
from oku_workers.leases.lease_runner import LeaseRunner
from oku_workers.leases.reports import WorkerIdentity, build_empty_report
from oku_workers.leases.worker_meter import WorkerMeter

WORKER = WorkerIdentity("w1", "b1")
SPEC = Spec(urls=(Url("http://127.0.0.1/"),), concurrency=3)
OTHER_SPEC = Spec(urls=(Url("http://127.0.0.1/other"),), concurrency=3)
THIRD_SPEC = Spec(urls=(Url("http://127.0.0.1/third"),), concurrency=3)


class FakeEngine:
    """An engine in memory: it takes when it is told to, and is answered by the test."""

    def __init__(self, spec: Spec, feed: Feed) -> None:
        self.spec = spec
        self.flights: list[tuple[Execution, int]] = []
        self.is_closed = False
        self._feed = feed

    @property
    def in_flight(self) -> int:
        """How many were taken and have not ended."""
        return len(self.flights)

    def start(self) -> None:
        """Begin; there is nothing to do."""

    def cut_off(self, execution: Execution) -> None:
        """Give back what is in flight of a lease."""
        for other, index in self.flights:
            if other is execution:
                execution.give_back(index)
        self.flights = [flight for flight in self.flights if flight[0] is not execution]

    def sweep(self) -> None:
        """End what takes too long; no time goes by here."""

    async def close(self) -> None:
        """Give back what is in flight."""
        self.is_closed = True
        for execution in {execution for execution, _ in self.flights}:
            self.cut_off(execution)

    def fill(self) -> None:
        """Take as many indices as the spec allows."""
        while len(self.flights) < self.spec.concurrency and (execution := self._feed.current) is not None:
            self.flights.append((execution, self._feed.take(execution)))

    def answer_all(self) -> None:
        """Answer what is in flight."""
        flights, self.flights = self.flights, []
        for execution, _ in flights:
            execution.answer(200, 1500, 10, expected=True)

    async def work(self) -> None:
        """Take and answer until there is nothing left to take."""
        await settle()
        while self._feed.current is not None:
            self.fill()
            self.answer_all()
        await settle()


class BuiltEngines:
    """The engines that a lease runner has had."""

    def __init__(self) -> None:
        self.engines: list[FakeEngine] = []
        self.error: Exception | None = None

    def build(self, spec: Spec, feed: Feed, *_: object) -> FakeEngine:
        """Stands for `build_engine`."""
        if self.error is not None:
            raise self.error
        assert all(engine.is_closed for engine in self.engines)
        self.engines.append(FakeEngine(spec, feed))
        return self.engines[-1]

    @property
    def engine(self) -> FakeEngine:
        """The last one."""
        return self.engines[-1]


async def settle() -> None:
    """Let everything happen that can happen without time going by."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def built() -> BuiltEngines:
    """Engines in memory in the place of real ones."""
    return BuiltEngines()


def build_runner(built: BuiltEngines, meter: WorkerMeter | None = None) -> LeaseRunner:
    """A lease runner that has just begun."""
    supervisor = Supervisor()
    return LeaseRunner(WORKER, supervisor, EngineSwitch(supervisor, build=built.build), meter)


@pytest.fixture
def runner(built: BuiltEngines) -> LeaseRunner:
    """A lease runner that has just begun."""
    return build_runner(built)


def build_lease(start: int, stop: int, spec: Spec = SPEC, run: str = "r1", name: str = "") -> Lease:
    """A lease that is called after its range, unless told otherwise."""
    return Lease(id=name or f"{run}:{start}-{stop}", run=run, start=start, stop=stop, start_by=0.0, spec=spec)


def begin(runner: LeaseRunner, lease: Lease, execution_id: str = "e1") -> asyncio.Task[Report | None]:
    """Begin with a lease."""
    return asyncio.ensure_future(runner.run(lease, execution_id))


async def receive(task: asyncio.Task[Report | None]) -> Report:
    """The report of a lease, which must be there without any more time going by."""
    report = await asyncio.wait_for(task, 1)
    assert report is not None
    return report


async def test_a_lease_ends_in_a_true_report(runner: LeaseRunner, built: BuiltEngines) -> None:
    """It names the lease, the attempt, the worker and its process, and all that came of the requests."""
    lease = build_lease(100, 110)
    task = begin(runner, lease, "e7")
    await settle()
    await built.engine.work()

    report = await receive(task)

    assert find_fault(report, 100, 110) is None
    assert (report.lease, report.execution, report.worker, report.incarnation) == (lease.id, "e7", "w1", "b1")
    assert (report.start, report.done, report.outcomes) == (100, 110, [10, 0, 0, 0, 0, 0])
    assert (report.statuses, report.bytes_received, report.latency.sum_us) == ({"200": 10}, 100, 15_000)
    assert report.peak_rss_mb > 10


async def test_a_report_is_made_with_the_last_answer(runner: LeaseRunner, built: BuiltEngines) -> None:
    """It is made at once, and not before."""
    task = begin(runner, build_lease(0, 2))
    await settle()
    built.engine.fill()
    await settle()
    assert not task.done()
    built.engine.answer_all()
    assert (await receive(task)).done == 2


async def test_a_doubled_lease_is_executed_once(runner: LeaseRunner, built: BuiltEngines) -> None:
    """Its second message has no effect while it is under way, its report on the way included."""
    lease = build_lease(0, 5)
    task = begin(runner, lease)
    await settle()
    assert await runner.run(lease, "e2") is None
    await built.engine.work()
    await receive(task)
    assert await runner.run(lease, "e3") is None
    assert runner.lease_ids == [lease.id]
    runner.forget(lease.id)
    assert runner.lease_ids == []


@pytest.mark.parametrize("stop", [50, 49, 0])
async def test_a_lease_without_an_index_is_reported_at_once(
    runner: LeaseRunner, built: BuiltEngines, stop: int
) -> None:
    """It may be forged, and must not stay under way for ever."""
    report = await receive(begin(runner, build_lease(50, stop)))
    assert (report.start, report.done, sum(report.outcomes)) == (50, 50, 0)


async def test_leases_of_one_spec_share_their_engine(runner: LeaseRunner, built: BuiltEngines) -> None:
    """Its connections stay open from lease to lease."""
    for start in (0, 10, 20):
        task = begin(runner, build_lease(start, start + 10))
        await settle()
        await built.engine.work()
        await receive(task)
    assert len(built.engines) == 1


async def test_another_spec_gets_an_engine_of_its_own(runner: LeaseRunner, built: BuiltEngines) -> None:
    """It gets it when the leases of the one before are finished, and its engine is closed."""
    first, second = begin(runner, build_lease(0, 3)), begin(runner, build_lease(3, 6, OTHER_SPEC))
    await settle()
    assert [engine.spec for engine in built.engines] == [SPEC]

    await built.engine.work()
    assert [engine.spec for engine in built.engines] == [SPEC, OTHER_SPEC]
    await built.engine.work()

    assert [(await receive(task)).covered for task in (first, second)] == [3, 3]


async def test_specs_in_any_order_come_to_an_end(runner: LeaseRunner, built: BuiltEngines) -> None:
    """Leases that wait for their engine do not wait for each other."""
    specs = [SPEC, OTHER_SPEC, THIRD_SPEC, OTHER_SPEC, SPEC]
    tasks = [begin(runner, build_lease(10 * n, 10 * n + 4, spec)) for n, spec in enumerate(specs)]
    for _ in specs:
        await settle()
        await built.engine.work()
    assert [(await receive(task)).covered for task in tasks] == [4] * 5


async def test_a_stop_ends_the_leases_that_it_names(runner: LeaseRunner, built: BuiltEngines) -> None:
    """It names them by run or one by one; others go on."""
    leases = [
        build_lease(0, 9),
        build_lease(9, 18),
        build_lease(18, 27, run="r2"),
        build_lease(27, 36, run="r3"),
    ]
    tasks = [begin(runner, lease) for lease in leases]
    await settle()
    built.engine.fill()

    runner.stop(Stop(run="r1", leases=[leases[3].id], grace_s=0))
    await settle()

    reports = [await receive(tasks[n]) for n in (0, 1, 3)]
    assert [(report.done, report.unfinished) for report in reports] == [(3, [0, 1, 2]), (9, []), (27, [])]
    await built.engine.work()
    assert (await receive(tasks[2])).covered == 9


async def test_an_old_stop_does_not_end_a_lease_that_was_cut_after_it(
    runner: LeaseRunner, built: BuiltEngines
) -> None:
    """Replaying the order of a pause after the run was resumed stops nothing."""
    before, after = build_lease(0, 9, name="r1.7.aa"), build_lease(9, 18, name="r1.8.bb")
    tasks = [begin(runner, lease) for lease in (before, after)]
    await settle()
    built.engine.fill()

    runner.stop(Stop(run="r1", up_to=7, grace_s=0))
    await settle()

    assert (await receive(tasks[0])).unfinished == [0, 1, 2]
    await built.engine.work()
    assert (await receive(tasks[1])).covered == 9


async def test_requests_in_flight_have_the_grace_time(
    runner: LeaseRunner, built: BuiltEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No index is taken any more; what is not answered when it is over is cut off."""
    timers: list[tuple[float, Any, tuple[Any, ...]]] = []
    loop = asyncio.get_running_loop()
    task = begin(runner, build_lease(0, 100))
    await settle()
    built.engine.fill()
    with monkeypatch.context() as patch:
        patch.setattr(loop, "call_later", lambda delay, call, *args: timers.append((delay, call, args)))
        runner.stop(Stop(run="r1", grace_s=7.5))

    built.engine.flights.pop()[0].answer(200, 1, 1, expected=True)
    built.engine.fill()
    assert built.engine.in_flight == 2
    assert [delay for delay, _, _ in timers] == [7.5]
    _, cut_off, arguments = timers[0]
    cut_off(*arguments)
    cut_off(*arguments)

    report = await receive(task)
    assert (report.done, report.unfinished, report.outcomes[0]) == (3, [0, 1], 1)
    assert find_fault(report, 0, 100) is None


async def test_a_runner_that_is_stopping_begins_nothing(runner: LeaseRunner, built: BuiltEngines) -> None:
    """Every lease is ended, and those that come later are given back untouched, without an engine."""
    first = begin(runner, build_lease(0, 10))
    await settle()

    runner.stop_all(0)
    second = begin(runner, build_lease(10, 20, OTHER_SPEC))

    assert [(await receive(task)).covered for task in (first, second)] == [0, 0]
    assert runner.build_progress().stopping
    assert len(built.engines) == 1


async def test_an_engine_that_cannot_be_built_leaves_no_lease_under_way(
    runner: LeaseRunner, built: BuiltEngines
) -> None:
    """The error is raised, the coordinator misses the lease, and the next one is run."""
    built.error = RuntimeError("no such engine")
    with pytest.raises(RuntimeError, match="no such engine"):
        await runner.run(build_lease(0, 5), "e1")
    assert runner.lease_ids == []

    built.error = None
    task = begin(runner, build_lease(0, 5))
    await settle()
    await built.engine.work()
    assert (await receive(task)).covered == 5


async def test_a_lease_that_the_engine_has_spoilt_is_given_up(
    runner: LeaseRunner, built: BuiltEngines
) -> None:
    """What nobody can account for any more is not reported, and nothing more of it is sent."""
    task = begin(runner, build_lease(0, 100))
    await settle()
    built.engine.fill()

    built.engine.flights[0][0].abandon(ArithmeticError("a fault of our own"))

    with pytest.raises(ArithmeticError):
        await asyncio.wait_for(task, 1)
    built.engine.answer_all()
    built.engine.fill()
    assert built.engine.in_flight == 0
    assert runner.lease_ids == []


async def test_closing_ends_every_lease(runner: LeaseRunner, built: BuiltEngines) -> None:
    """It ends those in flight, those that wait, and those that wait for another engine."""
    runner.start()
    tasks = [
        begin(runner, build_lease(n, n + 10, spec)) for n, spec in ((0, SPEC), (10, SPEC), (20, OTHER_SPEC))
    ]
    await settle()
    built.engine.fill()

    await runner.close()

    assert [(await receive(task)).covered for task in tasks] == [0, 0, 0]
    assert built.engine.is_closed


async def test_progress_names_the_leases_under_way(runner: LeaseRunner, built: BuiltEngines) -> None:
    """It has their outcomes so far, what is in flight, and what is new since the last time."""
    first, second = build_lease(0, 10), build_lease(10, 20)
    tasks = [begin(runner, first), begin(runner, second)]
    await settle()
    built.engine.fill()
    built.engine.answer_all()
    built.engine.fill()

    progress = runner.build_progress()

    assert progress.find_fault() is None
    assert (progress.worker, progress.incarnation, progress.stopping) == ("w1", "b1", False)
    assert progress.leases == {first.id: [3, 0, 0, 0, 0, 0], second.id: [0] * 6}
    assert (progress.in_flight, progress.outcomes, progress.bytes_received) == (3, [3, 0, 0, 0, 0, 0], 30)
    assert progress.rss_mb > 10
    assert runner.build_progress().outcomes == [0] * 6
    await runner.close()
    await asyncio.gather(*tasks)


async def test_progress_before_anything(runner: LeaseRunner) -> None:
    """A worker that has just started speaks, too."""
    progress = runner.build_progress()
    assert progress.find_fault() is None
    assert (progress.leases, progress.in_flight, progress.lag_s) == ({}, 0, 0.0)


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


async def test_a_failed_request_is_in_the_report(runner: LeaseRunner, built: BuiltEngines) -> None:
    """It has an outcome, and no status and no latency."""
    task = begin(runner, build_lease(0, 3))
    await settle()
    built.engine.fill()
    built.engine.flights.pop()[0].fail(DISCONNECTED)
    built.engine.answer_all()

    report = await receive(task)

    assert report.outcomes == [2, 0, 0, 0, 1, 0]
    assert find_fault(report, 0, 3) is None


@pytest.mark.parametrize(("missing", "warnings"), [(1, 1), (0, 0), (-1000, 0)])
async def test_too_few_open_files_are_told(
    runner: LeaseRunner,
    built: BuiltEngines,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    missing: int,
    warnings: int,
) -> None:
    """The log and those who watch the run are told, for as long as it is so."""
    allowed = SPEC.concurrency + window.FILES_BESIDE - missing
    monkeypatch.setattr(window, "read_open_files", lambda: allowed)
    with caplog.at_level(logging.WARNING):
        task = begin(runner, build_lease(0, 1))
        await settle()
    assert len(caplog.messages) == len(runner.build_progress().troubles) == warnings
    await built.engine.work()
    await receive(task)
    if missing > 0:
        assert caplog.messages == [f"2 requests are in flight, not 3: only {allowed} open files are allowed"]


def test_an_empty_report_gives_everything_back() -> None:
    """It covers nothing, and is believed."""
    lease = build_lease(7, 9)
    report = build_empty_report(WORKER, lease, "e1", 1.0)
    assert (report.lease, report.execution, report.worker, report.incarnation) == (lease.id, "e1", "w1", "b1")
    assert (report.start, report.done, report.covered) == (7, 7, 0)
    assert find_fault(report, 7, 9) is None


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


async def test_a_refused_lease_fills_a_slot_until_the_worker_leaves(runner: LeaseRunner) -> None:
    """What arrives next is for other workers; a worker that is told to leave is not kept from it."""
    resting = asyncio.create_task(asyncio.to_thread(runner.fill_slot, "l1", 60.0))
    while not runner.refused:  # noqa: ASYNC110  # a thread does not call
        await asyncio.sleep(0)
    runner.stop_all(0.0)
    await asyncio.wait_for(resting, 5.0)
    assert runner.refused == set()
