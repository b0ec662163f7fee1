"""What the coordinator sends to workers over a broker that is far away, or not there."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from tests.kit.brokers.broker import run_broker
from tests.kit.brokers.far_broker import run_far_broker
from tests.kit.brokers.message_key import MESSAGE_KEY
from tests.kit.coordinators.link_twin import LinkTwin
from tests.kit.runs.local_run import wait_until

from oku_coordinator.broker.celery_sender import CelerySender
from oku_core.broker.celery_app import build_app, build_control_queue, build_lease_queue
from oku_core.messaging.lease import Lease, LeaseBatch
from oku_core.messaging.order import Control, Stop
from oku_core.spec.spec import Spec

pytestmark = pytest.mark.alone

DELAY_S = 0.01
"""On each way: an answer takes 20 ms."""


def build_batch(number: int) -> LeaseBatch:
    """A lease for one of many workers."""
    lease = Lease(id=f"r.{number:09d}.a", run="r", ranges=[(number, number + 1)], limit=1)
    return LeaseBatch(
        run="r", incarnation=f"b{number}", leases=[lease], start_by=time.time() + 60, spec=Spec()
    )


@pytest.fixture
def near(tmp_path: Path) -> Iterator[str]:
    """The URL of a broker."""
    with run_broker(tmp_path) as url:
        yield url


@pytest.fixture
def client(near: str) -> redis.Redis:
    """Looks at the broker."""
    return redis.Redis(unix_socket_path=near.removeprefix("redis+socket://"))


def count_leases(client: redis.Redis, numbers: range) -> int:
    """How many of these workers have a lease in their queue."""
    return sum(bool(client.exists(build_lease_queue(f"b{number}").name)) for number in numbers)


def test_a_hundred_leases_go_to_a_broker_20_ms_away_together(near: str, client: redis.Redis) -> None:
    """Whoever sends them goes on at once. One after the other they would take 2 s at least."""
    with run_far_broker(Path(near.removeprefix("redis+socket://")), DELAY_S) as far:
        broker = CelerySender(build_app(far, MESSAGE_KEY), LinkTwin())
        broker.send([build_batch(number) for number in range(1000, 1064)])  # all connections are open now
        wait_until(lambda: count_leases(client, range(1000, 1064)) == 64, 20, "the connections are open")
        begun = time.monotonic()
        broker.send([build_batch(number) for number in range(100)])
        returned_s = time.monotonic() - begun
        wait_until(lambda: count_leases(client, range(100)) == 100, 20, "all leases are there")
        arrived_s = time.monotonic() - begun
        broker.end(5.0)
    assert returned_s < 0.1
    assert arrived_s < 1.0


def test_what_nobody_takes_vanishes(near: str, client: redis.Redis) -> None:
    """The queues of a worker that is dead have an end of their own, whoever puts into them last."""
    broker = CelerySender(build_app(near, MESSAGE_KEY), LinkTwin())
    broker.send([build_batch(1)])
    broker.send([Control(incarnation="b1", confirmed={"r.000000001.a": 1})])
    broker.end(10.0)
    for queue in (build_lease_queue("b1"), build_control_queue("b1")):
        assert client.llen(queue.name) == 1
        assert 50 < client.ttl(queue.name) <= 60
    assert [key for key in client.keys("_kombu*") if b"b1" in key] == []


def test_a_broker_that_was_started_again_gets_what_is_sent_next(tmp_path: Path) -> None:
    """The connections to the old one are replaced at their first use: nothing more is lost."""
    with run_broker(tmp_path) as url:
        broker = CelerySender(build_app(url, MESSAGE_KEY), LinkTwin())
        broker.send([build_batch(number) for number in range(32)])
        client = redis.Redis(unix_socket_path=url.removeprefix("redis+socket://"))
        wait_until(lambda: count_leases(client, range(32)) == 32, 20, "the connections are open")
    with run_broker(tmp_path) as url:
        broker.send([build_batch(number) for number in range(100, 132)])
        client = redis.Redis(unix_socket_path=url.removeprefix("redis+socket://"))
        wait_until(lambda: count_leases(client, range(100, 132)) == 32, 20, "all leases are there")
        broker.end(5.0)


def test_nothing_waits_for_a_broker_that_is_not_there() -> None:
    """What is sent meanwhile is dropped: when the broker is back there is newer news."""
    link = LinkTwin(is_connected=False)
    broker = CelerySender(build_app("redis://127.0.0.1:1", MESSAGE_KEY), link)
    assert broker.is_away
    begun = time.monotonic()
    broker.send([build_batch(number) for number in range(1000)])
    broker.send([Stop(run="r", up_to=1, grace_s=1.0)])
    assert time.monotonic() - begun < 1.0
    link.is_connected = True
    assert not broker.is_away
    broker.end(1.0)
