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
from tests.simulation.outside.engine import SimulatedEngine
from tests.simulation.plan import WorkerPlan

from oku_core.messaging.celery_app import CHECKPOINTS_QUEUE, build_control_queue, build_lease_queue
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.codec import decode_leases, decode_order, seal_checkpoints, seal_progress
from oku_core.messaging.order import Control, Intervals, Stop
from oku_core.messaging.rejection import RejectedMessageError
from oku_core.process.clock import SteadyClock
from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Spec
from oku_workers.executions.execution import Execution
from oku_workers.executions.feed import Feed
from oku_workers.executions.saturation import SaturationMeter
from oku_workers.leases.engine_switch import EngineSwitch
from oku_workers.leases.lag_meter import LagMeter
from oku_workers.leases.lease_runner import LeaseRunner
from oku_workers.leases.process_gauges import ProcessGauges
from oku_workers.leases.worker_identity import WorkerIdentity
from oku_workers.leases.worker_meter import WorkerMeter

if TYPE_CHECKING:
    from tests.simulation.machine.process import Process
    from tests.simulation.world import World

ORDERS, PROGRESS = "*orders", "*progress"
_DRAIN_POLL_S = 0.05
_LOOK_S = 0.1
"""Half as often as in a real worker; each look costs the simulation as much as a request."""
_DRAINS_S = 20.0
_MOST_LEASES = 1000


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

    def restart(self) -> None:
        """Start a process, unless one runs."""
        if self.is_alive:
            return
        self._starts += 1
        self.started_at = self._world.scheduler.now
        self.process = self._world.start_process(f"{self.plan.name}#{self._starts}", self._clock)
        self._world.story.note(f"{self.process.name} starts")
        self.process.enter(self._boot)

    def drain(self) -> None:
        """Tell the process to end, as SIGTERM does."""
        self.process.call_soon(lambda: self.process.start(self._drain()))

    def check_memory(self) -> None:
        """Check that it does not keep more and more."""
        if self.is_alive and len(self.runner.lease_ids) > _MOST_LEASES:
            raise LawBrokenError(f"{self.process.name} keeps {len(self.runner.lease_ids)} leases")

    def _boot(self) -> None:
        clock = self._clock
        self.engine = None
        self.connection = Connection(self._world.broker, self.process, self._hurry)
        self._identity = WorkerIdentity(self.plan.name, secrets.token_hex(8))
        self._interval_s, self._interval_number = 1.0, 0
        self._hurried: asyncio.Event = asyncio.Event()
        supervisor = Supervisor(passing=(OSError, OperationalError), clock=clock.monotonic)
        gauges = ProcessGauges(
            monotonic=clock.monotonic, cpu_s=lambda: 0.0, rss_mb=lambda: 50.0, peak_rss_mb=lambda: 60.0
        )
        lag = LagMeter(lambda late_s: meter.look(late_s), clock.monotonic, _LOOK_S)  # noqa: PLW0108  # later
        meter = WorkerMeter(
            SteadyClock(clock.wall, clock.monotonic),
            gauges,
            SaturationMeter(lambda: 0.0, clock.monotonic),
            lag,
        )
        engines = EngineSwitch(supervisor, build=self._build_engine)
        self.runner = LeaseRunner(self._identity, supervisor, engines, self._send_checkpoints, meter)
        self.runner.start()
        incarnation = self._identity.incarnation
        self.connection.subscribe(build_lease_queue(incarnation).name, self._take_leases)
        self.connection.subscribe(build_control_queue(incarnation).name, self._take_order)
        self.connection.subscribe(ORDERS, self._take_order, is_queue=False)
        self.process.start(self._beat())

    def _build_engine(self, spec: Spec, feed: Feed, *_: object) -> SimulatedEngine:
        self.engine = SimulatedEngine(
            spec, feed, self._world.find_target, self.plan.slowness, self._note_taken
        )
        return self.engine

    def _note_taken(self, execution: Execution, index: int) -> None:
        try:
            position = execution.ranges.position_of(index)
            self._world.runs[execution.lease.run].judge.check_taken(execution.lease.id, position)
        except LawBrokenError as error:
            self._world.break_law(LawBrokenError(f"{self.process.name}: {error}"))

    async def _send_checkpoints(self, batch: CheckpointBatch) -> None:
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
        self.runner.take(batch)

    def _take_order(self, delivery: Delivery) -> None:
        try:
            order = decode_order(self._world.signer, msgspec.json.encode(delivery.payload))
        except RejectedMessageError:
            return
        if isinstance(order, Stop):
            self.runner.stop(order)
        elif isinstance(order, Control):
            self._world.story.note(
                f"{self.process.name} hears: confirmed {order.confirmed}, limits {order.limits},"
                f" ends {order.ends}"
            )
            self.runner.control(order)
        else:
            self._take_intervals(order)

    def _take_intervals(self, order: Intervals) -> None:
        if order.number > self._interval_number:
            if not self._interval_number:
                self._hurry()
            self._interval_number, self._interval_s = order.number, order.heartbeat_s
            self.runner.set_checkpoint_interval(order.checkpoint_s)

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
        sealed = seal_progress(self._world.signer, self.runner.build_progress())
        with contextlib.suppress(OperationalError):
            self.connection.publish_to_all(PROGRESS, sealed)

    async def _drain(self) -> None:
        until = self._clock.monotonic() + _DRAINS_S
        self.runner.stop_all(self._world.plan.specs[0].drain_s)
        while self._clock.monotonic() < until and self.runner.lease_ids:  # noqa: ASYNC110  # as the real one
            await asyncio.sleep(_DRAIN_POLL_S)
        self._say_progress()
        self._world.story.note(f"{self.process.name} has ended")
        self.process.kill()
