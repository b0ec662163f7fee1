from typing import TYPE_CHECKING

import pytest
from tests.kit.brokers.message_key import MESSAGE_KEY

from oku_core.broker.celery_app import (
    CHECKPOINTS_QUEUE,
    App,
    build_app,
    build_control_queue,
    build_lease_queue,
    build_orders_queue,
    build_worker_app,
)
from oku_core.broker.transport import (
    build_checkpoints_transport_options,
    build_heartbeat_transport_options,
    find_call_s,
)
from oku_core.errors import UserError

if TYPE_CHECKING:
    from kombu.entity import Queue

REDIS_URLS = ["redis://host:6379/0", "rediss://host/0", "redis+socket:///run/valkey.sock"]
AMQP_URLS = ["amqp://host//", "amqps://host//"]


@pytest.fixture
def app() -> App:
    """An application whose broker is the memory of this process."""
    return build_app("memory://", MESSAGE_KEY)


def test_a_queue_of_one_process_is_named_for_it_and_expires_with_it() -> None:
    """The coordinator sends by its name alone, and a process that is gone leaves nothing in the broker."""
    cases: list[tuple[Queue, str]] = [
        (build_lease_queue("b1"), "leases.b1"),
        (build_control_queue("b1"), "control.b1"),
    ]
    for queue, name in cases:
        assert (queue.name, queue.routing_key, queue.exchange.name) == (name, name, "oku.addressed")
        assert queue.as_dict()["expires"] == 60.0
    # Orders reach every process by a queue of its own.
    queues = [build_orders_queue(name) for name in ("a", "b")]
    assert [queue.name for queue in queues] == ["oku.orders.a", "oku.orders.b"]
    assert {(queue.exchange.name, queue.exchange.type) for queue in queues} == {("oku.orders", "fanout")}
    settings = [queue.as_dict() for queue in queues]
    assert {(each["auto_delete"], each["durable"], each["expires"]) for each in settings} == {
        (True, False, 60.0)
    }


@pytest.mark.parametrize(
    "url", ["", "localhost:6379", "redis://", "pyamqp://host//", "kafka://host", "redis:/\n/host"]
)
def test_an_unsupported_broker_is_refused(url: str) -> None:
    """The error says in one line which URLs are supported."""
    with pytest.raises(UserError) as caught:
        build_app(url, MESSAGE_KEY)
    assert str(caught.value) == (
        "--broker-url: the URL must begin with one of redis, rediss, redis+socket, amqp, amqps, and ://"
    )


def test_a_worker_waits_for_messages_in_calls_of_a_known_length() -> None:
    """One that ends has to wait for the last of them."""
    for url in REDIS_URLS:
        app = build_worker_app(url, MESSAGE_KEY, lambda _: None)
        assert app.conf.broker_transport_options["polling_interval"] == find_call_s(app) <= 1.0
        assert "polling_interval" not in build_app(url, MESSAGE_KEY).conf.broker_transport_options
    # Rabbitmq keeps checkpoints on several nodes.
    for url in AMQP_URLS:
        app = build_app(url, MESSAGE_KEY)
        assert [queue.queue_arguments for queue in app.conf.task_queues] == [{"x-queue-type": "quorum"}]
        assert app.conf.broker_transport_options["confirm_publish"] is True
        for build in (build_checkpoints_transport_options, build_heartbeat_transport_options):
            assert build(app) == app.conf.broker_transport_options
    # Rabbitmq keeps the queues of a process on one node. What they carry is sent again anyway.
    assert build_lease_queue("b1").as_dict()["queue_arguments"] is None
    assert build_control_queue("b1").as_dict()["queue_arguments"] is None


def test_checkpoints_have_a_queue_that_is_bound_to_itself(app: App) -> None:
    """No other queue gets its messages, whichever way they are published; there is no other for all."""
    assert list(app.amqp.queues) == [CHECKPOINTS_QUEUE] == [app.conf.task_default_queue]
    bound = app.amqp.queues[CHECKPOINTS_QUEUE]
    assert (bound.exchange.name, bound.routing_key) == (CHECKPOINTS_QUEUE, CHECKPOINTS_QUEUE)
    # Applications do not share their brokers. Two applications in one process each keep their own.
    other = build_app("redis://elsewhere:6379/3", MESSAGE_KEY)
    assert app.conf.broker_url == "memory://"
    assert other.conf.broker_url == "redis://elsewhere:6379/3"
    # The broker carries json only. Nothing is ever pickled or unpickled.
    assert app.conf.accept_content == ["json"]
    assert (app.conf.task_serializer, app.conf.event_serializer) == ("json", "json")
    # A lease leaves the broker when its worker has it.
    assert not app.conf.task_acks_late
    assert not app.conf.worker_cancel_long_running_tasks_on_connection_loss
    # Celery takes no remote commands.
    assert app.conf.worker_enable_remote_control is False
