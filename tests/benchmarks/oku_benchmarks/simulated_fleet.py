"""Simulated workers at a real broker: they take leases and report on them, but send no request.

`python -m oku_benchmarks.simulated_fleet BROKER_URL WORKERS RATE FILE`: each makes RATE requests a second.
Messages are those of real workers, in Celery's envelopes, with content made up. All share one process, which
asks Valkey itself, and has it report which queues have something. At SIGTERM, FILE gets what was sent.
"""

import heapq
import json
import math
import secrets
import signal
import sys
import time
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import redis
from tests.kit.brokers.message_key import MESSAGE_KEY

from oku_benchmarks.simulated_worker import SimulatedWorker
from oku_core.broker.celery_app import (
    CHECKPOINTS_QUEUE,
    ORDERS_EXCHANGE,
    PROGRESS_EVENT,
    build_app,
    build_control_queue,
    build_lease_queue,
)
from oku_core.broker.sending import send_checkpoints
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.codec import decode_leases, decode_order, seal_checkpoints, seal_progress
from oku_core.messaging.order import Control, Intervals, Stop
from oku_core.messaging.signing import Signer

_SLOT_S = 0.01  # so often is Valkey asked
_ARRIVALS_PER_S = 250  # as a cluster would start workers
_MOST_DELAYS = 100_000
_EVENT_NAME = PROGRESS_EVENT.replace("-", ".")
_ORDERS_TOPIC, _PUSHED_TOPIC = f"/0.{ORDERS_EXCHANGE}", "__keyevent@0__:lpush"
_BODY, _TAG = "BODY", "TAG"


class Envelope:
    """Celery's envelope around a JSON body, as `make` leaves it in a queue of kombu's broker in memory."""

    def __init__(self, make: Callable[[Any, Any], dict[str, Any]]) -> None:
        app = build_app("memory://", MESSAGE_KEY)
        with app.connection_for_write() as connection:
            message = make(app, connection)
        message["properties"]["delivery_tag"] = _TAG
        text = json.dumps(message | {"body": _BODY})
        self._before, rest = text.encode().split(_BODY.encode(), 1)
        self._between, self._after = rest.split(_TAG.encode(), 1)

    def fill(self, body: bytes) -> bytes:
        """The message with this body."""
        return b"".join((self._before, b64encode(body), self._between, str(uuid4()).encode(), self._after))


def _make_checkpoints(app: Any, connection: Any) -> dict[str, Any]:
    queue = app.amqp.queues[CHECKPOINTS_QUEUE](connection.default_channel)
    queue.declare()
    send_checkpoints(app, CheckpointBatch(worker="", incarnation="", checkpoints=[]))
    return _fetch(connection.default_channel, queue.name)


def _make_event(app: Any, connection: Any) -> dict[str, Any]:
    receiver = app.events.Receiver(connection, routing_key=_EVENT_NAME)
    receiver.queue(connection.default_channel).declare()
    app.events.Dispatcher(connection, buffer_while_offline=False).send(PROGRESS_EVENT)
    return _fetch(connection.default_channel, receiver.queue.name)


def _fetch(channel: Any, queue: str) -> dict[str, Any]:
    message: dict[str, Any] = channel.basic_get(queue, no_ack=True).serializable()
    return message


class Fleet:
    """All the workers of this process."""

    def __init__(self, workers: int, rate_rps: float) -> None:
        now = time.time()
        self._signer = Signer(MESSAGE_KEY)
        self._task, self._event = Envelope(_make_checkpoints), Envelope(_make_event)
        self.workers = [
            SimulatedWorker(f"simulated-{number + 1}", secrets.token_hex(8), rate_rps, now)
            for number in range(workers)
        ]
        self._by_lease_queue = {build_lease_queue(each.incarnation).name: each for each in self.workers}
        self._by_control_queue = {build_control_queue(each.incarnation).name: each for each in self.workers}
        self._due: list[tuple[float, int]] = []
        self._numbers = {worker.incarnation: number for number, worker in enumerate(self.workers)}
        self._heartbeats = [(now + number / _ARRIVALS_PER_S, number) for number in range(workers)]
        self._sent: dict[tuple[str, int], float] = {}
        self._heartbeat_s, self._heartbeat_count, self._checkpoints = 1.0, 0, 0
        self.confirmed: deque[tuple[float, float]] = deque(maxlen=_MOST_DELAYS)
        """When checkpoints were confirmed, and how many seconds after they were sent."""
        self.looks: list[tuple[float, int, float, int]] = []
        """For each second: the time, and totals of requests taken, of seconds waited, of checkpoints sent."""

    def is_own(self, queue: str) -> bool:
        """Whether a queue is that of one of the workers."""
        return queue in self._by_lease_queue or queue in self._by_control_queue

    def receive(self, queue: str, message: bytes) -> None:
        """Give a message to the worker of a queue."""
        now, body = time.time(), _read_body(message)
        if worker := self._by_lease_queue.get(queue):
            worker.take(decode_leases(self._signer, json.loads(body)[0][0]), now)
        else:
            worker, control = self._by_control_queue[queue], decode_order(self._signer, body)
            assert isinstance(control, Control)
            for confirmed in control.confirmed.items():
                if sent_at := self._sent.pop(confirmed, 0.0):
                    self.confirmed.append((now, now - sent_at))
            worker.obey_control(control, now)
        self._plan(worker)

    def obey(self, message: bytes) -> None:
        """Follow an order that is for all."""
        order, now = decode_order(self._signer, _read_body(message)), time.time()
        if isinstance(order, Intervals):
            self._heartbeat_s = order.heartbeat_s
        for worker in self.workers:
            if isinstance(order, Intervals):
                worker.checkpoint_s = order.checkpoint_s
            elif isinstance(order, Stop):
                worker.obey_stop(order, now)
            self._plan(worker)

    def build_due_checkpoints(self, now: float) -> Iterator[bytes]:
        """The reports of those whose turn it is."""
        while self._due and self._due[0][0] <= now:
            at, number = heapq.heappop(self._due)
            worker = self.workers[number]
            if worker.next_at != at:
                continue  # its plan has changed since then
            if batch := worker.build_checkpoints(now):
                self._checkpoints += len(batch.checkpoints)
                self._sent |= {(each.lease, each.sequence): now for each in batch.checkpoints}
                embedded = b'{"callbacks": null, "errbacks": null, "chain": null, "chord": null}'
                sealed = msgspec.json.encode(seal_checkpoints(self._signer, batch))
                yield self._task.fill(b"[[%s], {}, %s]" % (sealed, embedded))
            self._plan(worker)
        if len(self._sent) > _MOST_DELAYS:
            self._sent.clear()

    def build_due_heartbeats(self, now: float) -> Iterator[bytes]:
        """The progress of those whose turn it is."""
        while self._heartbeats[0][0] <= now:
            at, number = self._heartbeats[0]
            heapq.heapreplace(self._heartbeats, (at + self._heartbeat_s, number))
            self._heartbeat_count += 1
            worker = self.workers[number]
            progress = worker.build_progress(time.time(), self._heartbeat_s, self._heartbeat_count)
            head = b'{"hostname": "gen1@simulated", "utcoffset": 0.0, "pid": 1, "clock": 1, "progress": '
            tail = b', "timestamp": %f, "type": "%s"}' % (now, PROGRESS_EVENT.encode())
            yield self._event.fill(head + msgspec.json.encode(seal_progress(self._signer, progress)) + tail)

    def look(self, now: float) -> None:
        """Keep the totals once a second."""
        if not self.looks or now >= self.looks[-1][0] + 1.0:
            requests = sum(worker.requests for worker in self.workers)
            waited_s = sum(worker.waited_s for worker in self.workers)
            self.looks.append((now, requests, waited_s, self._checkpoints))

    def _plan(self, worker: SimulatedWorker) -> None:
        if worker.next_at < math.inf:
            heapq.heappush(self._due, (worker.next_at, self._numbers[worker.incarnation]))


def _read_body(message: bytes) -> bytes:
    return b64decode(json.loads(message)["body"])


class Wire:
    """The connection to Valkey, by a URL of Celery's form."""

    def __init__(self, broker_url: str) -> None:
        self._client = redis.Redis.from_url(broker_url.replace("redis+socket", "unix"))
        self._client.config_set("notify-keyspace-events", "El")
        self._topics: Any = self._client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
        self._topics.subscribe(_ORDERS_TOPIC, _PUSHED_TOPIC)

    def listen(self) -> Iterator[tuple[bool, bytes]]:
        """What has come since the last time: whether it is an order or the name of a queue, and the bytes."""
        while message := self._topics.get_message():
            yield message["channel"] == _ORDERS_TOPIC.encode(), message["data"]

    def send(self, tasks: list[bytes], events: Iterable[bytes]) -> None:
        """Send checkpoints and progress."""
        pipeline = self._client.pipeline(transaction=False)
        if tasks:
            pipeline.lpush(CHECKPOINTS_QUEUE, *tasks)
        for event in events:
            pipeline.publish(f"/0.celeryev/{_EVENT_NAME}", event)
        pipeline.execute()

    def pop(self, queues: list[str]) -> Iterator[tuple[str, bytes]]:
        """One message of each queue, if there is one."""
        pipeline = self._client.pipeline(transaction=False)
        for queue in queues:
            pipeline.rpop(queue)
        for queue, message in zip(queues, pipeline.execute(), strict=True):
            if message is not None:
                yield queue, message


def main(broker_url: str, workers: int, rate_rps: float, file: Path) -> None:
    """Work until SIGTERM, and write what was done."""
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ending.append(number))
    fleet, wire = Fleet(workers, rate_rps), Wire(broker_url)
    while not ending:
        now = time.time()
        pushed: list[str] = []
        for is_order, data in wire.listen():
            if is_order:
                fleet.obey(data)
            elif fleet.is_own(queue := data.decode()):
                pushed.append(queue)
        for queue, message in wire.pop(pushed) if pushed else ():
            fleet.receive(queue, message)
        wire.send(list(fleet.build_due_checkpoints(now)), fleet.build_due_heartbeats(now))
        fleet.look(now)
        time.sleep(max(0.0, now + _SLOT_S - time.time()))
    file.write_text(json.dumps({"looks": fleet.looks, "confirmed": list(fleet.confirmed)}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
