"""Connections are used again while the server allows it, and made to each address of a name in turn."""

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest
import uvloop
from tests.kit.servers.black_hole import black_hole
from tests.kit.servers.hostile_server import Exchange, HostileServer, Serve, always, build_response
from tests.kit.workers.engine_worker import EngineWorker, count

from oku_core.accounting.measured_time import Time
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.url import Url

OK = build_response(body=b"hi")


def build_spec(engine: Engine, url: str, **changes: Any) -> Spec:
    """What to send."""
    fields: dict[str, Any] = {"concurrency": 1, "timeout_s": 5.0}
    return Spec(urls=(Url(f"{url}/{{i}}"),), engine=engine, **(fields | changes))


async def let_arrive(worker: EngineWorker) -> None:
    """Let the server send what it is about to, and the worker read what has been sent."""
    for _ in range(3):
        await asyncio.sleep(0.001)  # turns of this loop, which is the server's
        worker.build_progress()  # one of the worker's


@pytest.mark.parametrize(
    "surplus", [OK, b"surplus", build_response("408 Request Timeout")], ids=["answer", "nonsense", "408"]
)
async def test_what_comes_on_an_idle_connection_answers_nothing(
    engine: Engine, worker: EngineWorker, serve: Serve, surplus: bytes
) -> None:
    """A server that sends more than it was asked for loses the connection; the next request is answered."""
    is_idle = asyncio.Event()

    async def script(exchange: Exchange) -> None:
        index = exchange.request.target[1:].encode()
        await exchange.send(build_response("200 OK", index))
        if server.received == 1:
            await is_idle.wait()
            await exchange.send(surplus)

    server = await serve(script)
    spec = build_spec(engine, server.url)

    first = await worker.run(spec, 1, start=7)
    is_idle.set()
    await let_arrive(worker)
    second = await worker.run(spec, 1, start=1234)

    assert (count(first), first.part.bytes_received) == ({"ok": 1}, 1)
    assert (count(second), second.part.bytes_received) == ({"ok": 1}, 4)
    assert server.targets == ["/7", "/1234"]
    assert server.connections == 2


@pytest.mark.parametrize("end", ["close", "reset"])
async def test_a_server_that_ends_idle_connections(
    engine: Engine, worker: EngineWorker, serve: Serve, end: str
) -> None:
    """They are made anew for the next requests, and the account shows nothing of it."""
    idle: list[Exchange] = []

    async def script(exchange: Exchange) -> None:
        await exchange.send(OK)
        idle.append(exchange)

    server = await serve(script)
    spec = build_spec(engine, server.url, concurrency=10)
    for turn in range(5):
        account = await worker.run(spec, 100, start=100 * turn)
        assert count(account) == {"ok": 100}
        for exchange in idle:
            if end == "close":
                exchange.hang_up()
            else:
                exchange.reset()
        idle.clear()
        await let_arrive(worker)

    assert sorted(server.targets) == sorted(f"/{index}" for index in range(500))
    assert 30 <= server.connections <= 50


@pytest.mark.parametrize(
    "response",
    [
        build_response("200 OK", b"hi", "Connection: close"),
        build_response("200 OK", b"hi", "connection:  Keep-Alive, CLOSE"),
        OK.replace(b"HTTP/1.1", b"HTTP/1.0"),
    ],
    ids=["close", "close in a list", "HTTP/1.0"],
)
@pytest.mark.parametrize("then", ["close", "keep"])
async def test_a_connection_for_each_request(
    engine: Engine, worker: EngineWorker, serve: Serve, response: bytes, then: str
) -> None:
    """The server says that a response is the last, whether or not it hangs up."""
    server = await serve(always(response, then=then))

    account = await worker.run(build_spec(engine, server.url, concurrency=10), 300)

    assert count(account) == {"ok": 300}
    assert sorted(server.targets) == sorted(f"/{index}" for index in range(300))
    assert server.connections == 300


@pytest.mark.parametrize("then", ["close", "keep"])
async def test_a_spec_that_asks_to_close(
    engine: Engine, worker: EngineWorker, serve: Serve, then: str
) -> None:
    """Each connection is used once, even if the server does not say that it closes, or does not close."""
    server = await serve(always(OK, then=then))

    account = await worker.run(
        build_spec(engine, server.url, concurrency=10, headers=(Header("Connection: close"),)), 300
    )

    assert count(account) == {"ok": 300}
    assert server.connections == 300


async def test_an_old_server_that_keeps_connections(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """HTTP/1.0 can say so, and its connections are used again."""
    response = build_response("200 OK", b"hi", "Connection: keep-alive").replace(b"/1.1", b"/1.0")
    server = await serve(always(response))

    account = await worker.run(build_spec(engine, server.url, concurrency=10), 300)

    assert count(account) == {"ok": 300}
    assert server.connections == 10


async def test_a_last_response_after_some(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """Many servers allow only so many requests on a connection."""

    async def script(exchange: Exchange) -> None:
        if exchange.turn < 9:
            await exchange.send(OK)
        else:
            await exchange.send(build_response("200 OK", b"hi", "Connection: close"))
            exchange.hang_up()

    server = await serve(script)

    account = await worker.run(build_spec(engine, server.url, concurrency=10), 1000)

    assert count(account) == {"ok": 1000}
    assert 100 <= server.connections <= 110
    assert sorted(server.targets) == sorted(f"/{index}" for index in range(1000))


async def test_a_server_that_takes_few_connections(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """Those that it hangs up on are `disconnected`, all others are answered."""

    def greet(transport: asyncio.Transport) -> None:
        if server.open_connections > 10:
            transport.close()

    async def script(exchange: Exchange) -> None:
        await asyncio.sleep(0.005)
        await exchange.send(OK)

    server: HostileServer = await serve(script, greet=greet)

    account = await worker.run(build_spec(engine, server.url, concurrency=50), 2000)

    assert set(count(account)) == {"ok", "disconnected"}
    assert sum(account.outcomes) == 2000
    assert count(account)["ok"] >= 10
    assert len(set(server.targets)) == server.received


async def test_the_last_version_of_the_internet_protocol(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """An IPv6 address works as any other."""
    server = await serve(always(OK), host="::1")

    account = await worker.run(build_spec(engine, server.url), 20)

    assert count(account) == {"ok": 20}
    assert {request.header("host")[0] for request in server.requests} == {f"[::1]:{server.port}"}


async def test_an_address_to_send_from(engine: Engine, serve: Serve) -> None:
    """Every connection comes from it; if the machine does not have it, nothing is sent."""
    peers: set[str] = set()
    server = await serve(
        always(OK), greet=lambda transport: peers.add(transport.get_extra_info("peername")[0])
    )
    for address, outcome in (("127.0.0.77", "ok"), ("192.0.2.1", "connect_error")):
        worker = EngineWorker(address)
        account = await worker.run(build_spec(engine, server.url, concurrency=5), 50)
        await asyncio.to_thread(worker.close)
        assert count(account) == {outcome: 50}

    assert peers == {"127.0.0.77"}
    assert server.received == 50


Resolve = Callable[..., None]


@pytest.fixture
def resolve(monkeypatch: pytest.MonkeyPatch) -> Resolve:
    """Lets every name have the addresses that are given."""

    def use(*addresses: str) -> None:
        async def getaddrinfo(_: object, host: str, port: int, **__: object) -> list[tuple[Any, ...]]:
            kind = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            named = addresses if host == "several.example" else (host,)
            return [(*kind, "", (address, port)) for address in named]

        monkeypatch.setattr(uvloop.Loop, "getaddrinfo", getaddrinfo)

    return use


async def serve_both(serve: Serve) -> tuple[HostileServer, HostileServer]:
    """Servers at two addresses with the same port."""
    while True:
        first = await serve(always(OK))
        try:
            return first, await serve(always(OK), host="127.0.0.2", port=first.port)
        except OSError:  # somebody has this port at that address
            continue


async def test_a_name_with_several_addresses(
    engine: Engine, worker: EngineWorker, serve: Serve, resolve: Resolve
) -> None:
    """They are used in turn, and each request goes to one of them."""
    first, second = await serve_both(serve)
    resolve("127.0.0.1", "127.0.0.2")

    account = await worker.run(
        build_spec(engine, f"http://several.example:{first.port}", concurrency=10), 400
    )

    assert count(account) == {"ok": 400}
    assert sorted(first.targets + second.targets) == sorted(f"/{index}" for index in range(400))
    assert min(first.connections, second.connections) >= 3
    assert {r.header("host")[0] for r in first.requests} == {f"several.example:{first.port}"}


async def test_an_address_where_nobody_listens(
    engine: Engine, worker: EngineWorker, serve: Serve, resolve: Resolve
) -> None:
    """It is skipped; the request is sent to one of the others, once."""
    server = await serve(always(OK))
    resolve("127.0.0.2", "127.0.0.3", "127.0.0.1")

    account = await worker.run(build_spec(engine, f"http://several.example:{server.port}", concurrency=4), 40)

    assert count(account) == {"ok": 40}
    assert sorted(server.targets) == sorted(f"/{index}" for index in range(40))


async def test_addresses_where_nobody_listens(
    engine: Engine, worker: EngineWorker, serve: Serve, resolve: Resolve
) -> None:
    """Only if all of them refuse is it a `connect_error`."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        port = holder.getsockname()[1]
        resolve("127.0.0.1", "127.0.0.2")
        spec = build_spec(engine, f"http://several.example:{port}", concurrency=4)
        assert count(await worker.run(spec, 40)) == {"connect_error": 40}
        server = await serve(always(OK), host="127.0.0.2", port=port)

        assert count(await worker.run(spec, 40)) == {"ok": 40}

    assert server.received == 40


async def test_names_that_are_looked_up_at_once(
    engine: Engine, worker: EngineWorker, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name is looked up once for all connections, and not again for each lease."""
    asked: list[str] = []
    server = await serve(always(OK))

    async def getaddrinfo(_: object, host: str, port: int, **__: object) -> list[tuple[Any, ...]]:
        if host == "name.example":
            asked.append(host)
            await asyncio.sleep(0.05)
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", port))]

    monkeypatch.setattr(uvloop.Loop, "getaddrinfo", getaddrinfo)
    spec = build_spec(engine, f"http://name.example:{server.port}", concurrency=50)

    for turn in range(3):
        assert count(await worker.run(spec, 100, start=100 * turn)) == {"ok": 100}

    assert asked == ["name.example"]


async def test_an_address_that_is_a_black_hole(
    engine: Engine, worker: EngineWorker, serve: Serve, resolve: Resolve
) -> None:
    """Every request is answered by the others; the few that met it were late by a fraction of a second."""

    async def script(exchange: Exchange) -> None:
        await exchange.send(build_response("200 OK", b"hi", "Connection: close"))
        exchange.hang_up()

    server = await serve(script)
    with black_hole("127.0.0.2", server.port):
        resolve("127.0.0.2", "127.0.0.1")
        spec = build_spec(engine, f"http://several.example:{server.port}", concurrency=4, timeout_s=10.0)
        account = await worker.run(spec, 200)

    assert count(account) == {"ok": 200}
    assert server.received == 200
    # The system tries again after a second: whoever waits for the black hole takes as long.
    assert 200_000 < account.part.histogram(Time.LATENCY).max_us < 900_000
    assert (
        account.part.histogram(Time.LATENCY).sum_us
        < 12 * account.part.histogram(Time.LATENCY).max_us + 200 * 20_000
    )


@pytest.mark.parametrize("fault", ["fails", "hangs"])
async def test_a_lookup_that_is_of_no_use(
    engine: Engine, worker: EngineWorker, serve: Serve, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Requests go on with the addresses that are known; the lookup is repeated beside them."""
    monkeypatch.setattr("oku_core.http_client.addresses.LOOKED_UP_FOR_S", 0.0)
    monkeypatch.setattr("oku_core.http_client.addresses.LOOKED_UP_AGAIN_S", 0.0)
    lookups: list[str] = []

    async def getaddrinfo(_: object, host: str, port: int, **__: object) -> list[tuple[Any, ...]]:
        address = host
        if host == "name.example":
            lookups.append(host)
            if 1 < len(lookups) < 5:
                if fault == "hangs":
                    await asyncio.sleep(0.5)
                raise socket.gaierror(-3, "Temporary failure in name resolution")
            address = "127.0.0.1" if len(lookups) == 1 else "127.0.0.2"
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port))]

    monkeypatch.setattr(uvloop.Loop, "getaddrinfo", getaddrinfo)

    async def script(exchange: Exchange) -> None:
        await exchange.send(build_response("200 OK", b"hi", "Connection: close"))
        exchange.hang_up()

    first = await serve(script)
    second = await serve(script, host="127.0.0.2", port=first.port)
    spec = build_spec(engine, f"http://name.example:{first.port}", concurrency=4, timeout_s=10.0)
    started_at = time.monotonic()
    done = 0
    while not second.received and time.monotonic() < started_at + 20:
        account = await worker.run(spec, 50, start=50 * done)
        done += 1
        assert count(account) == {"ok": 50}
        assert account.part.histogram(Time.LATENCY).max_us < 400_000

    assert second.received
    assert len(lookups) >= 5
    assert first.received + second.received == 50 * done


async def test_a_first_lookup_that_takes_long(
    engine: Engine, worker: EngineWorker, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests that it outlasts are timeouts; it goes on without them, and those after it are answered."""
    lookups: list[str] = []

    async def getaddrinfo(_: object, host: str, port: int, **__: object) -> list[tuple[Any, ...]]:
        if host == "name.example":
            lookups.append(host)
            await asyncio.sleep(0.8)
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", port))]

    monkeypatch.setattr(uvloop.Loop, "getaddrinfo", getaddrinfo)
    server = await serve(always(OK))
    spec = build_spec(engine, f"http://name.example:{server.port}", concurrency=2, timeout_s=0.5)

    account = await worker.run(spec, 50)

    assert count(account) == {"timeout": 2, "ok": 48}
    assert len(lookups) == 1
