"""The transport of a worker over a broker: a Celery worker with a pool of threads.

Leases come as messages of a Celery task. A message is acknowledged on intake. It is a hint: checkpoints
report the fate of its leases. Orders are received beside them, over the same connection.

Celery's own remote control is off. It would accept some forty commands from anyone who reaches the broker,
among them to shut down and to consume other queues, and would send replies wherever a command asks.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from celery import bootsteps, signals
from celery.exceptions import CPendingDeprecationWarning, SecurityWarning
from celery.worker import state
from kombu.messaging import Consumer

from oku_core.broker.celery_app import (
    LEASE_TASK,
    PROGRESS_EVENT,
    App,
    build_control_queue,
    build_lease_queue,
    build_orders_queue,
    build_worker_app,
)
from oku_core.broker.sending import send_checkpoints
from oku_core.broker.transport import (
    build_heartbeat_transport_options,
    find_connection_errors,
    read_json_body,
)
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.codec import decode_leases, decode_order, seal_progress
from oku_core.messaging.progress import Progress
from oku_core.messaging.signing import Reject
from oku_workers.broker.consumer import TASKS, SteadyConsumer, is_worth_a_line
from oku_workers.broker.coordinator_link import Notify, WorkerInbox
from oku_workers.health.heartbeat import ProgressChannel
from oku_workers.settings import WorkerIdentity


class CeleryWorkerTransport:
    """A Celery worker from `run` to `end`."""

    is_cut = False
    """The broker may keep a message for this process."""

    def __init__(self, broker_url: str, message_key: bytes, worker: WorkerIdentity, reject: Reject) -> None:
        self._app = build_worker_app(broker_url, message_key, reject)
        self.passing = find_connection_errors(self._app)
        self._worker = worker
        self._consumer: Any = None

    def run(self, inbox: WorkerInbox, on_started: Notify, on_ready: Notify) -> int:
        """Run the Celery worker."""
        register_lease_task(self._app, inbox)
        listen_to_orders(self._app, self._worker, inbox)

        def begin(sender: Any, **_: object) -> None:
            self._consumer = sender
            on_started()  # after Celery has set its own handlers of signals
            # Celery connects to its queues in the first round of its loop, which takes seconds if names
            # resolve slowly.
            sender.call_soon(lambda: sender.call_soon(on_ready))

        signals.worker_ready.connect(begin, weak=False)
        celery_worker = _build_celery_worker(self._app, self._worker)
        celery_worker.start()
        return int(celery_worker.exitcode or 0)

    def end(self) -> None:
        """Let Celery shut down."""
        state.should_stop = 0
        self._consumer.call_soon(lambda: None)  # so that Celery looks

    def send_checkpoints(self, batch: CheckpointBatch) -> None:
        """Put checkpoints into their queue."""
        send_checkpoints(self._app, batch)

    @contextmanager
    def open_progress_channel(self) -> Iterator[ProgressChannel]:
        """Connect; a broker that does not answer soon is given up."""
        options = build_heartbeat_transport_options(self._app)
        with self._app.connection_for_write(transport_options=options) as connection:
            yield EventChannel(self._app, connection, self._worker.incarnation)


class EventChannel:
    """Progress goes out as Celery's events."""

    def __init__(self, app: App, connection: Any, incarnation: str) -> None:
        self._app = app
        self._connection = connection
        self._dispatcher = app.events.Dispatcher(connection, buffer_while_offline=False)
        self._queues = [build_lease_queue(incarnation).name, build_control_queue(incarnation).name]

    def send(self, progress: Progress) -> None:
        """Send an event."""
        self._dispatcher.send(PROGRESS_EVENT, progress=seal_progress(self._app.signer, progress))

    def count_waiting(self) -> int:
        """Count the messages in the queues of this process."""
        return sum(map(self._measure_length, self._queues))

    def _measure_length(self, queue: str) -> int:
        try:
            channel = self._connection.default_channel
            return int(channel.queue_declare(queue, passive=True).message_count)
        except self._connection.channel_errors:
            return 0  # on Redis an empty queue does not exist


def register_lease_task(app: App, inbox: WorkerInbox) -> None:
    """Have the Celery worker of an application take messages of leases, each in a thread of its pool."""

    @app.task(name=LEASE_TASK, shared=False)
    def take_leases(document: Any) -> None:
        inbox.take_leases(lambda: decode_leases(app.signer, document))


def listen_to_orders(app: App, worker: WorkerIdentity, inbox: WorkerInbox) -> None:
    """Have the Celery worker of an application listen to orders, over the connection that it has."""

    def receive(envelope: Any) -> None:
        inbox.take_order(lambda: decode_order(app.signer, read_json_body(envelope)))

    class OrderStep(bootsteps.ConsumerStep):  # type: ignore[misc]  # Celery has no types
        """Listens on each connection until it is lost."""

        def get_consumers(self, channel: Any) -> list[Consumer]:
            """The consumer of the orders to all, and of those to this process; called on each connection."""
            inbox.on_connected()
            queues = [
                build_orders_queue(f"{worker.name}.{worker.incarnation}"),
                build_control_queue(worker.incarnation),
            ]
            return [Consumer(channel, queues, on_message=receive, no_ack=True, accept=["json"])]

        def stop(self, consumer: Any) -> None:
            """Cancel them, unless they are lost with their connection: Celery 5.7.0 would log an error."""
            if consumer.connection is not None:
                super().stop(consumer)

    app.steps["consumer"].add(OrderStep)


def _build_celery_worker(app: App, worker: WorkerIdentity) -> Any:
    # Celery warns a superuser that messages may run code; ours are JSON, and are checked.
    warnings.simplefilter("ignore", SecurityWarning)
    # Celery would otherwise set up logging of its own.
    signals.setup_logging.connect(lambda **_: None, weak=False)
    queue = build_lease_queue(worker.incarnation)
    app.amqp.queues.add(queue)
    celery_worker = app.Worker(
        hostname=f"{worker.name}@oku",
        pool="threads",
        concurrency=TASKS,
        consumer_cls=SteadyConsumer,
        queues=[queue.name],
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        task_events=False,
        quiet=True,
    )
    # Each lost connection would bring a warning about a setting in `oku_core.broker.celery_app`.
    warnings.simplefilter("ignore", CPendingDeprecationWarning)
    logging.getLogger("celery.worker.request").addFilter(is_worth_a_line)
    return celery_worker
