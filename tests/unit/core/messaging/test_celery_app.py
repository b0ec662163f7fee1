import socket
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from kombu import compression
from tests.kit.brokers.message_key import MESSAGE_KEY

from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.errors import UserError
from oku_core.messaging.celery_app import (
    _KEEP_IDLE,
    LEASE_TASK,
    LEASES_QUEUE,
    LONGEST_MESSAGE,
    REPORT_TASK,
    REPORTS_QUEUE,
    App,
    build_app,
    build_beat_transport_options,
    build_reports_transport_options,
    read_json_body,
    send_lease,
    send_message,
)
from oku_core.messaging.codec import decode_lease, decode_message
from oku_core.messaging.lease import Claim, Lease, Report
from oku_core.messaging.rejection import MalformedMessageError
from oku_core.spec.parser import Source, parse_spec

REDIS_URLS = ["redis://host:6379/0", "rediss://host/0", "redis+socket:///run/valkey.sock"]
AMQP_URLS = ["amqp://host//", "amqps://host//"]

SPEC = parse_spec(
    Source(
        None, {"url": "http://h/{i}", "header": ["A: b"], "workers": 2, "name": "naïve", "requests": 10**15}
    )
)
LEASE = Lease(id="l1", run="r1", start=0, stop=10**15, start_by=1.7e9, spec=SPEC)
CLAIM = Claim(lease="l1", execution="e1", worker="w1", incarnation="b1", at=1.7e9)
REPORT = Report(
    lease="l1",
    execution="e1",
    worker="w1",
    incarnation="b1",
    start=0,
    done=3,
    unfinished=[1],
    outcomes=[2, 0, 0, 0, 0, 0],
    statuses={"200": 2},
    latency=HistogramSnapshot(buckets=[5, 2], sum_us=10, min_us=5, max_us=5),
    started_at=1.7e9,
    ended_at=1.7e9,
)


@pytest.fixture
def app() -> Iterator[App]:
    """An application whose broker is the memory of this process."""
    app = build_app("memory://", MESSAGE_KEY)
    yield app
    with app.connection_for_write() as connection:
        for name in (LEASES_QUEUE, REPORTS_QUEUE):
            app.amqp.queues[name](connection).purge()


def take_all(app: App, queue: str) -> list[Any]:
    """All messages of a queue."""
    with app.connection_for_read() as connection:
        simple = connection.SimpleQueue(app.amqp.queues[queue])
        messages = [simple.get(block=False) for _ in range(simple.qsize())]
        simple.close()
    return messages


def test_a_lease_goes_through_its_queue_unchanged(app: App) -> None:
    """What the coordinator sends is what the task of the worker is called with, as JSON."""
    send_lease(app, LEASE)
    [message] = take_all(app, LEASES_QUEUE)
    (argument,), *_ = message.payload
    assert message.content_type == "application/json"
    assert message.headers["task"] == LEASE_TASK
    assert decode_lease(app.signer, argument) == LEASE


@pytest.mark.parametrize("sent", [CLAIM, REPORT])
def test_claims_and_reports_go_through_their_queue_unchanged(app: App, sent: Claim | Report) -> None:
    """What the worker sends is what the coordinator reads, each as what it is."""
    send_message(app, sent)
    [message] = take_all(app, REPORTS_QUEUE)
    assert message.content_type == "application/json"
    assert message.headers["task"] == REPORT_TASK
    assert decode_message(app.signer, message.body) == sent


def test_no_message_is_in_two_queues(app: App) -> None:
    """Leases are for workers only, reports for the coordinator only."""
    send_lease(app, LEASE)
    assert take_all(app, REPORTS_QUEUE) == []
    send_message(app, CLAIM)
    assert len(take_all(app, LEASES_QUEUE)) == 1
    assert len(take_all(app, REPORTS_QUEUE)) == 1


@pytest.mark.parametrize("queue", [LEASES_QUEUE, REPORTS_QUEUE])
def test_a_queue_is_bound_to_itself(app: App, queue: str) -> None:
    """No other queue gets what is published to it, whichever way that is done."""
    bound = app.amqp.queues[queue]
    assert (bound.exchange.name, bound.routing_key) == (queue, queue)


def test_the_broker_carries_json_only(app: App) -> None:
    """Nothing is ever unpickled, and nothing is pickled."""
    assert app.conf.accept_content == ["json"]
    assert (app.conf.task_serializer, app.conf.event_serializer) == ("json", "json")


def test_a_lease_stays_in_the_broker_until_it_is_reported(app: App) -> None:
    """A worker that dies leaves its message to others, and takes no more at once than it may hold."""
    assert app.conf.task_acks_late
    assert app.conf.task_reject_on_worker_lost
    assert app.conf.worker_prefetch_multiplier == 1
    assert not app.conf.worker_cancel_long_running_tasks_on_connection_loss


def test_applications_do_not_mix(app: App) -> None:
    """Two of them in one process keep their brokers."""
    other = build_app("redis://elsewhere:6379/3", MESSAGE_KEY)
    assert app.conf.broker_url == "memory://"
    assert other.conf.broker_url == "redis://elsewhere:6379/3"


@pytest.mark.parametrize(
    "url", ["", "localhost:6379", "redis://", "pyamqp://host//", "kafka://host", "redis:/\n/host"]
)
def test_a_broker_that_nobody_tried_is_refused(url: str) -> None:
    """The user is told in one line which URLs there are."""
    with pytest.raises(UserError) as caught:
        build_app(url, MESSAGE_KEY)
    assert str(caught.value) == (
        "--broker-url: it does not begin with one of redis, rediss, redis+socket, amqp, amqps and ://"
    )


@pytest.mark.parametrize("url", AMQP_URLS)
def test_rabbitmq_keeps_the_queues_on_several_nodes(url: str) -> None:
    """Both are quorum queues, and a message counts as sent when RabbitMQ confirms it."""
    app = build_app(url, MESSAGE_KEY)
    assert [queue.queue_arguments for queue in app.conf.task_queues] == [{"x-queue-type": "quorum"}] * 2
    assert app.conf.broker_transport_options["confirm_publish"] is True
    for build in (build_reports_transport_options, build_beat_transport_options):
        assert build(app) == app.conf.broker_transport_options


@pytest.mark.parametrize("url", REDIS_URLS)
def test_redis_gives_reports_back_soon_and_leases_late(url: str) -> None:
    """The short visibility timeout of reports has keys of its own, so that no lease is given out by it."""
    leases = build_app(url, MESSAGE_KEY).conf.broker_transport_options
    reports = build_reports_transport_options(build_app(url, MESSAGE_KEY))
    assert [queue.queue_arguments for queue in build_app(url, MESSAGE_KEY).conf.task_queues] == [None, None]
    assert reports["visibility_timeout"] < 60
    assert leases["visibility_timeout"] > 3600
    for key in ("unacked_key", "unacked_index_key", "unacked_mutex_key"):
        assert reports[key] not in {None, leases.get(key), "unacked", "unacked_index", "unacked_mutex"}


@pytest.mark.parametrize("url", REDIS_URLS)
def test_no_call_to_redis_waits_for_ever(url: str) -> None:
    """A connection that is dead but not closed is given up, where silence counts as death before that."""
    app = build_app(url, MESSAGE_KEY)
    options = app.conf.broker_transport_options
    assert 0 < options["socket_connect_timeout"] <= options["socket_timeout"] <= 60
    assert 0 < build_beat_transport_options(app)["socket_timeout"] < 5


@pytest.mark.parametrize("url", [*REDIS_URLS, *AMQP_URLS])
def test_a_subscriber_is_not_connected_again_behind_our_back(url: str) -> None:
    """redis-py would wait on a connection that has subscribed to nothing."""
    app = build_app(url, MESSAGE_KEY)
    assert "retry_on_timeout" not in app.conf.broker_transport_options


@pytest.mark.parametrize("url", [*REDIS_URLS, *AMQP_URLS])
def test_the_kernel_asks_a_silent_peer_within_seconds(url: str) -> None:
    """Its own default is two hours."""
    options = build_app(url, MESSAGE_KEY).conf.broker_transport_options
    keepalive = options.get("socket_keepalive_options") or options["socket_settings"]
    assert keepalive[_KEEP_IDLE] + keepalive[socket.TCP_KEEPINTVL] * keepalive[socket.TCP_KEEPCNT] < 15


def test_celery_takes_no_command_of_its_own(app: App) -> None:
    """It would shut down, or consume another queue, for whoever reaches the broker."""
    assert app.conf.worker_enable_remote_control is False


@pytest.mark.parametrize("kind", ["application/x-gzip", "gzip", "zlib", "bzip2"])
def test_nothing_is_unpacked(app: App, kind: str) -> None:
    """A message of a megabyte would become one of a gigabyte before anybody has looked at it."""
    with pytest.raises(ValueError, match="compressed"):
        compression.decompress(zlib.compress(b"x"), kind)


class Envelope:
    """What kombu gives of a message."""

    def __init__(self, body: object, content_type: str = "application/json") -> None:
        self.body = body
        self.content_type = content_type


@pytest.mark.parametrize(
    ("envelope", "fault"),
    [
        (Envelope(b"x", "application/x-python-serialize"), "is of type 'application/x-python-serialize'"),
        (Envelope(b"x", "x" * 1000), "is of type 'x{39}$"),
        (Envelope(None), "has no body"),
        (Envelope({}), "has no body"),
        (Envelope(b"x" * (LONGEST_MESSAGE + 1)), "is longer than 32,000,000 bytes"),
    ],
)
def test_what_is_not_a_text_of_bounded_length_is_malformed(envelope: Envelope, fault: str) -> None:
    """It is not even decoded."""
    with pytest.raises(MalformedMessageError, match=fault):
        read_json_body(envelope)
