"""What somebody can do who reaches the broker and does not have the key: nothing that changes a run.

A real broker, a real coordinator, a real worker. Forged are messages that are true in all but the signature;
replayed are copies of true ones.
"""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.brokers.message_key import MESSAGE_KEY
from tests.kit.coordinators.coordinator import CoordinatorApi, run_coordinator
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import wait_until
from tests.kit.workers.heard_progress import find_incarnation, listening
from tests.kit.workers.simulated_worker import SimulatedWorker
from tests.kit.workers.whole_share import build_whole_share
from tests.kit.workers.worker_process import Process, run_worker

from oku_core.broker.celery_app import (
    CHECKPOINTS_QUEUE,
    LEASE_TASK,
    PROGRESS_EVENT,
    App,
    build_app,
    build_control_queue,
    build_lease_queue,
    build_orders_queue,
)
from oku_core.broker.sending import send_to_workers
from oku_core.messaging.checkpoint import Checkpoint
from oku_core.messaging.codec import decode_checkpoints, seal_leases, seal_order, seal_progress
from oku_core.messaging.lease import Lease, LeaseBatch
from oku_core.messaging.order import Control, Intervals, Stop
from oku_core.messaging.progress import Progress
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.url import Url

FORGED_KEY = b"the key of somebody else"
SPEC = {"requests": 300, "range-size": 100, "url": "http://127.0.0.1:9/{i}"}


@pytest.fixture
def broker_url(tmp_path: Path) -> Iterator[str]:
    """A real broker."""
    (tmp_path / "broker").mkdir()
    with run_broker(tmp_path / "broker") as url:
        yield url


@pytest.fixture
def api(broker_url: str, tmp_path: Path) -> Iterator[CoordinatorApi]:
    """A real coordinator."""
    with run_coordinator(broker_url, tmp_path / "data") as coordinator:
        yield coordinator


@contextmanager
def running_worker(broker_url: str, log: Path) -> Iterator[Process]:
    """Runs a worker that is ready, until the end of the block."""
    ready = log.with_suffix(".ready")
    with run_worker(broker_url, "--ready-file", str(ready), log=log) as process:
        wait_until(ready.exists, 30, "the worker is ready")
        yield process


def publish_progress(app: App, document: dict[str, Any]) -> None:
    """Send an event as a worker does."""
    with app.connection_for_write() as connection:
        app.events.Dispatcher(connection).send(PROGRESS_EVENT, progress=document)


def build_leases(incarnation: str, number: int, url: str = "http://127.0.0.1:9/{i}") -> LeaseBatch:
    """A lease of nine requests that nobody answers."""
    return LeaseBatch(
        run="r",
        incarnation=incarnation,
        leases=[Lease(id=f"r.{number}.abcd", run="r", ranges=[(0, 9)], limit=9)],
        start_by=time.time() + 60,
        spec=Spec(engine=Engine.HTTPTOOLS, urls=(Url(url),)),
        share=build_whole_share("r"),
    )


def receive(app: App, timeout_s: float = 15) -> Checkpoint:
    """The next checkpoint."""
    with app.connection_for_read() as connection, connection.SimpleQueue(CHECKPOINTS_QUEUE) as queue:
        message = queue.get(timeout=timeout_s)
        message.ack()
    return decode_checkpoints(app.signer, message.body).checkpoints[0]


def test_forged_checkpoints_and_progress_change_nothing(
    api: CoordinatorApi, broker_url: str, tmp_path: Path
) -> None:
    """They are dropped, counted, and reported in a notice and one line of the log; the run goes on."""
    with SimulatedWorker(broker_url) as worker:
        run = api.submit(**SPEC)
        lease = worker.take_lease()
        forger = SimulatedWorker(broker_url)
        forger.app, forger.incarnation = build_app(broker_url, FORGED_KEY), worker.incarnation
        for _ in range(50):
            forger.send(forger.build_checkpoint(lease))
            ghost = Progress(worker="ghost", incarnation="g", at=time.time(), sequence=1)
            publish_progress(forger.app, seal_progress(forger.app.signer, ghost))
        forged = 'oku_messages_rejected_total{reason="forged"}'
        wait_until(lambda: api.read_metric(forged) == 100, 20, "100 messages are rejected")
        summary = api.summary(run)
        assert (summary["accounted"], summary["resent_at_most"], summary["workers"]) == (0, 0, [])
        wait_until(lambda: api.read_metric("oku_workers") > 0, 5, "a tick has counted the workers")
        assert api.read_metric("oku_workers") == 1
        assert [notice for notice in summary["notices"] if notice.startswith("messages from the broker were")]
        worker.execute(lease)
        worker.execute_next(2)
        summary = api.wait_for_state(run, "completed")
    assert_completed(summary)
    assert summary["resent_at_most"] == 0
    log = (tmp_path / "data" / "coordinator.log").read_text()
    assert log.count("were dropped") == 1
    assert "Traceback" not in log


def test_a_copy_of_old_progress_does_not_replace_a_worker(api: CoordinatorApi, broker_url: str) -> None:
    """It keeps its leases when old progress of its name, or of itself, is sent again."""
    with SimulatedWorker(broker_url) as worker:
        run = api.submit(**SPEC)
        lease = worker.take_lease()
        signer = worker.app.signer
        old = Progress(worker=worker.name, incarnation="before", at=time.time() - 60, sequence=900)
        leaving = Progress(
            worker=worker.name, incarnation=worker.incarnation, at=time.time(), sequence=1, stopping=True
        )
        api.settle_metrics()
        heard = api.read_metric("oku_progress_total")
        for _ in range(3):
            for copy in (old, leaving):
                publish_progress(worker.app, seal_progress(signer, copy))
            time.sleep(0.3)
        wait_until(lambda: api.read_metric("oku_progress_total") > heard, 10, "progress is heard")
        worker.execute(lease)
        worker.execute_next(2)
        summary = api.wait_for_state(run, "completed")
    assert_completed(summary)
    assert summary["resent_at_most"] == 0
    assert [worker["lost"] for worker in summary["workers"]] == [False]


def test_a_worker_acts_on_no_forged_lease(broker_url: str, tmp_path: Path) -> None:
    """A worker ignores forged leases and other tasks, keeps running, and takes a true lease."""
    app, forger = build_app(broker_url, MESSAGE_KEY), build_app(broker_url, FORGED_KEY)
    log = tmp_path / "worker.log"
    with running_worker(broker_url, log) as worker:
        incarnation = find_incarnation(app)
        queue = build_lease_queue(incarnation)
        for number in range(50):
            send_to_workers(forger, [build_leases(incarnation, number)])
            app.send_task(LEASE_TASK, args=[{"id": "x"}], queue=queue)
            app.send_task("celery.backend_cleanup", queue=queue)
            app.send_task("oku.unknown", args=[1], queue=queue)
        send_to_workers(app, [build_leases(incarnation, 77)])
        assert receive(app).lease == "r.77.abcd"
        assert worker.poll() is None
    assert log.read_text().count("were dropped") == 1
    assert "Traceback" not in log.read_text()


def test_a_worker_takes_no_leases_of_another_process(broker_url: str, tmp_path: Path) -> None:
    """Somebody has moved a true message from one queue to another."""
    app = build_app(broker_url, MESSAGE_KEY)
    with running_worker(broker_url, tmp_path / "worker.log"):
        incarnation = find_incarnation(app)
        moved = seal_leases(app.signer, build_leases("another", 5))
        app.send_task(LEASE_TASK, args=[moved], queue=build_lease_queue(incarnation))
        send_to_workers(app, [build_leases(incarnation, 6)])
        assert receive(app).lease == "r.6.abcd"


def test_celery_obeys_nothing_that_comes_with_a_lease(broker_url: str, tmp_path: Path) -> None:
    """A true lease in a message with a delay, a follow-up task and a reply address is just a lease."""
    app = build_app(broker_url, MESSAGE_KEY)
    with running_worker(broker_url, tmp_path / "worker.log"):
        incarnation = find_incarnation(app)
        queue = build_lease_queue(incarnation)
        follower = app.signature("oku.follower", queue=queue.name, immutable=True)
        app.send_task(
            LEASE_TASK, args=[seal_leases(app.signer, build_leases(incarnation, 5))], queue=queue,
            countdown=3600, link=follower, reply_to="elsewhere", shadow="else",
        )  # fmt: skip
        assert receive(app).lease == "r.5.abcd"
        time.sleep(1)
        with app.connection_for_read() as connection:
            for name in (queue.name, "elsewhere"):
                with pytest.raises(connection.channel_errors, match="NOT_FOUND"):
                    connection.default_channel.queue_declare(name, passive=True)


DEEP = [b"[" * levels + b"]" * levels for levels in (95, 900, 1_000, 100_000)]
NESTED = (
    b"DEEP",
    b'{"headers": DEEP}',
    b'{"body": "x", "headers": DEEP, "properties": {"delivery_tag": 1}, "content-type": "application/json"}',
)
GARBAGE = [b"{", b"\xff", b"[1]", b"{}", b"null", b'"x"', b'{"body": 1, "properties": {}}', json.dumps({
    "body": "e30=", "content-type": "application/json", "content-encoding": "utf-8", "headers": {"task": 7},
    "properties": {"body_encoding": "base64", "delivery_tag": "x", "delivery_info": []},
}).encode(), *(nested.replace(b"DEEP", deep) for deep in DEEP for nested in NESTED)]  # fmt: skip
"""What kombu itself cannot read, or stumbles over."""


def test_what_is_not_even_a_celery_message_ends_no_process(
    api: CoordinatorApi, broker_url: str, tmp_path: Path
) -> None:
    """Garbage fills the queues and channels of a Valkey; a run goes on all the same."""
    app, log = build_app(broker_url, MESSAGE_KEY), tmp_path / "worker.log"
    with running_worker(broker_url, log) as worker, app.connection_for_write() as connection:
        incarnation = find_incarnation(app)
        client = connection.default_channel.client
        for piece in GARBAGE:
            client.lpush(build_lease_queue(incarnation).name, piece)
            client.lpush(build_control_queue(incarnation).name, piece)
            client.lpush(CHECKPOINTS_QUEUE, piece)
            client.publish("/0.oku.orders", piece)
            client.publish("/0.celeryev/oku.progress", piece)
        for key in ("unacked", "unacked_checkpoints"):
            for number, piece in enumerate(GARBAGE):
                client.zadd(f"{key}_index", {f"{number}": 1.0})
                client.hset(key, f"{number}", piece)
        run = api.submit(requests=50, url="http://127.0.0.1:9/{i}")
        assert api.wait_for_state(run, "completed", 60)["accounted"] == 50
        wait_until(lambda: not client.hlen("unacked_checkpoints"), 20, "what is no message is forgotten")
        assert worker.poll() is None


COMMANDS = [
    "shutdown", "add_consumer", "cancel_consumer", "rate_limit", "time_limit", "pool_shrink", "pool_restart",
    "revoke", "enable_events", "ping", "conf", "report", "registered", "memdump", "oku_stop",
]  # fmt: skip


def test_a_worker_takes_none_of_celerys_commands(broker_url: str, tmp_path: Path) -> None:
    """It ignores remote control and commands on the channel of Oku's orders, and goes on."""
    app = build_app(broker_url, MESSAGE_KEY)
    with running_worker(broker_url, tmp_path / "worker.log") as worker:
        incarnation = find_incarnation(app)
        for command in COMMANDS:
            arguments = {"queue": "elsewhere"} if command.endswith("consumer") else {}
            assert not app.control.broadcast(command, arguments=arguments, reply=True, timeout=0.1)
            with app.connection_for_write() as connection:
                order = {"method": command, "arguments": arguments, "destination": None}
                exchange = build_orders_queue("").exchange
                connection.Producer().publish(order, exchange=exchange.name, serializer="json")
        send_to_workers(app, [build_leases(incarnation, 1)])
        assert receive(app).lease == "r.1.abcd"
        assert worker.poll() is None


def test_forged_and_old_orders_stop_nothing(broker_url: str, tmp_path: Path) -> None:
    """Forged orders, an old one and one for another process are ignored; a true order is obeyed."""
    app, forger = build_app(broker_url, MESSAGE_KEY), build_app(broker_url, FORGED_KEY)
    with (
        running_worker(broker_url, tmp_path / "worker.log"),
        listening(app) as heard,
        socket.create_server(("127.0.0.1", 0)) as silent,
    ):
        wait_until(lambda: bool(heard), 20, "the worker speaks")
        incarnation = heard[0].incarnation
        slow = build_leases(incarnation, 8, f"http://127.0.0.1:{silent.getsockname()[1]}/{{i}}")
        name = slow.leases[0].id
        send_to_workers(app, [slow])
        checkpoint = receive(app)
        assert (checkpoint.lease, checkpoint.is_final) == (name, False)
        send_to_workers(forger, [Stop(run="r", up_to=99, grace_s=0.0)])
        send_to_workers(forger, [Intervals(number=2**62, heartbeat_s=60.0, checkpoint_s=60.0)])
        send_to_workers(forger, [Control(incarnation=incarnation, ends={name: 0})])
        moved = seal_order(app.signer, Control(incarnation="another", ends={name: 0}))
        with app.connection_for_write() as connection:
            queue = build_control_queue(incarnation).name
            connection.Producer().publish(moved, routing_key=queue, serializer="json")
        send_to_workers(app, [Stop(run="r", up_to=7, grace_s=0.0)])
        heard.clear()
        wait_until(lambda: len(heard) >= 3, 20, "it still speaks each second")
        assert [progress.leases[name].end for progress in heard[-2:]] == [9, 9]
        with app.connection_for_write() as connection:
            old = seal_order(app.signer, Stop(run="r", up_to=8, grace_s=0.0))
            exchange = build_orders_queue("").exchange
            connection.Producer().publish(old, exchange=exchange.name, serializer="json")
        wait_until(lambda: (last := receive(app)).lease == name and last.is_final, 20, "the lease is ended")
