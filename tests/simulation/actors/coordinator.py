"""A simulated coordinator: all of the real one but its threads, on a disk that outlives its processes."""

import contextlib
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from kombu.exceptions import OperationalError
from tests.kit.coordinators.transactions import change
from tests.simulation.actors.attacker import LIE
from tests.simulation.actors.worker import ORDERS, PROGRESS
from tests.simulation.laws import LawBrokenError
from tests.simulation.machine.clocks import MachineClock
from tests.simulation.machine.process import KilledError, Process
from tests.simulation.outside.broker import Connection, Delivery

from oku_coordinator.assembly import Assembly
from oku_coordinator.broker.celery_sender import CelerySender
from oku_coordinator.broker.celery_transport import CeleryInbound
from oku_coordinator.broker.inbound import Handler, Inbound, Receiver
from oku_coordinator.broker.outbound_queue import OutboundQueue
from oku_coordinator.broker.sender import Broker, Link
from oku_coordinator.clock.clock_store import ClockAddress
from oku_coordinator.foundation import Platform
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_coordinator.ledger.storage.lease_records import Receipt
from oku_coordinator.settings import CoordinatorSettings
from oku_core.accounting.lease_state import MessageVerdict
from oku_core.accounting.run_state import RunState
from oku_core.broker.celery_app import (
    CHECKPOINTS_QUEUE,
    App,
    build_app,
    build_control_queue,
    build_lease_queue,
)
from oku_core.broker.transport import find_connection_errors
from oku_core.errors import UserError
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.codec import (
    decode_checkpoints,
    decode_progress,
    seal_leases,
    seal_order,
)
from oku_core.messaging.lease import LeaseBatch
from oku_core.messaging.order import CallHook, Control, DropHooks, Outbound
from oku_core.messaging.progress import Progress
from oku_core.messaging.signing import RejectedMessageError
from oku_core.process.supervision import Health, Supervisor

if TYPE_CHECKING:
    import asyncio

    from tests.simulation.world import World

_SENDERS, _TOGETHER = 2, 100
_LINGER_S = 0.05
_POLL_S = 0.1


class CoordinatorActor:
    """The coordinator through all its processes.

    Args:
        world: where it works.
    """

    def __init__(self, world: "World") -> None:
        self._world = world
        self._clock = MachineClock(lambda: world.scheduler.now)
        self._starts = 0
        self.is_coming = True
        self.process: Process
        self.connection: Connection
        self.parts: Assembly | None = None

    def come_back(self, delay_s: float) -> None:
        """Start another process a while after the last one has died."""
        self.is_coming = True
        self._world.scheduler.after(delay_s, self.start)

    def start(self) -> None:
        """Start a process on what the last one has left."""
        self.is_coming = False
        self.release()
        self._starts += 1
        self.process = self._world.start_process(f"coordinator#{self._starts}", self._clock)
        self.connection = Connection(self._world.broker, self.process, self._note_connected)
        path = self._world.disk.mount(self.process)
        for run in self._world.runs.values():
            run.judge.open(path)
        self._world.story.note(f"{self.process.name} starts")
        try:
            self.process.enter(self._boot)
        except KilledError:
            pass
        except (sqlite3.Error, UserError) as error:
            self._world.story.note(f"{self.process.name} cannot start: {error}")
            self.process.kill()

    def release(self) -> None:
        """Let go of the lock that a dead process had."""
        parts, self.parts = self.parts, None
        if parts is not None:
            parts.base.lock.release()

    def try_second(self) -> None:
        """Start another coordinator beside this one; it must not get the ledger."""
        if self.parts is None or not self.process.is_alive:
            return
        process = self._world.start_process("second coordinator", self._clock)
        try:
            process.enter(lambda: Assembly(self._build_settings(), Platform(lock_wait_s=0.0)))
        except UserError:
            process.kill()
        else:
            self._world.break_law(LawBrokenError("two coordinators have one ledger"))

    def enter_state(self, run: str, state: RunState) -> None:
        """Do as a user asks: pause, or resume."""
        assert self.parts is not None
        if state == RunState.PAUSING:
            self.parts.runs.pause(run)
        else:
            self.parts.runs.resume(run)

    def cancel(self, run: str, *, now: bool) -> None:
        """Cancel a run."""
        assert self.parts is not None
        self.parts.runs.cancel(run, at_once=now)

    def _build_settings(self) -> CoordinatorSettings:
        return CoordinatorSettings(
            broker_url="redis://127.0.0.1:1",
            message_key=b"the key of the simulation",
            data_dir=self._world.disk.path.parent,
            token="",
            worker_timeout_s=self._world.plan.worker_timeout_s,
            allows_user_code=True,
        )

    def _boot(self) -> None:
        world = self._world

        def build_supervisor(is_fatal: Callable[[Exception], bool], passing: Any, sleep: Any) -> Supervisor:
            return Supervisor(is_fatal, passing, sleep, self._clock.monotonic)

        platform = Platform(
            build_supervisor=build_supervisor,
            build_transport=lambda settings, _signer, reject: SimulatedTransport(
                world, self.connection, build_app(settings.broker_url, settings.message_key, reject)
            ),
            kernel="the coordinator's machine",
            lock_wait_s=0.0,
        )
        parts = Assembly(self._build_settings(), platform)
        parts.base.clock_store.address = ClockAddress("coordinator", 8700)
        self.parts = parts
        for run in world.runs.values():
            if not run.is_submitted:
                with contextlib.suppress(sqlite3.IntegrityError):  # the one that was killed had submitted it
                    change(parts.base.ledger, create_run, run.run, run.spec, parts.base.clock.now())
                run.is_submitted = True
        parts.base.inbound.start(parts.receiver, parts.message_handler)
        self.process.start(self._work(parts)).add_done_callback(self._note_done)

    async def _work(self, parts: Assembly) -> None:
        """What the real process does once it listens."""
        await parts.base.settle_clock()
        for task in (
            parts.base.supervisor.start("ticks", parts.ticker.run),
            parts.base.supervisor.start("dispatcher", parts.main_loop.run),
        ):
            task.add_done_callback(self._note_done)

    def _note_done(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None and self.process.is_alive:
            # What is fatal ends the process; it is started again.
            self._world.story.note(f"{self.process.name} ends: {error!r}")
            if not isinstance(error, sqlite3.Error):
                self._world.break_law(error)
            self.process.kill()

    def _note_connected(self) -> None:
        if self.parts is not None:
            self.parts.message_handler.handle_connect()


class SimulatedTransport:
    """Leads to the simulated broker and back."""

    def __init__(self, world: "World", connection: Connection, app: App) -> None:
        self._world = world
        self._connection = connection
        self._app = app
        self.passing = find_connection_errors(app)

    def build_inbound(self, supervisor: Supervisor) -> Inbound:
        """Build simulated listeners."""
        return SimulatedInbound(self._world, self._connection, self._app, supervisor)

    def build_broker(self, link: Link) -> Broker:
        """Build the simulated sender."""
        return SimulatedSender(self._app, link, self._world, self._connection)


class SimulatedSender(CelerySender):
    """Sends by the simulated broker what the real one would send by its threads."""

    def __init__(self, app: Any, link: Link, world: "World", connection: Connection) -> None:
        super().__init__(app, link, connection.process.clock.monotonic)
        self._world = world
        self._connection = connection
        self._chance = world.draw_from("sender")
        self._outbound = OutboundQueue(connection.process.clock.monotonic)
        self._outbound.end()  # taking never waits
        self._queue = self._outbound
        self._busy = 0

    def fetch_peak_mb(self) -> float | None:
        """Nobody knows how large the broker is."""
        return None

    def send(self, messages: Iterable[Outbound]) -> None:
        """Have messages sent, a little later."""
        if not self._link.is_connected:
            self._outbound.drop()
            return
        self._outbound.put(messages)
        self._take_next()

    def _take_next(self) -> None:
        while self._busy < _SENDERS and (messages := self._outbound.get(_TOGETHER)):
            self._busy += 1
            self._connection.process.call_later(self._chance.uniform(0.0001, 0.01), self._send_off, messages)

    def _send_off(self, messages: Iterable[Outbound]) -> None:
        self._busy -= 1
        with contextlib.suppress(OperationalError):  # what is left of them is lost, as in the threads
            for message in messages:
                self._publish(message)
        self._take_next()

    def _publish(self, message: Outbound) -> None:
        signer = self._world.signer
        if isinstance(message, LeaseBatch):
            queue = build_lease_queue(message.incarnation)
            self._connection.publish(queue.name, seal_leases(signer, message))
        elif isinstance(message, (Control, CallHook, DropHooks)):
            queue = build_control_queue(message.incarnation)
            self._connection.publish(queue.name, seal_order(signer, message))
        else:
            self._connection.publish_to_all(ORDERS, seal_order(signer, message))


class _Listener(ABC):
    """Hears what the simulated broker has for the coordinator."""

    def __init__(self, world: "World", connection: Connection, health: Health) -> None:
        self._world = world
        self._connection = connection
        self._health = health
        self._waiting: list[Delivery] = []
        self._timer: Any = None
        self.caught_up_at = connection.process.clock.monotonic()
        self.is_listening = False
        self.refusal = ""

    @property
    def is_connected(self) -> bool:
        """Whether the broker is within reach."""
        return self.is_listening and self._connection.seems_up

    def join(self, _: float) -> None:  # noqa: B027  # a thread would have to be waited for
        """Nothing has to be waited for."""

    def end(self) -> None:
        """Listen no more."""
        self.is_listening = False

    def poll(self) -> None:
        """Take note, again and again, that nothing waits."""
        if not self._waiting:
            self.caught_up_at = self._connection.process.clock.monotonic()
        self._connection.process.call_later(_POLL_S, self.poll)

    def hear(self, delivery: Delivery) -> None:
        """A message has come."""
        self._waiting.append(delivery)
        if self._timer is None:
            self._timer = self._connection.process.call_later(_LINGER_S, self._finish)

    def _finish(self) -> None:
        self._timer = None
        waiting, self._waiting = self._waiting, []
        self.deal_with(waiting)

    @abstractmethod
    def deal_with(self, deliveries: Sequence[Delivery]) -> None:
        """Deal with messages that came together."""


class _CheckpointListener(_Listener):
    def __init__(
        self,
        world: "World",
        connection: Connection,
        health: Health,
        take_in: Callable[[Sequence[CheckpointBatch]], None],
    ) -> None:
        super().__init__(world, connection, health)
        self._take_in = take_in

    def start(self) -> None:
        """Begin to listen."""
        self.is_listening = True
        self._connection.subscribe(CHECKPOINTS_QUEUE, self.hear, acknowledges=True)
        self.poll()

    def deal_with(self, deliveries: Sequence[Delivery]) -> None:
        """Store all that came, and acknowledge it then; what fails comes again."""
        batches = []
        for delivery in deliveries:
            with contextlib.suppress(RejectedMessageError):
                batches.append(
                    decode_checkpoints(self._world.signer, msgspec.json.encode([[delivery.payload], {}, {}]))
                )
        for batch in batches:
            told = [
                (each.lease, each.sequence, each.done, each.end, len(each.in_flight), each.is_final)
                for each in batch.checkpoints
            ]
            self._world.story.note(f"{self._connection.process.name} gets from {batch.worker}: {told}")
        if batches:
            try:
                self._take_in(batches)
            except sqlite3.Error as error:
                self._world.story.note(f"{self._connection.process.name} cannot store it: {error}")
                return
        for delivery in deliveries:
            self._world.broker.acknowledge(delivery)


class _ProgressListener(_Listener):
    def __init__(
        self,
        world: "World",
        connection: Connection,
        health: Health,
        pass_on: Callable[[Sequence[Progress]], None],
        announce: Callable[[], None],
    ) -> None:
        super().__init__(world, connection, health)
        self._pass_on = pass_on
        self.note_connected = announce

    def start(self) -> None:
        """Begin to listen."""
        self.is_listening = True
        self._connection.subscribe(PROGRESS, self.hear, is_queue=False)
        self.poll()
        self._connection.process.call_soon(self.note_connected)

    def deal_with(self, deliveries: Sequence[Delivery]) -> None:
        """Pass on what workers say."""
        heard = []
        for delivery in deliveries:
            with contextlib.suppress(RejectedMessageError):
                heard.append(
                    decode_progress(self._world.signer, msgspec.json.encode({"progress": delivery.payload}))
                )
        self._pass_on(heard)


class SimulatedInbound(CeleryInbound):
    """The real one with listeners at the simulated broker."""

    def __init__(self, world: "World", connection: Connection, app: Any, supervisor: Supervisor) -> None:
        super().__init__(app, supervisor)
        health = supervisor.build_health("listeners")
        self.checkpoints: Any = _CheckpointListener(world, connection, health, self.store)
        self.progress: Any = _ProgressListener(world, connection, health, self.pass_on, self.announce)

    def start(self, receiver: Receiver, handler: Handler) -> None:
        """Listen, and judge the verdicts on honest workers."""
        super().start(_JudgedReceiver(receiver), handler)

    def wait_for_loop(self) -> None:
        """There is no other thread: the loop has nothing in hand when a listener runs."""


class _JudgedReceiver:
    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def receive(self, batches: Sequence[CheckpointBatch]) -> Sequence[Receipt]:
        """Receive checkpoints as the real one does."""
        receipts = self._receiver.receive(batches)
        for receipt in receipts:
            _check_verdicts(receipt)
        return receipts


def _check_verdicts(receipt: Receipt) -> None:
    """What a worker says that does not lie, is true, known, and of a lease of its own."""
    for checkpoint, verdict in zip(receipt.batch.checkpoints, receipt.verdicts, strict=True):
        is_lie = checkpoint.sequence > LIE
        if not is_lie and verdict in (MessageVerdict.UNTRUE, MessageVerdict.UNKNOWN, MessageVerdict.FOREIGN):
            raise LawBrokenError(f"an honest checkpoint of {receipt.batch.worker} is {verdict}: {checkpoint}")
        if is_lie and verdict in (MessageVerdict.ACCOUNTED, MessageVerdict.CLOSED):
            raise LawBrokenError(f"a checkpoint that lies is {verdict}: {checkpoint}")
