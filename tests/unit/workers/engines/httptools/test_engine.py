"""The races of the engine, with connections that the test makes and answers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from oku_core.messaging.lease import Lease
from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Engine, Spec
from oku_workers.engines.httptools import engine as engine_module
from oku_workers.engines.httptools.connection import Connection
from oku_workers.engines.httptools.engine import CONNECTING_AT_ONCE, MOST_FAILURES_AT_ONCE, HttptoolsEngine
from oku_workers.engines.httptools.origin import Origin
from oku_workers.executions.execution import CONNECT_ERROR, DISCONNECTED, OK, TIMEOUT, Execution
from oku_workers.executions.feed import Feed

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
LAST_ANSWER = ANSWER.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n")


class Transport:
    """One connection as its server sees it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.received: list[bytes] = []
        self.is_aborted = False

    def get_extra_info(self, name: str) -> object:
        """As if it spoke TLS, for there is no file to write to."""
        return self if name == "ssl_object" else None

    def write(self, data: bytes) -> None:
        """A request."""
        self.received.append(data)

    def get_write_buffer_size(self) -> int:
        """All of it is out."""
        return 0

    def abort(self) -> None:
        """End, soon."""
        if not self.is_aborted:
            self.is_aborted = True
            asyncio.get_running_loop().call_soon(self.connection.connection_lost, None)

    def is_closing(self) -> bool:
        """Whether it ends."""
        return self.is_aborted

    def answer(self, response: bytes = ANSWER) -> None:
        """A response."""
        self.connection.data_received(response)


class Bench:
    """An engine, and the servers that it asks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, spec: Spec) -> None:
        self.spec = spec
        self.feed = Feed()
        self.open: list[Transport] = []
        self.connecting = 0
        self.may_connect = asyncio.Event()
        self.may_connect.set()
        self.error: Exception | None = None
        monkeypatch.setattr(Origin, "connect", lambda _, connection: self.connect(connection))
        self.engine = HttptoolsEngine(spec, self.feed, Supervisor())
        self.engine.start()

    async def connect(self, connection: Connection) -> None:
        """Stands for `Origin.connect`."""
        self.connecting += 1
        try:
            await self.may_connect.wait()
        finally:
            self.connecting -= 1
        if self.error is not None:
            raise self.error
        transport: Any = Transport(connection)
        self.open.append(transport)
        connection.connection_made(transport)

    def add(self, start: int, stop: int) -> Execution:
        """Give the engine a lease."""
        lease = Lease(id=f"{start}", run="r1", start=start, stop=stop, start_by=0.0, spec=self.spec)
        execution = Execution(lease, asyncio.get_running_loop().create_future())
        self.feed.add(execution)
        return execution

    def list_sent(self) -> list[int]:
        """The indices that were sent, rising."""
        requests = (request for transport in self.open for request in transport.received)
        return sorted(int(request.split(b" ")[1][1:]) for request in requests)


async def settle() -> None:
    """Let everything happen that can happen without time going by."""
    for _ in range(10):
        await asyncio.sleep(0)


def build_spec(**changes: Any) -> Spec:
    """What to send, three at a time."""
    fields: dict[str, Any] = {"urls": ("http://host/{i}",), "concurrency": 3, "timeout_s": 3600.0}
    return Spec(engine=Engine.HTTPTOOLS, **(fields | changes))


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    """A bench that is swept at the end, whatever was done on it."""
    bench = Bench(monkeypatch, build_spec())
    yield bench
    await asyncio.wait_for(bench.engine.close(), 1)
    assert bench.connecting == 0
    assert all(transport.is_aborted for transport in bench.open)


async def test_it_keeps_the_window_full(bench: Bench) -> None:
    """Whoever is answered takes the next index, over the border of leases."""
    first, second = bench.add(0, 4), bench.add(4, 8)
    await settle()
    assert (bench.list_sent(), bench.engine.in_flight) == ([0, 1, 2], 3)
    for number in range(5):
        bench.open[number % 3].answer()
        assert bench.list_sent() == list(range(number + 4))
    await settle()
    assert first.finished.done()
    assert (second.in_flight, len(bench.open)) == (3, 3)


async def test_a_connection_that_was_the_last_makes_room(bench: Bench) -> None:
    """For another one."""
    execution = bench.add(0, 10)
    await settle()
    bench.open[0].answer(LAST_ANSWER)
    await settle()
    assert (bench.list_sent(), bench.engine.in_flight, len(bench.open)) == ([0, 1, 2, 3], 3, 4)
    assert (execution.outcomes[OK], bench.open[0].is_aborted) == (1, True)


@pytest.mark.parametrize("turns", range(6))
async def test_a_cut_at_any_turn_of_the_event_loop(bench: Bench, turns: int) -> None:
    """Before connections are begun, while they are made, and after: what was taken is given back."""
    execution = bench.add(0, 10)
    for _ in range(turns):
        await asyncio.sleep(0)
    taken = execution.next_index
    bench.feed.withdraw(execution)
    bench.engine.cut_off(execution)
    await settle()
    assert execution.unfinished == list(range(taken))
    assert (bench.engine.in_flight, execution.finished.done()) == (0, True)

    other = bench.add(10, 20)
    await settle()
    assert (other.in_flight, bench.engine.in_flight) == (3, 3)


@pytest.mark.parametrize("turns", range(6))
async def test_closing_at_any_turn_of_the_event_loop(monkeypatch: pytest.MonkeyPatch, turns: int) -> None:
    """Nobody waits for a connection that nobody makes any more."""
    bench = Bench(monkeypatch, build_spec())
    execution = bench.add(0, 10)
    for _ in range(turns):
        await asyncio.sleep(0)
    await asyncio.wait_for(bench.engine.close(), 1)
    assert sorted(execution.unfinished) == list(range(execution.next_index))
    assert (bench.engine.in_flight, bench.connecting) == (0, 0)
    assert all(transport.is_aborted for transport in bench.open)


async def test_a_cut_leaves_other_leases_alone(bench: Bench) -> None:
    """Also those on connections that had requests of this lease before."""
    first, second = bench.add(0, 4), bench.add(4, 9)
    await settle()
    bench.open[0].answer()
    bench.open[1].answer()
    assert bench.list_sent() == [0, 1, 2, 3, 4]

    bench.engine.cut_off(first)
    bench.engine.cut_off(first)
    await settle()

    assert first.unfinished == [2, 3]
    assert (second.unfinished, second.in_flight) == ([], 3)


async def test_an_answer_after_a_cut_is_none(bench: Bench) -> None:
    """The index has one end."""
    execution = bench.add(0, 3)
    await settle()
    bench.engine.cut_off(execution)
    bench.open[0].answer()
    await settle()
    assert (execution.unfinished, execution.outcomes[OK]) == ([0, 1, 2], 0)


async def test_connections_that_cannot_be_made(bench: Bench) -> None:
    """Each request has its outcome, and others get their turn meanwhile."""
    bench.error = ConnectionRefusedError(111, "refused")
    execution = bench.add(0, 500)
    await settle()
    assert 0 < execution.ended < 100
    await asyncio.wait_for(execution.finished, 5)
    assert execution.outcomes[CONNECT_ERROR] == 500


async def test_requests_that_cannot_be_sent_hold_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor do they fill the stack."""
    bench = Bench(monkeypatch, build_spec(urls=("http://h:port/{i}",)))
    execution = bench.add(0, 20 * MOST_FAILURES_AT_ONCE)
    await settle()
    assert 0 < execution.ended < execution.lease.stop
    await asyncio.wait_for(execution.finished, 5)
    assert execution.outcomes[CONNECT_ERROR] == execution.lease.stop
    await bench.engine.close()


async def test_connections_are_made_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that must wait for one are not taken."""
    bench = Bench(monkeypatch, build_spec(concurrency=1000))
    bench.may_connect.clear()
    execution = bench.add(0, 5000)
    await settle()
    assert bench.connecting == execution.in_flight == bench.engine.in_flight == CONNECTING_AT_ONCE
    bench.may_connect.set()
    await settle()
    assert bench.engine.in_flight == len(bench.open) == 1000
    await bench.engine.close()


async def test_idle_connections_wait_for_the_next_lease(bench: Bench) -> None:
    """And are used again."""
    bench.add(0, 3)
    await settle()
    for transport in bench.open:
        transport.answer()
    assert bench.engine.in_flight == 0
    execution = bench.add(3, 6)
    await settle()
    assert (execution.in_flight, len(bench.open)) == (3, 3)


async def test_an_idle_connection_that_ends_counts_as_nothing(bench: Bench) -> None:
    """Another one is made when it is needed."""
    bench.add(0, 3)
    await settle()
    for transport in bench.open:
        transport.answer()
    bench.open[0].connection.connection_lost(None)
    bench.open[1].connection.connection_lost(ConnectionResetError())
    execution = bench.add(3, 6)
    await settle()
    assert (execution.in_flight, execution.ended, len(bench.open)) == (3, 0, 5)


async def test_a_lost_connection_is_the_end_of_one_request(bench: Bench) -> None:
    """It is not sent again."""
    execution = bench.add(0, 4)
    await settle()
    bench.open[1].connection.connection_lost(None)
    await settle()
    assert execution.outcomes[DISCONNECTED] == 1
    assert bench.list_sent() == [0, 1, 2, 3]
    assert execution.in_flight == 3


async def test_each_url_has_connections_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two URLs of one place share theirs."""
    urls = ("http://a/{i}", "http://b/{i}", "http://a/{i}")
    bench = Bench(monkeypatch, build_spec(urls=urls, concurrency=1))
    execution = bench.add(0, 60)
    while not execution.finished.done():
        await settle()
        for transport in bench.open:
            if transport.connection.execution is not None:
                transport.answer()
    assert bench.list_sent() == list(range(60))
    hosts = [
        {request.split(b"Host: ")[1].split(b"\r\n")[0] for request in transport.received}
        for transport in bench.open
    ]
    assert sorted(hosts, key=str) == [{b"a"}, {b"b"}]
    await bench.engine.close()


async def test_what_takes_too_long_is_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    """While connecting and after it; idle connections go by a rule of their own."""
    bench = Bench(monkeypatch, build_spec(timeout_s=0.02))
    first = bench.add(0, 3)
    await asyncio.wait_for(first.finished, 1)
    assert first.outcomes[TIMEOUT] == 3
    bench.may_connect.clear()
    second = bench.add(3, 6)
    await asyncio.wait_for(second.finished, 1)
    await settle()
    assert (second.outcomes[TIMEOUT], bench.connecting) == (3, 0)

    bench.may_connect.set()
    bench.add(6, 7)
    await settle()
    idle = bench.open[-1]
    idle.answer()
    await asyncio.sleep(0.05)
    assert not idle.is_aborted
    monkeypatch.setattr(engine_module, "KEEPALIVE_S", 0.0)
    await asyncio.sleep(0.02)
    assert idle.is_aborted
    await bench.engine.close()


async def test_a_fault_of_our_own_does_not_leave_its_lease_hanging(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for the lease learns of it."""

    def fail(*_: object, **__: object) -> None:
        raise ArithmeticError("cannot count")

    execution = bench.add(0, 3)
    await settle()
    with monkeypatch.context() as patch:
        patch.setattr(Execution, "answer", fail)
        with pytest.raises(ArithmeticError):
            bench.open[0].answer()

    with pytest.raises(ArithmeticError):
        await asyncio.wait_for(execution.finished, 1)
