"""What the engines send: each index once, as the spec says, even if connections end in between."""

import asyncio
import random
import resource
from typing import Any

import pytest
from tests.kit.servers.hostile_server import Exchange, HostileServer, Serve, always, build_response
from tests.kit.workers.engine_worker import EngineWorker, count

from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.request_content import Header, parse_headers
from oku_core.spec.values.template import read_body
from oku_core.spec.values.url import Url

OK = build_response(body=b"hi")
MIB = 1 << 20


def build_spec(engine: Engine, *urls: str, **changes: Any) -> Spec:
    """What to send."""
    return Spec(
        urls=tuple(map(Url, urls)), engine=engine, **({"concurrency": 8, "timeout_s": 10.0} | changes)
    )


async def test_each_index_is_sent_once(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """The server sees each index of the lease once, and no other."""
    server = await serve(always(OK))

    account = await worker.run(build_spec(engine, f"{server.url}/items/{{i}}"), 2000, start=10**9)

    assert count(account) == {"ok": 2000}
    assert sorted(server.targets) == [f"/items/{index}" for index in range(10**9, 10**9 + 2000)]


async def test_a_lease_of_one_index(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """One index is one request, at any concurrency."""
    server = await serve(always(OK))
    spec = build_spec(engine, f"{server.url}/{{i}}", concurrency=100)

    accounts = [await worker.run(spec, 1, start=index) for index in range(20)]

    assert [count(account) for account in accounts] == [{"ok": 1}] * 20
    assert server.targets == [f"/{index}" for index in range(20)]


async def test_several_urls_are_used_in_turn(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """Index `i` asks the URL `i` modulo how many there are, wherever the lease begins."""
    servers = [await serve(always(OK)) for _ in range(3)]
    spec = build_spec(engine, *(f"{server.url}/{{i}}" for server in servers))

    await worker.run(spec, 30, start=100)

    for turn, server in enumerate(servers):
        assert sorted(server.targets) == [f"/{i}" for i in range(100, 130) if i % 3 == turn]


async def test_the_request_line(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """Path and query are sent as they are written, with the index in them; what must be encoded is."""
    server = await serve(always(OK))
    spec = build_spec(
        engine,
        f"{server.url}",
        f"{server.url}/straße/{{i}}/%C3%A9/a+b?q=ü%20{{i}}&x=%2F&y[]=|",
        f"{server.url}/a/../%4{{i}}//?i={{i}}",
        concurrency=1,
    )

    await worker.run(spec, 3)

    assert server.targets == [
        "/",
        "/stra%C3%9Fe/1/%C3%A9/a+b?q=%C3%BC%201&x=%2F&y[]=%7C",
        "/a/../%42//?i=2",
    ]
    assert {request.method for request in server.requests} == {"GET"}
    assert [request.header("host") for request in server.requests] == [[server.url[7:]]] * 3


async def test_headers(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """Those of the spec are sent as written, repeated ones too, with the index put in."""
    server = await serve(always(OK))
    texts = ["X-Fixed: a", "X-Fixed: b", "X-Index: {i}", "X-Both: c", "X-Both: {i}-{i}", "X-Empty:"]

    await worker.run(build_spec(engine, server.url, headers=parse_headers(texts), concurrency=1), 2, start=5)

    for index, request in enumerate(server.requests, 5):
        assert request.header("x-fixed") == ["a", "b"]
        assert request.header("x-index") == [f"{index}"]
        assert request.header("x-both") == ["c", f"{index}-{index}"]
        assert request.header("x-empty") == [""]
        assert request.header("user-agent") == ["oku/0.1"]
        assert len(request.header("host")) == 1


@pytest.mark.parametrize("name", ["User-Agent", "user-agent"])
@pytest.mark.parametrize("value", ["mine", "mine {i}"])
async def test_another_user_agent(
    engine: Engine, worker: EngineWorker, serve: Serve, name: str, value: str
) -> None:
    """The name that the spec gives takes the place of Oku's, however the header is spelt."""
    server = await serve(always(OK))

    await worker.run(build_spec(engine, server.url, headers=(Header(f"{name}: {value}"),)), 1)

    assert server.requests[0].header("user-agent") == [value.replace("{i}", "0")]


async def test_bodies(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """A body is sent in UTF-8 with the index in it, and with its length."""
    server = await serve(always(OK))
    spec = build_spec(
        engine, server.url, method="POST", body="größe={i}", headers=(Header("Content-Type: x/y"),)
    )

    account = await worker.run(spec, 100)

    assert count(account) == {"ok": 100}
    assert {r.body.decode() for r in server.requests} == {f"größe={i}" for i in range(100)}
    assert {(r.method, *r.header("content-type")) for r in server.requests} == {("POST", "x/y")}


async def test_a_body_that_is_not_text(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """Any bytes of a file are sent as they are, and placeholders among them are filled in."""
    content = bytes(range(256)) + b"{i}%b"
    server = await serve(always(OK))
    spec = build_spec(engine, server.url, method="POST", body=read_body(content))

    account = await worker.run(spec, 3)

    assert count(account) == {"ok": 3}
    assert {r.body for r in server.requests} == {content.replace(b"{i}", b"%d" % i) for i in range(3)}


async def test_a_post_without_a_body(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """It says that its body is empty."""
    server = await serve(always(OK))

    await worker.run(build_spec(engine, server.url, method="POST"), 1)

    assert server.requests[0].header("content-length") == ["0"]


async def test_requests_that_cannot_be_written_down(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """Each ends as a `connect_error`, for nothing was sent, and others are not held up."""
    server = await serve(always(OK))
    # A spec as nobody can submit it: what no check let through still ends in an account.
    spec = build_spec(engine, f"{server.url}/{{i}}", headers=(Header("X-Split: {i}\r\nX-Smuggled: 1"),))

    account = await worker.run(spec, 1000)

    assert count(account) == {"connect_error": 1000}
    assert server.received == 0


async def test_a_url_that_nobody_can_ask(engine: Engine, worker: EngineWorker) -> None:
    """Even a URL that no check should have let through is accounted for."""
    account = await worker.run(
        build_spec(engine, "http:///{i}", "http://host:port/{i}", "ftp://host/{i}"), 300
    )

    assert count(account) == {"connect_error": 300}


@pytest.mark.parametrize("concurrency", [1, 1000])
async def test_the_window(engine: Engine, worker: EngineWorker, serve: Serve, concurrency: int) -> None:
    """It is filled and never exceeded, and each connection is used again."""

    async def script(exchange: Exchange) -> None:
        if concurrency > 1:
            await asyncio.sleep(0.3)
        await exchange.send(OK)

    server = await serve(script)
    spec = build_spec(engine, f"{server.url}/{{i}}", concurrency=concurrency)

    account = await worker.run(spec, 3 * concurrency)

    assert count(account) == {"ok": 3 * concurrency}
    assert server.most_at_once == concurrency
    assert server.connections == concurrency


async def test_connections_that_end_between_requests(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """A request on a closed connection is `disconnected`; none is sent again, each is counted once."""
    luck = random.Random(1)

    async def script(exchange: Exchange) -> None:
        draw = luck.random()
        if draw < 0.1:
            exchange.hang_up()
            return
        await exchange.send(OK)
        if draw < 0.3:
            # Before, while and after the next request is sent.
            await asyncio.sleep(luck.choice([0, 0, 0.0005, 0.002]))
            exchange.hang_up()

    server = await serve(script)
    spec = build_spec(engine, f"{server.url}/{{i}}", concurrency=20)

    account = await worker.run(spec, 5000)

    assert set(count(account)) == {"ok", "disconnected"}
    assert sum(account.outcomes) == 5000
    # The server reads on after it has hung up: it sees all that was sent.
    assert sorted(server.targets) == sorted(f"/{index}" for index in range(5000))


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_no_request_is_repeated(
    engine: Engine, worker: EngineWorker, serve: Serve, method: str
) -> None:
    """Not even those are that HTTP would allow to repeat, when a used connection fails under them."""

    async def script(exchange: Exchange) -> None:
        if exchange.turn == 0:
            await exchange.send(OK)
        else:
            exchange.hang_up()

    server = await serve(script)
    spec = build_spec(engine, f"{server.url}/{{i}}", method=method)

    account = await worker.run(spec, 2000)

    assert count(account) == {"ok": server.connections, "disconnected": 2000 - server.connections}
    assert account.outcomes[4] > 900
    assert sorted(server.targets) == sorted(f"/{index}" for index in range(2000))


async def test_bodies_longer_than_announced(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """The surplus answers no other request: each index keeps its own outcome and its own bytes."""

    async def script(exchange: Exchange) -> None:
        index = int(exchange.request.target[1:])
        surplus = b"surplus" if index % 3 == 0 else b""
        await exchange.send(build_response("200 OK", b"x" * index) + surplus)

    server = await serve(script)

    account = await worker.run(build_spec(engine, f"{server.url}/{{i}}", concurrency=1), 300)

    # An engine may see the surplus or hang up before it does.
    assert count(account) in ({"ok": 200, "protocol_error": 100}, {"ok": 300})
    seen = range(300) if account.outcomes[0] == 300 else [index for index in range(300) if index % 3]
    assert account.part.bytes_received == sum(seen)
    assert server.targets == [f"/{index}" for index in range(300)]


async def test_a_body_of_50_mb(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """It is dropped as it comes: the worker does not grow by it."""
    chunk, chunks = b"x" * MIB, 50

    async def script(exchange: Exchange) -> None:
        if exchange.request.target == "/0":
            await exchange.send(OK)
            return
        await exchange.send(build_response("200 OK", b"", f"Content-Length: {chunks * MIB}", length=False))
        for _ in range(chunks):
            await exchange.send(chunk)
            await wait_until_sent(exchange)

    server: HostileServer = await serve(script)
    spec = build_spec(engine, f"{server.url}/{{i}}", concurrency=1)
    await worker.run(spec, 1)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    account = await worker.run(spec, 4, start=1)

    assert count(account) == {"ok": 4}
    assert account.part.bytes_received == 4 * chunks * MIB
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 20 * 1024


async def wait_until_sent(exchange: Exchange) -> None:
    """Wait until the client has taken most of what was sent."""
    while exchange.transport.get_write_buffer_size() > MIB:  # noqa: ASYNC110  # a transport tells nobody
        await asyncio.sleep(0.001)
