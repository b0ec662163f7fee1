from collections.abc import Iterator
from typing import Any

import pytest
from kombu.entity import Queue
from tests.kit.brokers.message_key import MESSAGE_KEY

from oku_core.messaging.celery_app import (
    CHECKPOINT_TASK,
    CHECKPOINTS_QUEUE,
    LEASE_TASK,
    App,
    build_app,
    build_control_queue,
    build_lease_queue,
)
from oku_core.messaging.checkpoint import Checkpoint, CheckpointBatch
from oku_core.messaging.codec import decode_checkpoints, decode_leases, decode_order
from oku_core.messaging.lease import Lease, LeaseBatch
from oku_core.messaging.order import Control
from oku_core.messaging.sending import send_checkpoints, send_control, send_leases
from oku_core.spec.parser import Source, parse_spec

SPEC = parse_spec(
    Source(
        None, {"url": "http://h/{i}", "header": ["A: b"], "workers": 2, "name": "naïve", "requests": 10**15}
    )
)
LEASES = LeaseBatch(
    run="r1",
    incarnation="b1",
    leases=[Lease(id="l1", run="r1", ranges=[(0, 5), (7, 10**15)], limit=4)],
    start_by=1.7e9,
    spec=SPEC,
)
CHECKPOINTS = CheckpointBatch(
    worker="w1", incarnation="b1", run="r1", taken=3,
    checkpoints=[Checkpoint(lease="l1", sequence=1, done=3, end=10, in_flight=[0, 1, 2])],
)  # fmt: skip
CONTROL = Control(incarnation="b1", confirmed={"l1": 1}, limits={"l1": 9}, ends={"l2": 0})


@pytest.fixture
def app() -> Iterator[App]:
    """An application whose broker is the memory of this process."""
    app = build_app("memory://", MESSAGE_KEY)
    yield app
    with app.connection_for_write() as connection:
        for queue in list_queues(app):
            queue(connection).purge()


def list_queues(app: App) -> list[Queue]:
    """All queues of these tests."""
    return [app.amqp.queues[CHECKPOINTS_QUEUE], build_lease_queue("b1"), build_control_queue("b1")]


def take_all(app: App, queue: Queue) -> list[Any]:
    """Fetch all messages of a queue."""
    with app.connection_for_read() as connection:
        simple = connection.SimpleQueue(queue)
        messages = [simple.get(block=False) for _ in range(simple.qsize())]
        simple.close()
    return messages


def test_leases_go_to_the_queue_of_their_process_unchanged(app: App) -> None:
    """The task of the worker is called with the JSON that the coordinator sends."""
    send_leases(app, LEASES)
    [message] = take_all(app, build_lease_queue("b1"))
    (argument,), *_ = message.payload
    assert message.content_type == "application/json"
    assert message.headers["task"] == LEASE_TASK
    assert decode_leases(app.signer, argument) == LEASES


def test_checkpoints_go_through_their_queue_unchanged(app: App) -> None:
    """The coordinator reads what the worker sends."""
    send_checkpoints(app, CHECKPOINTS)
    [message] = take_all(app, app.amqp.queues[CHECKPOINTS_QUEUE])
    assert message.content_type == "application/json"
    assert message.headers["task"] == CHECKPOINT_TASK
    assert decode_checkpoints(app.signer, message.body) == CHECKPOINTS


def test_control_goes_to_the_queue_of_its_process_unchanged(app: App) -> None:
    """It is no task: the thread that hears orders reads it."""
    send_control(app, CONTROL)
    [message] = take_all(app, build_control_queue("b1"))
    assert decode_order(app.signer, message.body) == CONTROL


def test_no_message_is_in_two_queues(app: App) -> None:
    """Each is for one receiver."""
    counts = []
    send_leases(app, LEASES)
    counts.append([len(take_all(app, queue)) for queue in list_queues(app)])
    send_checkpoints(app, CHECKPOINTS)
    counts.append([len(take_all(app, queue)) for queue in list_queues(app)])
    send_control(app, CONTROL)
    counts.append([len(take_all(app, queue)) for queue in list_queues(app)])
    assert counts == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
