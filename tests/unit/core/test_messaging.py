import json
import socket
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from celery import Celery
from hypothesis import given
from hypothesis import strategies as st

from oku_core.errors import UserError
from oku_core.histogram import Latency
from oku_core.lease import Claim, Lease, Report
from oku_core.messaging import (
    _KEEP_IDLE,
    LEASE_TASK,
    LEASES_QUEUE,
    REPORT_TASK,
    REPORTS_QUEUE,
    MalformedMessageError,
    build_app,
    build_beat_transport_options,
    build_reports_transport_options,
    decode_lease,
    decode_message,
    decode_progress,
    send_lease,
    send_message,
)
from oku_core.progress import Progress
from oku_core.spec_parser import Source, parse_spec

REDIS_URLS = ["redis://host:6379/0", "rediss://host/0", "redis+socket:///run/valkey.sock"]
AMQP_URLS = ["amqp://host//", "amqps://host//"]

SPEC = parse_spec(
    Source(
        None, {"url": "http://h/{i}", "header": ["A: b"], "workers": 2, "name": "naïve", "requests": 10**15}
    )
)
LEASE = Lease(id="l1", run="r1", start=0, stop=10**15, start_by=1.7e9, spec=SPEC)
CLAIM = Claim(lease="l1", execution="e1", worker="w1", boot="b1", at=1.7e9)
REPORT = Report(
    lease="l1",
    execution="e1",
    worker="w1",
    boot="b1",
    start=0,
    done=3,
    unfinished=[1],
    outcomes=[2, 0, 0, 0, 0, 0],
    statuses={"200": 2},
    latency=Latency(buckets=[5, 2], sum_us=10, min_us=5, max_us=5),
    started_at=1.7e9,
    ended_at=1.7e9,
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@pytest.fixture
def app() -> Iterator[Celery]:
    """An application whose broker is the memory of this process."""
    app = build_app("memory://")
    yield app
    with app.connection_for_write() as connection:
        for name in (LEASES_QUEUE, REPORTS_QUEUE):
            app.amqp.queues[name](connection).purge()


def take_all(app: Celery, queue: str) -> list[Any]:
    """All messages of a queue."""
    with app.connection_for_read() as connection:
        simple = connection.SimpleQueue(app.amqp.queues[queue])
        messages = [simple.get(block=False) for _ in range(simple.qsize())]
        simple.close()
    return messages


def test_a_lease_goes_through_its_queue_unchanged(app: Celery) -> None:
    """What the coordinator sends is what the task of the worker is called with, as JSON."""
    send_lease(app, LEASE)
    [message] = take_all(app, LEASES_QUEUE)
    (argument,), *_ = message.payload
    assert message.content_type == "application/json"
    assert message.headers["task"] == LEASE_TASK
    assert decode_lease(argument) == LEASE


@pytest.mark.parametrize("sent", [CLAIM, REPORT])
def test_claims_and_reports_go_through_their_queue_unchanged(app: Celery, sent: Claim | Report) -> None:
    """What the worker sends is what the coordinator reads, each as what it is."""
    send_message(app, sent)
    [message] = take_all(app, REPORTS_QUEUE)
    assert message.content_type == "application/json"
    assert message.headers["task"] == REPORT_TASK
    assert decode_message(message.body) == sent


def test_no_message_is_in_two_queues(app: Celery) -> None:
    """Leases are for workers only, reports for the coordinator only."""
    send_lease(app, LEASE)
    assert take_all(app, REPORTS_QUEUE) == []
    send_message(app, CLAIM)
    assert len(take_all(app, LEASES_QUEUE)) == 1
    assert len(take_all(app, REPORTS_QUEUE)) == 1


@pytest.mark.parametrize("queue", [LEASES_QUEUE, REPORTS_QUEUE])
def test_a_queue_is_bound_to_itself(app: Celery, queue: str) -> None:
    """No other queue gets what is published to it, whichever way that is done."""
    bound = app.amqp.queues[queue]
    assert (bound.exchange.name, bound.routing_key) == (queue, queue)


def test_the_broker_carries_json_only(app: Celery) -> None:
    """Nothing is ever unpickled, and nothing is pickled."""
    assert app.conf.accept_content == ["json"]
    assert (app.conf.task_serializer, app.conf.event_serializer) == ("json", "json")


def test_a_lease_stays_in_the_broker_until_it_is_reported(app: Celery) -> None:
    """A worker that dies leaves its message to others, and takes no more at once than it may hold."""
    assert app.conf.task_acks_late
    assert app.conf.task_reject_on_worker_lost
    assert app.conf.worker_prefetch_multiplier == 1
    assert not app.conf.worker_cancel_long_running_tasks_on_connection_loss


def test_applications_do_not_mix(app: Celery) -> None:
    """Two of them in one process keep their brokers."""
    other = build_app("redis://elsewhere:6379/3")
    assert app.conf.broker_url == "memory://"
    assert other.conf.broker_url == "redis://elsewhere:6379/3"


@pytest.mark.parametrize(
    "url", ["", "localhost:6379", "redis://", "pyamqp://host//", "kafka://host", "redis:/\n/host"]
)
def test_a_broker_that_nobody_tried_is_refused(url: str) -> None:
    """The user is told in one line which URLs there are."""
    with pytest.raises(UserError) as caught:
        build_app(url)
    assert str(caught.value) == (
        "--broker-url: it does not begin with one of redis, rediss, redis+socket, amqp, amqps and ://"
    )


@pytest.mark.parametrize("url", AMQP_URLS)
def test_rabbitmq_keeps_the_queues_on_several_nodes(url: str) -> None:
    """Both are quorum queues, and a message counts as sent when RabbitMQ confirms it."""
    app = build_app(url)
    assert [queue.queue_arguments for queue in app.conf.task_queues] == [{"x-queue-type": "quorum"}] * 2
    assert app.conf.broker_transport_options["confirm_publish"] is True
    for build in (build_reports_transport_options, build_beat_transport_options):
        assert build(app) == app.conf.broker_transport_options


@pytest.mark.parametrize("url", REDIS_URLS)
def test_redis_gives_reports_back_soon_and_leases_late(url: str) -> None:
    """The short visibility timeout of reports has keys of its own, so that no lease is given out by it."""
    leases = build_app(url).conf.broker_transport_options
    reports = build_reports_transport_options(build_app(url))
    assert [queue.queue_arguments for queue in build_app(url).conf.task_queues] == [None, None]
    assert reports["visibility_timeout"] < 60
    assert leases["visibility_timeout"] > 3600
    for key in ("unacked_key", "unacked_index_key", "unacked_mutex_key"):
        assert reports[key] not in {None, leases.get(key), "unacked", "unacked_index", "unacked_mutex"}


@pytest.mark.parametrize("url", REDIS_URLS)
def test_no_call_to_redis_waits_for_ever(url: str) -> None:
    """A connection that is dead but not closed is given up, where silence counts as death before that."""
    app = build_app(url)
    options = app.conf.broker_transport_options
    assert 0 < options["socket_connect_timeout"] <= options["socket_timeout"] <= 60
    assert 0 < build_beat_transport_options(app)["socket_timeout"] < 5


@pytest.mark.parametrize("url", [*REDIS_URLS, *AMQP_URLS])
def test_a_subscriber_is_not_connected_again_behind_our_back(url: str) -> None:
    """redis-py would wait on a connection that has subscribed to nothing."""
    app = build_app(url)
    assert "retry_on_timeout" not in app.conf.broker_transport_options


@pytest.mark.parametrize("url", [*REDIS_URLS, *AMQP_URLS])
def test_the_kernel_asks_a_silent_peer_within_seconds(url: str) -> None:
    """Its own default is two hours."""
    options = build_app(url).conf.broker_transport_options
    keepalive = options.get("socket_keepalive_options") or options["socket_settings"]
    assert keepalive[_KEEP_IDLE] + keepalive[socket.TCP_KEEPINTVL] * keepalive[socket.TCP_KEEPCNT] < 15


@pytest.mark.parametrize(
    "body",
    [
        None,
        "text",
        {},
        [],
        [[]],
        [None, {}, {}],
        [[1, 2], {}, {}],
        [[msgspec.to_builtins(CLAIM), 1], {}, {}],
        ["x", {}, {}],
        [[{}], {}, {}],
        [[{"type": "lease"}], {}, {}],
        [[msgspec.to_builtins(CLAIM) | {"type": "report"}], {}, {}],
        [[msgspec.to_builtins(CLAIM) | {"at": "now"}], {}, {}],
        [[msgspec.to_builtins(CLAIM) | {"at": 10**400}], {}, {}],
        [[msgspec.to_builtins(REPORT) | {"done": True}], {}, {}],
        [[msgspec.to_builtins(REPORT) | {"done": 3.5}], {}, {}],
        [[msgspec.to_builtins(REPORT) | {"outcomes": None}], {}, {}],
    ],
)
def test_what_is_no_message_is_malformed(body: object) -> None:
    """Whatever stands in the queue of reports, the coordinator goes on."""
    with pytest.raises(MalformedMessageError, match=r"^[^\n]+$"):
        decode_message(json.dumps(body))


@given(JSON_VALUES)
def test_any_json_is_malformed_unless_it_is_ours(document: object) -> None:
    """Reading a message raises one exception only."""
    with pytest.raises(MalformedMessageError):
        decode_lease(document)
    for body in (document, [[document], {}, {}], {"progress": document}):
        for decode in (decode_message, decode_progress):
            with pytest.raises(MalformedMessageError):
                decode(json.dumps(body))


@pytest.mark.parametrize(
    "change",
    [{"id": 5}, {"start": "0"}, {"spec": None}, {"spec": {"colour": "red"}}, {"spec": {"engine": "steam"}}],
)
def test_a_lease_with_a_wrong_part_is_malformed(change: dict[str, object]) -> None:
    """A worker does not begin with what it does not understand, an unknown key of a spec included."""
    with pytest.raises(MalformedMessageError, match=r"^[^\n]+$"):
        decode_lease(msgspec.to_builtins(LEASE) | change)


def test_a_message_may_know_more_than_we_do() -> None:
    """A field that a newer worker adds is passed over."""
    claim = msgspec.to_builtins(CLAIM) | {"colour": "red"}
    assert decode_message(msgspec.json.encode([[claim], {}, {}])) == CLAIM


def test_progress_is_read_if_it_may_be_true() -> None:
    """A second of a worker passes; one with impossible figures is malformed."""
    progress = Progress(worker="w1", boot="b1", at=1.7e9, leases={"l1": [1, 0, 0, 0, 0, 0]})
    document = msgspec.to_builtins(progress)
    assert decode_progress(msgspec.json.encode({"progress": document, "type": "oku-progress"})) == progress
    with pytest.raises(MalformedMessageError, match=r"^the outcomes are no six counts$"):
        decode_progress(msgspec.json.encode({"progress": document | {"outcomes": [1]}}))
