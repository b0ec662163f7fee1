from collections.abc import Iterator
from typing import Any

import pytest
from tests.kit.brokers.message_key import MESSAGE_KEY

from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.messaging.celery_app import LEASE_TASK, LEASES_QUEUE, REPORT_TASK, REPORTS_QUEUE, App, build_app
from oku_core.messaging.codec import decode_lease, decode_message
from oku_core.messaging.lease import Claim, Lease, Report
from oku_core.messaging.sending import send_lease, send_message
from oku_core.spec.parser import Source, parse_spec

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
    """Fetch all messages of a queue."""
    with app.connection_for_read() as connection:
        simple = connection.SimpleQueue(app.amqp.queues[queue])
        messages = [simple.get(block=False) for _ in range(simple.qsize())]
        simple.close()
    return messages


def test_a_lease_goes_through_its_queue_unchanged(app: App) -> None:
    """The task of the worker is called with the JSON that the coordinator sends."""
    send_lease(app, LEASE)
    [message] = take_all(app, LEASES_QUEUE)
    (argument,), *_ = message.payload
    assert message.content_type == "application/json"
    assert message.headers["task"] == LEASE_TASK
    assert decode_lease(app.signer, argument) == LEASE


@pytest.mark.parametrize("sent", [CLAIM, REPORT])
def test_claims_and_reports_go_through_their_queue_unchanged(app: App, sent: Claim | Report) -> None:
    """The coordinator reads what the worker sends, and each message keeps its type."""
    send_message(app, sent)
    [message] = take_all(app, REPORTS_QUEUE)
    assert message.content_type == "application/json"
    assert message.headers["task"] == REPORT_TASK
    assert decode_message(app.signer, message.body) == sent


def test_no_message_is_in_two_queues(app: App) -> None:
    """Leases are for workers only, and reports for the coordinator only."""
    send_lease(app, LEASE)
    assert take_all(app, REPORTS_QUEUE) == []
    send_message(app, CLAIM)
    assert len(take_all(app, LEASES_QUEUE)) == 1
    assert len(take_all(app, REPORTS_QUEUE)) == 1
