import pytest
from tests.kit.brokers.message_key import MESSAGE_KEY

from oku_core.errors import UserError
from oku_core.messaging.celery_app import (
    CHECKPOINTS_QUEUE,
    App,
    build_app,
    build_control_queue,
    build_lease_queue,
)
from oku_core.messaging.transport import (
    build_checkpoints_transport_options,
    build_heartbeat_transport_options,
)

REDIS_URLS = ["redis://host:6379/0", "rediss://host/0", "redis+socket:///run/valkey.sock"]
AMQP_URLS = ["amqp://host//", "amqps://host//"]


@pytest.fixture
def app() -> App:
    """An application whose broker is the memory of this process."""
    return build_app("memory://", MESSAGE_KEY)


def test_a_queue_is_bound_to_itself(app: App) -> None:
    """No other queue gets its messages, whichever way they are published."""
    [bound] = app.conf.task_queues
    assert (bound.name, bound.exchange.name, bound.routing_key) == (CHECKPOINTS_QUEUE,) * 3


def test_the_queues_of_a_process_are_its_own_and_expire_with_it() -> None:
    """They share an exchange, because exchanges do not expire."""
    queues = [
        build(incarnation) for build in (build_lease_queue, build_control_queue) for incarnation in "ab"
    ]
    assert [queue.name for queue in queues] == ["leases.a", "leases.b", "control.a", "control.b"]
    assert [queue.routing_key for queue in queues] == [queue.name for queue in queues]
    assert {queue.exchange.name for queue in queues} == {"oku.addressed"}
    assert {queue.as_dict()["expires"] for queue in queues} == {60.0}


def test_the_broker_carries_json_only(app: App) -> None:
    """Nothing is ever pickled or unpickled."""
    assert app.conf.accept_content == ["json"]
    assert (app.conf.task_serializer, app.conf.event_serializer) == ("json", "json")


def test_a_lease_is_acknowledged_when_it_comes(app: App) -> None:
    """It is for one process, and means nothing to another."""
    assert not app.conf.task_acks_late
    assert not app.conf.worker_cancel_long_running_tasks_on_connection_loss


def test_applications_do_not_share_their_brokers(app: App) -> None:
    """Two applications in one process each keep their own."""
    other = build_app("redis://elsewhere:6379/3", MESSAGE_KEY)
    assert app.conf.broker_url == "memory://"
    assert other.conf.broker_url == "redis://elsewhere:6379/3"


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


@pytest.mark.parametrize("url", AMQP_URLS)
def test_rabbitmq_keeps_checkpoints_on_several_nodes(url: str) -> None:
    """Theirs is a quorum queue, and a message counts as sent once RabbitMQ confirms it."""
    app = build_app(url, MESSAGE_KEY)
    assert [queue.queue_arguments for queue in app.conf.task_queues] == [{"x-queue-type": "quorum"}]
    assert app.conf.broker_transport_options["confirm_publish"] is True
    for build in (build_checkpoints_transport_options, build_heartbeat_transport_options):
        assert build(app) == app.conf.broker_transport_options


def test_rabbitmq_keeps_the_queues_of_a_process_on_one_node() -> None:
    """What they carry is sent again anyway, and quorum queues cannot expire cheaply by the thousand."""
    assert build_lease_queue("a").as_dict()["queue_arguments"] is None


def test_celery_takes_no_remote_commands(app: App) -> None:
    """Otherwise anyone who can reach the broker could stop a worker or redirect it to another queue."""
    assert app.conf.worker_enable_remote_control is False
