from collections.abc import Iterator
from typing import Any

import pytest
from kombu.entity import Queue
from tests.kit.brokers.message_key import MESSAGE_KEY
from tests.kit.outcomes import make_counts

from oku_core.broker.celery_app import (
    CHECKPOINT_TASK,
    CHECKPOINTS_QUEUE,
    LEASE_TASK,
    App,
    build_app,
    build_control_queue,
    build_lease_queue,
    build_orders_queue,
)
from oku_core.broker.sending import send_checkpoints, send_to_workers
from oku_core.messaging.checkpoint import Checkpoint, CheckpointBatch, LeaseFigures, Part
from oku_core.messaging.codec import decode_checkpoints, decode_leases, decode_order
from oku_core.messaging.lease import Lease, LeaseBatch
from oku_core.messaging.order import Control, Intervals, Stop
from oku_core.spec.parser import Source, parse_spec

SPEC = parse_spec(
    Source(
        None, {"url": "http://h/{i}", "header": ["A: b"], "workers": 2, "name": "naïve", "requests": 10**15}
    )
)
LEASES = LeaseBatch(
    run="r1",
    incarnation="b1",
    leases=[Lease(id="l1", run="r1", ranges=[(0, 5), (7, 10**15)], limit=400)],
    start_by=1.7e9,
    spec=SPEC,
)
CHECKPOINTS = CheckpointBatch(
    worker="w1",
    incarnation="b1",
    run="r1",
    taken=3,
    rate_rps=2.5,
    checkpoints=[
        Checkpoint(
            lease="l1",
            sequence=1,
            done=3,
            end=10,
            in_flight=[1],
            parts=[Part(outcomes=make_counts(2), statuses={"200": 2}, per_second={7: make_counts(2)})],
            figures=LeaseFigures(started_at=1.7e9, ended_at=1.7e9),
        )
    ],
)
CONTROL = Control(incarnation="b1", confirmed={"l1": 1}, limits={"l1": 800}, ends={"l2": 0})


@pytest.fixture
def app() -> Iterator[App]:
    """An application whose broker is the memory of this process."""
    app = build_app("memory://", MESSAGE_KEY)
    yield app
    for queue in (*app.conf.task_queues, *map(build_lease_queue, "xy"), *map(build_control_queue, "xy")):
        take_all(app, queue)


def listen(app: App, queue: Queue) -> Queue:
    """Declare the queue of a process, as that process does."""
    with app.connection_for_read() as connection:
        queue(connection.default_channel).declare()
    return queue


def take_all(app: App, queue: Queue) -> list[Any]:
    """Fetch all messages of a queue."""
    messages = []
    with app.connection_for_read() as connection:
        bound = queue(connection.default_channel)
        bound.declare()
        while (message := bound.get(no_ack=True, accept=["json"])) is not None:
            messages.append(message)
    return messages


@pytest.fixture
def queues(app: App) -> dict[str, Queue]:
    """The queues that the processes x and y listen to, and the one of the coordinator."""
    return {
        "leases of x": listen(app, build_lease_queue("x")),
        "leases of y": listen(app, build_lease_queue("y")),
        "control of x": listen(app, build_control_queue("x")),
        "control of y": listen(app, build_control_queue("y")),
        "orders to x": listen(app, build_orders_queue("x")),
        "orders to y": listen(app, build_orders_queue("y")),
        "checkpoints": listen(app, app.amqp.queues[CHECKPOINTS_QUEUE]),
    }


def read(app: App, queues: dict[str, Queue]) -> dict[str, list[Any]]:
    """The messages of the queues that have any."""
    return {name: messages for name, queue in queues.items() if (messages := take_all(app, queue))}


def test_messages_go_through_their_queues_unchanged(app: App) -> None:
    """The task of the worker is called with the JSON that the coordinator sends."""
    queue = listen(app, build_lease_queue("b1"))
    send_to_workers(app, [LEASES])
    [message] = take_all(app, queue)
    (argument,), *_ = message.payload
    assert message.content_type == "application/json"
    assert message.headers["task"] == LEASE_TASK
    assert decode_leases(app.signer, argument) == LEASES
    # Checkpoints go through their queue unchanged. The coordinator reads what the worker sends.
    send_checkpoints(app, CHECKPOINTS)
    [message] = take_all(app, app.amqp.queues[CHECKPOINTS_QUEUE])
    assert message.content_type == "application/json"
    assert message.headers["task"] == CHECKPOINT_TASK
    assert decode_checkpoints(app.signer, message.body) == CHECKPOINTS
    # Control goes through the queue of its worker unchanged. It is no task: the worker reads it as it is.
    queue = listen(app, build_control_queue("b1"))
    send_to_workers(app, [CONTROL])
    [message] = take_all(app, queue)
    assert message.content_type == "application/json"
    assert decode_order(app.signer, message.body) == CONTROL


@pytest.mark.parametrize(
    "order", [Stop(run="r1", up_to=7, grace_s=2.5), Intervals(number=3, heartbeat_s=1.0, checkpoint_s=5.0)]
)
def test_an_order_goes_to_all_workers_and_nowhere_else(
    app: App, queues: dict[str, Queue], order: Stop | Intervals
) -> None:
    """Each has a copy of its own."""
    send_to_workers(app, [order])
    sent = read(app, queues)
    assert set(sent) == {"orders to x", "orders to y"}
    assert [decode_order(app.signer, message.body) for [message] in sent.values()] == [order, order]


def test_what_is_for_one_process_goes_to_no_other_queue(app: App, queues: dict[str, Queue]) -> None:
    """Leases and control are for the process that they name, and checkpoints for the coordinator."""
    send_to_workers(app, [LeaseBatch(run="r1", incarnation="x", leases=LEASES.leases, start_by=1.7e9)])
    assert set(read(app, queues)) == {"leases of x"}
    send_to_workers(app, [Control(incarnation="y")])
    assert set(read(app, queues)) == {"control of y"}
    send_checkpoints(app, CHECKPOINTS)
    assert set(read(app, queues)) == {"checkpoints"}
