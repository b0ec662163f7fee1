"""A simulated worker: the real lease runner with all that belongs to it, in a process that may die.

Instead of Celery and threads it has the simulated broker; instead of HTTP an engine that asks the simulated
target.
"""

import asyncio
import contextlib
import secrets
from typing import TYPE_CHECKING

import msgspec
from kombu.exceptions import OperationalError
from tests.simulation.laws import LawBrokenError
from tests.simulation.machine.clocks import MachineClock
from tests.simulation.outside.broker import Connection, Delivery
from tests.simulation.outside.clock_exchange import ClockExchange, has_bound
from tests.simulation.outside.engine import SimulatedEngine
from tests.simulation.outside.user_code_engine import SimulatedUserCode
from tests.simulation.periods import Moment, choose_periods
from tests.simulation.plan import WorkerPlan
from tests.simulation.played_run import PlayedRun

from oku_core.broker.celery_app import CHECKPOINTS_QUEUE, build_control_queue, build_lease_queue
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.codec import decode_leases, decode_order, seal_checkpoints, seal_progress
from oku_core.messaging.hook import HookAttempt
from oku_core.messaging.order import CallHook, Control, DropHooks, Fetch, Intervals, Stop
from oku_core.messaging.signing import RejectedMessageError
from oku_core.process.clock import SteadyClock
from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Spec
from oku_core.user_code.messages import Returned
from oku_workers.engines.contract.engine_protocol import EngineContext
from oku_workers.executions.execution import Execution
from oku_workers.executions.scheduled_execution import ScheduledExecution
from oku_workers.executions.scheduled_tally import IN_FLIGHT_CAP, LATE
from oku_workers.feed.feed_protocol import FeedProtocol
from oku_workers.leases.lease_runner import LeaseRunner
from oku_workers.leases.worker_parts import WorkerParts
from oku_workers.meters.saturation import LagMeter, SaturationMeter
from oku_workers.meters.worker_meter import ProcessGauges, WorkerMeter
from oku_workers.runs.engine_slot import EngineSettings
from oku_workers.runs.engine_switch import EngineSwitch
from oku_workers.settings import WorkerIdentity
from oku_workers.timing.coordinator_clock import CoordinatorClock
from oku_workers.timing.timing import LoopTimer, Timing

if TYPE_CHECKING:
    from tests.simulation.machine.process import Process
    from tests.simulation.world import World

ORDERS, PROGRESS = "*orders", "*progress"
_DRAIN_POLL_S = 0.05
_LOOK_S = 0.1
"""Half as often as in a real worker; each look costs the simulation as much as a request."""
_DRAINS_S = 20.0
_UNANSWERED_S = 6.0
"""As in a real worker."""
_COMES_BACK_S = 0.1
"""A fresh process takes the place of one that has run user code so soon."""
_MOST_LEASES = 1000
_ADOPTED_S = 0.3
"""Who has just learnt what time it is follows it within this time."""
_EXPIRES_S = 0.1
"""What is too late is noticed within this time, unless the process stands still."""


class WorkerActor:
    """One worker through all its processes.

    Args:
        world: where it works.
        plan: what it is like.
    """

    def __init__(self, world: "World", plan: WorkerPlan) -> None:
        self.plan = plan
        self._world = world
        self._clock = MachineClock(
            lambda: world.scheduler.now, plan.drift, plan.ahead_s, booted_s=1000.0 + len(world.workers)
        )
        self._starts = 0
        self._shelf = world.find_shelf(plan.name)
        self._chance = world.draw_from(plan.name)
        self.process: Process
        self.connection: Connection
        self.runner: LeaseRunner
        self.engine: SimulatedEngine | None = None
        self.started_at = 0.0

    @property
    def is_alive(self) -> bool:
        """Whether a process of it runs."""
        return self._starts > 0 and self.process.is_alive

    @property
    def incarnation(self) -> str:
        """The id of its process."""
        return self._identity.incarnation

    def restart(self) -> None:
        """Start a process, unless one runs."""
        if self.is_alive:
            return
        self._starts += 1
        self.started_at = self._world.scheduler.now
        self._is_used = False
        self.process = self._world.start_process(f"{self.plan.name}#{self._starts}", self._clock)
        self._world.story.note(f"{self.process.name} starts")
        self.process.enter(self._boot)

    def drain(self) -> None:
        """Tell the process to end, as SIGTERM does."""
        self.process.call_soon(lambda: self.process.start(self._drain()))

    def kill_host(self) -> None:
        """Kill the process that runs user code for this worker, if it has one."""
        if isinstance(engine := self.engine, SimulatedUserCode):
            self._world.story.note_fault(f"the host of {self.process.name} is killed")
            self.process.call_soon(engine.kill_host)

    def check_memory(self) -> None:
        """Check that it does not keep more and more."""
        if self.is_alive and len(self.runner.lease_ids) > _MOST_LEASES:
            raise LawBrokenError(f"{self.process.name} keeps {len(self.runner.lease_ids)} leases")

    def _boot(self) -> None:
        clock = self._clock
        self.engine = None
        self._arrived: dict[str, float] = {}
        self._clock_ns, self._clock_since = -1, 0.0
        self.connection = Connection(self._world.broker, self.process, self._hurry)
        self._identity = WorkerIdentity(self.plan.name, secrets.token_hex(8))
        self._interval_s, self._interval_number = 1.0, 0
        self._hurried: asyncio.Event = asyncio.Event()
        supervisor = Supervisor(passing=(OSError, OperationalError), clock=clock.monotonic)
        gauges = ProcessGauges(
            monotonic=clock.monotonic, cpu_s=lambda: 0.0, rss_mb=lambda: 50.0, peak_rss_mb=lambda: 60.0
        )
        meter = WorkerMeter(
            SteadyClock(clock.wall, clock.monotonic),
            gauges,
            SaturationMeter(lambda: 0.0, clock.monotonic),
            LagMeter(clock.monotonic, _LOOK_S),
        )
        settings = EngineSettings(build=self._build_engine)
        engines = EngineSwitch(supervisor, timing=self._build_timing(), settings=settings)
        parts = WorkerParts(
            worker=self._identity,
            supervisor=supervisor,
            sink=self,
            process=self,
            recorder=self._shelf.start(self.process, self._identity.incarnation),
            call=self._call_hook,
        )
        self.runner = LeaseRunner(parts, engines, meter)
        self.runner.start()
        incarnation = self._identity.incarnation
        self.connection.subscribe(build_lease_queue(incarnation).name, self._take_leases)
        self.connection.subscribe(build_control_queue(incarnation).name, self._take_order)
        self.connection.subscribe(ORDERS, self._take_order, is_queue=False)
        self.process.start(self._beat())
        chance = self._world.draw_from(f"clock of {self.process.name}")
        self.process.start(
            ClockExchange(self._world, self.runner.coordinator_clock, chance, self.plan.drift).keep_asking()
        )

    def lose_records(self) -> None:
        """The machine is gone with what it had: another one takes its place."""
        self._shelf.clear()

    def _build_timing(self) -> Timing:
        def read_ns() -> int:
            return int(self._clock.monotonic() * 1e9)  # as the simulated `time.monotonic_ns`

        return Timing(
            coordinator_clock=CoordinatorClock(f"the machine of {self.plan.name}", read_ns),
            monotonic_ns=read_ns,
            build_timer=lambda loop, call: LoopTimer(loop, call, read_ns),
        )

    def _build_engine(self, spec: Spec, feed: FeedProtocol, *_: object) -> SimulatedEngine:
        build = SimulatedUserCode if spec.runs_user_code else SimulatedEngine
        self.engine = build(
            spec,
            feed,
            self._world.find_target,
            self.plan.slowness,
            self._note_taken,
            self._world.check_in_flight,
        )
        return self.engine

    def _note_taken(self, execution: Execution, coordinate: int, index: int) -> None:
        run = self._world.runs[execution.lease.run]
        try:
            position = execution.ranges.position_of(coordinate)
            run.judge.check_taken(execution.lease.id, position)
            run.hooks.check_taken(execution.setup)
            if run.spec.is_open or run.spec.is_timed:
                self._check_time(run, execution, index)
            if run.dues is not None and execution.lease.wave is not None:
                run.dues.check_place(execution.lease.wave, coordinate, index)
            if run.limits is not None:
                taken = run.limits.note_taken(self._world.scheduler.now)
                if (workers := self._world.count_steady_workers()) is not None:
                    run.limits.check_pace(taken, workers)
        except LawBrokenError as error:
            self._world.break_law(LawBrokenError(f"{self.process.name}: {error}"))

    def _check_time(self, run: PlayedRun, execution: Execution, index: int) -> None:
        if (moment := self._find_moment()) is None:
            return
        periods = choose_periods(run.periods, run.judge.find_dealt_at(execution.lease.id))
        if run.dues is not None:
            run.dues.check_time(index, moment, periods)
        elif run.limits is not None:
            run.limits.check_taken(moment, periods)

    def _find_moment(self) -> Moment | None:
        """What time it is; None if the worker does not know it, or no bound holds for its clock."""
        clock, moment = self.runner.coordinator_clock, self._world.find_moment()
        notice, bound_s, parts = clock.notice, clock.bound_s, self._world.coordinator.parts
        if moment is None or notice is None or bound_s is None or not has_bound(self.plan.drift):
            return None
        if parts is None or notice.offset_ns != parts.base.clock.offset_ns:
            return None
        if notice.offset_ns != self._clock_ns:
            self._clock_ns, self._clock_since = notice.offset_ns, self._clock.monotonic()
        is_adopted = self._clock.monotonic() - self._clock_since > _ADOPTED_S
        return Moment(moment.now, bound_s) if is_adopted else None

    def note_skipped(self, execution: ScheduledExecution, cause: int, due_ns: int) -> None:
        """A request is not sent: the cause must be true.

        Raises:
            LawBrokenError: it is not.
        """
        engine, clock = self.engine, self.runner.coordinator_clock
        if engine is None or not clock.is_known:
            return
        due_at = clock.to_local_ns(due_ns / 1e9) / 1e9
        since = max(due_at, self._arrived.get(execution.lease.id, due_at))
        if cause == IN_FLIGHT_CAP and not engine.fullness.was_full_at(since):
            raise LawBrokenError(f"{self.process.name}: a request is not sent for a window that was not full")
        late_s = execution.spec.late.duration_s or 0.0
        is_judged = since == due_at and self._clock.monotonic() - due_at < late_s + _EXPIRES_S
        if cause == LATE and is_judged and engine.fullness.has_been_full_since(due_at - _EXPIRES_S):
            raise LawBrokenError(f"{self.process.name}: a request is too late, but its window was full")

    async def _call_hook(
        self, attempt: HookAttempt, _spec: Spec, context: EngineContext, _limit_s: float
    ) -> Returned:
        book = self._world.runs[attempt.run].hooks
        try:
            return await book.call(attempt, context.setup_data, self.process.name, self._world.story.note)
        except LawBrokenError as error:
            self._world.break_law(error)
            raise

    async def send(self, batch: CheckpointBatch) -> None:
        """Put a message into the simulated broker."""
        await asyncio.sleep(self._chance.uniform(0.0002, 0.01))
        self.connection.publish(CHECKPOINTS_QUEUE, seal_checkpoints(self._world.signer, batch))

    def _take_leases(self, delivery: Delivery) -> None:
        try:
            batch = decode_leases(self._world.signer, delivery.payload)
        except RejectedMessageError:
            return
        self._world.story.note(
            f"{self.process.name} gets {[(lease.id, lease.ranges, lease.limit) for lease in batch.leases]}"
        )
        for lease in batch.leases:
            self._arrived.setdefault(lease.id, self._clock.monotonic())
        self.runner.accept(batch)

    def _take_order(self, delivery: Delivery) -> None:
        try:
            order = decode_order(self._world.signer, msgspec.json.encode(delivery.payload))
        except RejectedMessageError:
            return
        if isinstance(order, Stop):
            self.runner.stop(order)
        elif isinstance(order, Fetch):
            self.runner.fetch(order)
        elif isinstance(order, Control):
            self._world.story.note(
                f"{self.process.name} hears: confirmed {order.confirmed}, limits {order.limits},"
                f" ends {order.ends}"
            )
            self.runner.control(order)
        elif isinstance(order, CallHook):
            self.runner.hooks.accept(order)
        elif isinstance(order, DropHooks):
            self.runner.hooks.drop(order)
        elif isinstance(order, Intervals):
            self._take_intervals(order)

    def _take_intervals(self, order: Intervals) -> None:
        if order.number > self._interval_number:
            if not self._interval_number:
                self._hurry()
            self._interval_number, self._interval_s = order.number, order.heartbeat_s
            self.runner.set_checkpoint_interval(order.checkpoint_s)
            if order.clock is not None:
                self.runner.coordinator_clock.set_notice(order.clock)

    def _hurry(self) -> None:
        self._hurried.set()

    async def _beat(self) -> None:
        await asyncio.sleep(self._chance.uniform(0.0, 0.3))
        while True:
            self._say_progress()
            self._hurried.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._interval_s):
                    await self._hurried.wait()

    def _say_progress(self) -> None:
        progress = self.runner.build_progress(found=self._shelf.find_dead())
        sealed = seal_progress(self._world.signer, progress)
        with contextlib.suppress(OperationalError):
            self.connection.publish_to_all(PROGRESS, sealed)

    def send_progress(self) -> None:
        """Send the next progress at once."""
        self._hurry()

    def renew(self) -> None:
        """Leave, for a fresh process."""
        if not self._is_used:
            self._is_used = True
            self.process.start(self._drain())

    async def _drain(self) -> None:
        begun = self._clock.monotonic()
        self.runner.stop_all(self._world.plan.specs[0].drain_s)
        self._hurry()
        while (waited_s := self._clock.monotonic() - begun) < _DRAINS_S:
            is_answered = self.runner.may_leave or waited_s >= _UNANSWERED_S
            if is_answered and not self.runner.lease_ids:
                break
            await asyncio.sleep(_DRAIN_POLL_S)
        self._say_progress()
        self._shelf.remove(self.process)
        self._world.story.note(f"{self.process.name} has ended")
        self.process.kill()
        if self._is_used:
            self._world.scheduler.after(_COMES_BACK_S, self.restart)
