"""A coordinator and workers of which one speaks another version of the protocol; all of it is signed."""

import time
from pathlib import Path
from typing import Any

import msgspec
from tests.kit.brokers.broker import run_broker
from tests.kit.brokers.message_key import MESSAGE_KEY
from tests.kit.coordinators.coordinator import run_coordinator
from tests.kit.runs.local_run import wait_until
from tests.kit.workers.heard_progress import find_incarnation
from tests.kit.workers.simulated_worker import SimulatedWorker
from tests.kit.workers.worker_process import run_worker

from oku_core.broker.celery_app import (
    CHECKPOINTS_QUEUE,
    LEASE_TASK,
    PROGRESS_EVENT,
    App,
    build_app,
    build_lease_queue,
)
from oku_core.messaging.codec import decode_checkpoints
from oku_core.messaging.progress import Progress
from oku_core.messaging.signing import PROTOCOL, MessageKind

SPEC: dict[str, Any] = {"requests": 300, "range-size": 100, "url": "http://127.0.0.1:9/{i}"}


def seal(app: App, kind: MessageKind, document: Any) -> Any:
    """A message of the next version of the protocol."""
    return msgspec.to_builtins(app.signer.seal(kind, msgspec.json.encode(document), PROTOCOL + 1))


def test_a_worker_refuses_leases_of_a_newer_coordinator(tmp_path: Path) -> None:
    """Its refusal names both versions, and the worker stays."""
    with run_broker(tmp_path) as url, run_worker(url) as worker:
        app = build_app(url, MESSAGE_KEY)
        incarnation = find_incarnation(app)
        leases = {"run": "r", "incarnation": incarnation, "leases": [{"id": "r.000000007.abcd", "wave": 3}]}
        document = seal(app, MessageKind.LEASE, leases)
        app.send_task(LEASE_TASK, args=[document], queue=build_lease_queue(incarnation))
        with app.connection_for_read() as connection, connection.SimpleQueue(CHECKPOINTS_QUEUE) as queue:
            message = queue.get(timeout=20)
            message.ack()
        batch = decode_checkpoints(app.signer, message.body)
        (checkpoint,) = batch.checkpoints
        assert (batch.worker, checkpoint.lease, checkpoint.done) == ("w", "r.000000007.abcd", 0)
        assert checkpoint.is_final
        assert f"speaks protocol {PROTOCOL + 1}, this worker {PROTOCOL}" in checkpoint.refusal
        assert worker.poll() is None


def test_a_worker_of_another_version_gets_nothing_and_is_reported(tmp_path: Path) -> None:
    """The run waits for a worker that understands, and says why."""
    with (
        run_broker(tmp_path) as url,
        run_coordinator(url, tmp_path / "data") as api,
        build_app(url, MESSAGE_KEY) as app,
    ):
        run = api.submit(**SPEC)
        document = msgspec.to_builtins(Progress(worker="newer", incarnation="b", at=time.time(), sequence=1))

        def is_told() -> bool:
            with app.connection_for_write() as connection:
                sealed = seal(app, MessageKind.PROGRESS, document | {"lane": 7})
                app.events.Dispatcher(connection).send(PROGRESS_EVENT, progress=sealed)
            time.sleep(0.2)
            notices = api.summary(run)["notices"]
            return any(f"newer (protocol {PROTOCOL + 1})" in notice for notice in notices)

        wait_until(is_told, 20, "the worker of another version is reported")
        assert api.summary(run)["state"] == "pending"
        with SimulatedWorker(url) as worker:
            worker.execute_next(3)
            summary = api.wait_for_state(run, "completed")
        assert (summary["accounted"], summary["resent_at_most"]) == (300, 0)
