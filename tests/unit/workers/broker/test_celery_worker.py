from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgspec
import pytest
from tests.kit.brokers.message_key import MESSAGE_KEY

from oku_core.broker.celery_app import PROGRESS_EVENT, build_app
from oku_core.messaging.codec import decode_progress
from oku_core.messaging.progress import Progress
from oku_workers.broker import celery_worker
from oku_workers.broker.celery_worker import CeleryWorkerTransport
from oku_workers.settings import WorkerIdentity

WORKER = WorkerIdentity("w1", "b1")


class ChannelError(Exception):
    """An empty queue, as Redis has it."""


class FakeBroker:
    """Application, connection, channel and dispatcher in one."""

    channel_errors = (ChannelError,)

    def __init__(self, *_: object) -> None:
        app = build_app("redis://host", MESSAGE_KEY)
        self.conf, self.signer, self.connection_for_read = app.conf, app.signer, app.connection_for_read
        self.events = self
        self.default_channel = self
        self.sent: list[tuple[str, Any]] = []
        self.waiting: dict[str, int] = {}
        self.asked = ""

    @property
    def message_count(self) -> int:
        """How many messages wait; on Redis a queue without any does not exist."""
        if self.asked not in self.waiting:
            raise ChannelError
        return self.waiting[self.asked]

    def connection_for_write(
        self, *, transport_options: dict[str, Any]
    ) -> AbstractContextManager["FakeBroker"]:
        """As Celery."""
        assert transport_options["socket_timeout"] < self.conf.broker_transport_options["socket_timeout"]
        return nullcontext(self)

    def Dispatcher(self, connection: object, *, buffer_while_offline: bool) -> "FakeBroker":  # noqa: N802  # Celery's
        """As Celery."""
        assert connection is self
        assert not buffer_while_offline
        return self

    def send(self, event: str, *, progress: Any) -> None:
        """As Celery."""
        self.sent.append((event, progress))

    def queue_declare(self, queue: str, *, passive: bool) -> "FakeBroker":
        """As kombu."""
        assert passive
        self.asked = queue
        return self


def test_progress_goes_out_as_an_event_and_what_waits_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a connection that does not wait long; messages for other processes are not counted."""
    broker, rejected = FakeBroker(), list[Exception]()
    monkeypatch.setattr(celery_worker, "build_worker_app", lambda *_: broker)
    transport = CeleryWorkerTransport("redis://host", MESSAGE_KEY, WORKER, rejected.append)
    with transport.open_progress_channel() as channel:
        channel.send(Progress(worker="w1", incarnation="b1", at=1.7e9))
        [(event, sealed)] = broker.sent
        progress = decode_progress(broker.signer, msgspec.json.encode({"progress": sealed}))
        assert (event, progress.worker) == (PROGRESS_EVENT, "w1")
        for waiting, count in (
            ({}, 0),
            ({"leases.b1": 0}, 0),
            ({"leases.b1": 2, "control.b1": 1}, 3),
            ({"leases.b2": 5, "control.b2": 5}, 0),
        ):
            broker.waiting = waiting
            assert channel.count_waiting() == count
