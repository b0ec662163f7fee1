"""Workers that send no request: they take leases from a real broker and report what could have come of them.

`python -m oku_benchmarks.simulation.simulated_workers BROKER_URL WORKERS RATE FILE`: each worker gets
through RATE requests per second. Claim, progress, report are the messages that real workers send, in the
envelopes that Celery makes; statuses, latencies and memory in them are made up. All workers share this
process, which therefore asks Valkey itself in one pipeline after the other, and acknowledges a lease as it
takes it. Until SIGTERM; FILE then gets what was sent and taken, and when.
"""

import heapq
import itertools
import json
import secrets
import signal
import sys
import time
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import msgspec
import redis
from tests.kit.brokers.message_key import MESSAGE_KEY

from oku_benchmarks.simulation.simulated_latency import build_coarse_latency, build_latency
from oku_core.messaging.celery_app import (
    LEASES_QUEUE,
    ORDERS_EXCHANGE,
    PROGRESS_EVENT,
    REPORTS_QUEUE,
    build_app,
)
from oku_core.messaging.codec import decode_lease, decode_order, seal_message, seal_progress
from oku_core.messaging.lease import LEASE_SLOTS, Claim, Lease, Report
from oku_core.messaging.order import HeartbeatInterval
from oku_core.messaging.progress import Progress
from oku_core.messaging.sending import send_message
from oku_core.messaging.signing import Signer

_BYTES_OF_ANSWER = 13
_SLOT_S = 0.01
"""So often is Valkey asked; what takes a real worker a millisecond takes these up to so long."""
_MOST_AT_ONCE = 1_000
_ARRIVALS_PER_S = 250
"""So many workers come in a second, as a cluster would start them."""
_PROGRESS_TOPIC = f"/0.celeryev/{PROGRESS_EVENT.replace('-', '.')}"
_ORDERS_TOPIC = f"/0.{ORDERS_EXCHANGE}"
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
        tag = str(uuid4()).encode()
        return b"".join((self._before, b64encode(body), self._between, tag, self._after))


def _make_report(app: Any, connection: Any) -> dict[str, Any]:
    queue = app.amqp.queues[REPORTS_QUEUE](connection.default_channel)
    queue.declare()
    send_message(app, Claim(lease="", execution="", worker="", incarnation="", at=0))
    return _fetch(connection.default_channel, queue.name)


def _make_event(app: Any, connection: Any) -> dict[str, Any]:
    receiver = app.events.Receiver(connection, routing_key=PROGRESS_EVENT.replace("-", "."))
    receiver.queue(connection.default_channel).declare()
    app.events.Dispatcher(connection, buffer_while_offline=False).send(PROGRESS_EVENT)
    return _fetch(connection.default_channel, receiver.queue.name)


def _fetch(channel: Any, queue: str) -> dict[str, Any]:
    message: dict[str, Any] = channel.basic_get(queue, no_ack=True).serializable()
    return message


class Fleet:
    """All the workers of this process.

    Args:
        workers: how many.
        rate_rps: of each.
    """

    def __init__(self, workers: int, rate_rps: float) -> None:
        self._rate_rps = rate_rps
        self._signer = Signer(MESSAGE_KEY)
        self._random = Random(1)
        self._incarnations = [secrets.token_hex(8) for _ in range(workers)]
        self._free_at = [0.0] * workers
        self._executing: list[dict[str, list[int]]] = [{} for _ in range(workers)]
        self._has_arrived = [False] * workers
        self._free_slots: deque[int] = deque()
        self._under_way: list[tuple[float, int, int, Lease, str]] = []
        self._order = itertools.count()
        self._report, self._event = Envelope(_make_report), Envelope(_make_event)
        self.heartbeat_interval_s = 1.0
        """As the coordinator wants it."""
        now = time.time()
        self._heartbeats = [(now + number / _ARRIVALS_PER_S, number) for number in range(workers)]
        self.taken: list[tuple[str, float]] = []
        """Leases, and when they were taken."""
        self.reported: list[tuple[str, float]] = []
        """Leases, and when their report was sent."""
        self.requests = self.heartbeats = 0

    @property
    def free_slots(self) -> int:
        """How many leases could be taken."""
        return len(self._free_slots)

    def obey(self, message: bytes) -> None:
        """Follow an order of the coordinator; only that of the heartbeat interval means something here."""
        order = decode_order(self._signer, _read_body(message))
        if isinstance(order, HeartbeatInterval):
            self.heartbeat_interval_s = order.interval_s

    def take(self, message: bytes) -> bytes:
        """Take a lease; its claim.

        The first lease of a worker ends early, at random, so that from the start reports come evenly.
        """
        lease = decode_lease(self._signer, json.loads(_read_body(message))[0][0])
        now, number, execution = time.time(), self._free_slots.popleft(), secrets.token_hex(8)
        length_s = (lease.stop - lease.start) / self._rate_rps
        if not self._free_at[number]:
            length_s *= self._random.random()
        self._free_at[number] = ends_at = max(now, self._free_at[number]) + length_s
        self._executing[number][lease.id] = [0] * 6
        heapq.heappush(self._under_way, (ends_at, next(self._order), number, lease, execution))
        self.taken.append((lease.id, now))
        incarnation = self._incarnations[number]
        return self._fill_task(
            Claim(lease=lease.id, execution=execution, worker=_name(number), incarnation=incarnation, at=now)
        )

    def finish_due_leases(self, now: float) -> Iterator[bytes]:
        """The reports of the leases that have ended."""
        while self._under_way and self._under_way[0][0] <= now:
            _, _, number, lease, execution = heapq.heappop(self._under_way)
            count = lease.stop - lease.start
            self.requests += count
            self.reported.append((lease.id, time.time()))
            del self._executing[number][lease.id]
            self._free_slots.append(number)
            yield self._fill_task(self._build_report(number, lease, execution, count))

    def build_due_heartbeats(self, now: float) -> Iterator[bytes]:
        """The progress of those whose turn it is."""
        while self._heartbeats[0][0] <= now:
            at, number = self._heartbeats[0]
            if not self._has_arrived[number]:
                self._has_arrived[number] = True
                self._free_slots += [number] * LEASE_SLOTS
            heapq.heapreplace(self._heartbeats, (at + self.heartbeat_interval_s, number))
            self.heartbeats += 1
            yield self._build_event(number, time.time())

    def _build_event(self, number: int, now: float) -> bytes:
        leases, heartbeat_interval_s = self._executing[number], self.heartbeat_interval_s
        ended = round(self._rate_rps * heartbeat_interval_s) if leases else 0
        progress = Progress(
            worker=_name(number),
            incarnation=self._incarnations[number],
            at=now,
            sequence=self.heartbeats,
            seconds=heartbeat_interval_s,
            leases=leases,
            in_flight=1000,
            outcomes=[ended, 0, 0, 0, 0, 0],
            bytes_received=ended * _BYTES_OF_ANSWER,
            latency=build_latency(ended) if heartbeat_interval_s == 1.0 else build_coarse_latency(ended),
            lag_s=0.0021,
            cpu_share=0.512,
            rss_mb=90.1,
        )
        head = b'{"hostname": "gen1@simulated", "utcoffset": 0.0, "pid": 1, "clock": 1, "progress": '
        tail = b', "timestamp": %f, "type": "%s"}' % (now, PROGRESS_EVENT.encode())
        return self._event.fill(head + msgspec.json.encode(seal_progress(self._signer, progress)) + tail)

    def _build_report(self, number: int, lease: Lease, execution: str, count: int) -> Report:
        now = time.time()
        return Report(
            lease=lease.id,
            execution=execution,
            worker=_name(number),
            incarnation=self._incarnations[number],
            start=lease.start,
            done=lease.stop,
            outcomes=[count, 0, 0, 0, 0, 0],
            statuses={"200": count},
            bytes_received=count * _BYTES_OF_ANSWER,
            latency=build_latency(count),
            started_at=now - count / self._rate_rps,
            ended_at=now,
            cpu_s=count / 20_000,
            peak_rss_mb=90.0,
            max_lag_s=0.01,
            busy_share=0.5,
        )

    def _fill_task(self, payload: Claim | Report) -> bytes:
        embedded = b'{"callbacks": null, "errbacks": null, "chain": null, "chord": null}'
        sealed = msgspec.json.encode(seal_message(self._signer, payload))
        return self._report.fill(b"[[%s], {}, %s]" % (sealed, embedded))


def _name(number: int) -> str:
    return f"simulated-{number + 1}"


def _read_body(message: bytes) -> bytes:
    return b64decode(json.loads(message)["body"])


def run(broker_url: str, workers: int, rate_rps: float) -> Fleet:
    """Work until SIGTERM."""
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ending.append(number))
    fleet = Fleet(workers, rate_rps)
    client = redis.Redis.from_url(broker_url.replace("redis+socket", "unix"))
    orders: Any = client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
    orders.subscribe(_ORDERS_TOPIC)
    claims: list[bytes] = []
    while not ending:
        now = time.time()
        pipeline = client.pipeline(transaction=False)
        if reports := [*claims, *fleet.finish_due_leases(now)]:
            pipeline.lpush(REPORTS_QUEUE, *reports)
        for event in fleet.build_due_heartbeats(now):
            pipeline.publish(_PROGRESS_TOPIC, event)
        if fleet.free_slots:
            pipeline.rpop(LEASES_QUEUE, min(_MOST_AT_ONCE, fleet.free_slots))
        results = pipeline.execute()
        leases = (results[-1] if fleet.free_slots else None) or ()
        claims = [fleet.take(message) for message in leases]
        if order := orders.get_message():
            fleet.obey(order["data"])
        if not claims:
            time.sleep(max(0.0, now + _SLOT_S - time.time()))
    return fleet


if __name__ == "__main__":
    broker_url, workers, rate_rps, file = sys.argv[1:]
    fleet = run(broker_url, int(workers), float(rate_rps))
    counts: dict[str, Any] = {
        "leases": len(fleet.reported),
        "requests": fleet.requests,
        "heartbeats": fleet.heartbeats,
    }
    counts["heartbeat_interval_s"] = fleet.heartbeat_interval_s
    Path(file).write_text(json.dumps(counts | {"taken": fleet.taken, "reported": fleet.reported}))
