"""Requests of the engine for HTTP/2: what is sent, in either direction, and over TLS."""

import asyncio
import hashlib
from typing import Any

import pytest
from hpack import Encoder
from tests.kit.http2.frames import (
    END_HEADERS,
    ErrorCode,
    Setting,
    build_block,
    build_data,
)
from tests.kit.http2.server import Connection, ServeHttp2, StreamExchange, always, stall
from tests.kit.servers.certificates import Certificates, build_server_tls
from tests.kit.servers.hostile_server import Serve, build_response
from tests.kit.servers.hostile_server import always as always_http1
from tests.kit.servers.shop import Shop
from tests.kit.workers.engine_worker import EngineWorker, LeaseAccount, count
from tests.kit.workers.measured_worker import measure

from oku_core.accounting.measured_time import Time
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.check import ExpectedStatus, JsonValue, SizeBound
from oku_core.spec.values.request_content import Header, parse_headers
from oku_core.spec.values.url import Url

MIB = 1 << 20


def build_spec(url: str, **changes: Any) -> Spec:
    """What to send; nothing ends by its timeout."""
    fields: dict[str, Any] = {"concurrency": 10, "timeout_s": 20.0}
    return Spec(urls=(Url(f"{url}/{{i}}"),), engine=Engine.NGHTTP2, **(fields | changes))


def list_reasons(account: LeaseAccount) -> list[str]:
    """Why requests failed."""
    return [reason.reason for reason in account.part.reasons]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Made once: keys take their time."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


async def test_each_index_is_sent_once(worker: EngineWorker, serve_http2: ServeHttp2) -> None:
    """The server sees each index of the lease once, and no other."""
    server = await serve_http2(always())

    account = await worker.run(build_spec(f"{server.url}/items"), 2000, start=10**9)

    assert count(account) == {"ok": 2000}
    assert (account.part.statuses, account.part.bytes_received) == ({"200": 2000}, 4000)
    assert sorted(server.targets) == [f"/items/{index}" for index in range(10**9, 10**9 + 2000)]


async def test_what_a_request_is_made_of(worker: EngineWorker, serve_http2: ServeHttp2) -> None:
    """Pseudo-header fields come first, each once; names are in lower case, and the host is the authority."""
    server = await serve_http2(always())
    headers = parse_headers(["X-Index: {i}", "X-Twice: a", "X-Twice: b"])

    await worker.run(build_spec(f"{server.url}/ü", headers=headers, concurrency=1), 1, start=7)

    [request] = server.requests
    names = [name for name, _ in request.fields]
    pseudo = dict(request.fields[:4])
    assert pseudo == {
        ":method": "GET", ":scheme": "http", ":path": "/%C3%BC/7", ":authority": server.url[7:]
    }  # fmt: skip
    assert not any(name.startswith(":") for name in names[4:])
    assert names == [name.lower() for name in names]
    assert "host" not in names
    assert [pair for pair in request.fields if pair[0].startswith("x-")] == [
        ("x-index", "7"), ("x-twice", "a"), ("x-twice", "b"),
    ]  # fmt: skip
    assert request.header("user-agent") == ["oku/0.1"]


@pytest.mark.parametrize("size", [0, 4096])
async def test_headers_are_compressed_as_the_server_allows(
    worker: EngineWorker, serve_http2: ServeHttp2, size: int
) -> None:
    """The server can read each of them, with a table and without."""
    server = await serve_http2(always(), settings={Setting.HEADER_TABLE_SIZE: size})
    headers = parse_headers(["X-Long: " + "long" * 100, "X-Index: {i}"])

    account = await worker.run(build_spec(server.url, headers=headers), 200)

    assert count(account) == {"ok": 200}
    assert sorted(int(request.header("x-index")[0]) for request in server.requests) == list(range(200))


async def test_answers_that_refer_to_headers_of_others(worker: EngineWorker, serve_http2: ServeHttp2) -> None:
    """A server compresses the headers of a connection with one table."""
    encoders: dict[Connection, Encoder] = {}

    async def script(exchange: StreamExchange) -> None:
        encoder = encoders.setdefault(exchange.connection, Encoder())
        number = str(exchange.index % 7)
        block = encoder.encode([(":status", "200"), ("x-same", "same"), ("x-number", number)])
        exchange.send(
            build_block(exchange.stream, block, flags=END_HEADERS) + build_data(exchange.stream, b"hi")
        )

    server = await serve_http2(script)
    spec = build_spec(server.url, expect_header=(Header("x-same: same"), Header("x-number: 3")))

    account = await worker.run(spec, 700)

    assert count(account) == {"ok": 100, "failed_check": 600}


CHECKS: dict[str, dict[str, Any]] = {
    "status": {"expect_status": (ExpectedStatus("404"),)},
    "header": {"expect_header": (Header("X-Other: y"),)},
    "size": {"expect_size": (SizeBound(">= 100"),)},
    "body": {"expect_body": ("other",)},
    "match": {"expect_match": ("^x+$",)},
    "json": {"expect_json": (JsonValue("/tea=black"),)},
    "within": {"expect_within_s": 0.000001},
}


@pytest.mark.parametrize("check", CHECKS)
async def test_answers_are_checked(worker: EngineWorker, serve_http2: ServeHttp2, check: str) -> None:
    """Each kind of check finds what is wrong; with what is right, the answer is ok."""
    server = await serve_http2(always(200, b'{"tea": "green"}', ("x-any", "y")))
    right = {
        "expect_header": (Header("X-Any: y"),), "expect_body": ("green",),
        "expect_match": ("g.e+n",), "expect_json": (JsonValue("/tea=green"),),
    }  # fmt: skip

    good = await worker.run(build_spec(server.url, **right), 30)
    bad = await worker.run(build_spec(server.url, **(right | CHECKS[check])), 30)

    assert count(good) == {"ok": 30}
    assert count(bad) == {"unexpected_status" if check == "status" else "failed_check": 30}


async def test_bodies_of_requests(worker: EngineWorker, serve_http2: ServeHttp2) -> None:
    """They arrive whole, with their length, many frames long; large ones beside small ones."""
    block = "".join(hashlib.sha256(b"%d" % number).hexdigest() for number in range(8000))
    server = await serve_http2(always())
    large = build_spec(server.url, method="POST", body="{i}" + block)

    assert count(await worker.run(large, 20)) == {"ok": 20}
    assert count(await worker.run(build_spec(server.url, method="PUT", body=""), 5)) == {"ok": 5}
    assert count(await worker.run(build_spec(server.url, method="POST"), 5)) == {"ok": 5}

    for request in server.requests[:20]:
        assert request.body == f"{request.target[1:]}{block}".encode()
        assert request.header("content-length") == [str(len(request.body))]
    assert {(r.method, r.body, *r.header("content-length")) for r in server.requests[20:]} == {
        ("PUT", b"", "0"), ("POST", b"", "0")
    }  # fmt: skip


@pytest.mark.parametrize("window", [1, 100, 65_535])
async def test_bodies_of_requests_wait_for_windows(
    worker: EngineWorker, serve_http2: ServeHttp2, window: int
) -> None:
    """No more is sent than the server has room for, and all of it in the end."""

    async def script(exchange: StreamExchange) -> None:
        session, stream = exchange.session, exchange.session.streams[exchange.stream]
        while not stream.is_heard:
            moved = session.moved
            if not stream.receive_window:
                session.grant(exchange.stream, 40)
                session.grant(0, 40)
            await moved.wait()
        await exchange.respond(body=bytes(stream.body))

    server = await serve_http2(
        script, settings={Setting.INITIAL_WINDOW_SIZE: window}, hears_early=True, grants=False
    )
    spec = build_spec(server.url, method="POST", body="0123456789" * 30, expect_body=("0123456789" * 30,))

    account = await worker.run(spec, 20)

    assert count(account) == {"ok": 20}
    assert account.part.bytes_received == 20 * 300


async def test_a_window_that_shrinks_while_bodies_are_sent(
    worker: EngineWorker, serve_http2: ServeHttp2
) -> None:
    """It may even be negative: nothing is sent until it is not any more."""

    async def script(exchange: StreamExchange) -> None:
        session, stream = exchange.session, exchange.session.streams[exchange.stream]
        if exchange.turn == 0:
            session.change_settings({Setting.INITIAL_WINDOW_SIZE: 10})
        while not stream.is_heard:
            moved = session.moved
            if session.is_confirmed and stream.receive_window <= 0:
                session.grant(exchange.stream, 1000 - stream.receive_window)
                session.grant(0, 1000)
            await moved.wait()
        await exchange.respond(body=b"hi")

    server = await serve_http2(
        script, settings={Setting.INITIAL_WINDOW_SIZE: 5000}, hears_early=True, grants=False
    )

    account = await worker.run(build_spec(server.url, method="POST", body="x" * 9000), 5)

    assert count(account) == {"ok": 5}
    assert {len(stream.body) for stream in server.made[0].session.streams.values()} == {9000}


async def test_a_body_for_which_there_is_never_room(worker: EngineWorker, serve_http2: ServeHttp2) -> None:
    """Its time runs; requests beside it are answered, and the connection stays."""

    async def script(exchange: StreamExchange) -> None:
        if exchange.request.method == "GET":
            await exchange.respond(body=b"hi")
        else:
            await stall(exchange)

    server = await serve_http2(script, settings={Setting.INITIAL_WINDOW_SIZE: 0}, hears_early=True)
    stalled = build_spec(server.url, method="POST", body="x", timeout_s=0.5)

    assert count(await worker.run(stalled, 4)) == {"timeout": 4}
    assert count(await worker.run(build_spec(server.url), 40)) == {"ok": 40}
    assert all(not stream.body for stream in server.made[0].session.streams.values())


@pytest.mark.parametrize("is_reset", [False, True])
async def test_an_answer_before_the_request_is_out(
    worker: EngineWorker, serve_http2: ServeHttp2, *, is_reset: bool
) -> None:
    """It counts; the rest is not sent, and the connection takes further requests."""

    async def script(exchange: StreamExchange) -> None:
        await exchange.respond(413, b"enough")
        if is_reset:
            exchange.reset_stream(ErrorCode.NO_ERROR)

    server = await serve_http2(script, hears_early=True, grants=False)
    spec = build_spec(server.url, method="POST", body="x" * MIB, expect_status=(ExpectedStatus("413"),))

    account = await worker.run(spec, 40)

    assert count(account) == {"ok": 40}
    assert account.part.bytes_received == 40 * 6
    assert server.received == 40
    assert server.connections == 1


async def test_bodies_of_answers_in_pieces_of_each_other(
    worker: EngineWorker, serve_http2: ServeHttp2
) -> None:
    """Frames of all streams come in between each other; each answer has its own bytes."""
    held: list[StreamExchange] = []

    async def script(exchange: StreamExchange) -> None:
        held.append(exchange)
        if len(held) < 10:
            return
        streams, held[:] = list(held), []
        for each in streams:
            each.session.send_headers(each.stream, [(":status", "200")])
        for turn in range(20):
            for place, each in enumerate(streams):
                each.session.send_data(each.stream, b"%d," % place, end=turn == 19)

    server = await serve_http2(script)
    spec = build_spec(server.url, expect_match=("|".join(f"^({place},){{20}}$" for place in range(10)),))

    account = await worker.run(spec, 100)

    assert count(account) == {"ok": 100}
    assert account.part.bytes_received == 100 * 20 * len("0,")


async def test_large_bodies_of_answers_take_no_memory(worker: EngineWorker, serve_http2: ServeHttp2) -> None:
    """They are dropped as they come, within the windows that were offered."""

    async def script(exchange: StreamExchange) -> None:
        await exchange.respond(body=bytes(16 * MIB if exchange.index < 1_000_000 else 10))

    server = await serve_http2(script)

    measurement = await measure(build_spec(server.url, streams=5), 20, warm_up=20)

    assert measurement.outcomes == {"ok": 20}
    assert measurement.bytes_received == 20 * 16 * MIB
    assert measurement.growth_kib < 24 * 1024


async def test_a_server_without_http2(worker: EngineWorker) -> None:
    """It is a `connect_error`, and nothing is requested of it."""
    worker.overlook("Error handling request")
    async with Shop() as shop:
        account = await worker.run(build_spec(shop.url), 20)

    assert count(account) == {"connect_error": 20}
    assert list_reasons(account) == ["the server does not speak HTTP/2"]
    assert shop.asked.total() == 0


async def test_tls(worker: EngineWorker, serve_http2: ServeHttp2, files: Certificates) -> None:
    """HTTP/2 is agreed on with ALPN, and the scheme of requests is https."""
    server = await serve_http2(always(), tls=files.server)

    account = await worker.run(build_spec(server.url, cacert=files.cacert), 300)

    assert count(account) == {"ok": 300}
    assert sorted(server.targets) == sorted(f"/{index}" for index in range(300))
    assert (server.connections, account.part.histogram(Time.TLS).total) == (1, 1)
    assert {dict(request.fields)[":scheme"] for request in server.requests} == {"https"}


@pytest.mark.parametrize("offered", [["http/1.1"], ["http/1.1", "spdy/3"], None], ids=str)
async def test_tls_of_a_server_without_http2(
    worker: EngineWorker, serve: Serve, files: Certificates, offered: list[str] | None
) -> None:
    """Nothing is sent to a server that does not offer it."""
    tls = build_server_tls(files.authority, "127.0.0.1")
    if offered is not None:
        tls.set_alpn_protocols(offered)
    server = await serve(always_http1(build_response()), tls=tls)

    account = await worker.run(build_spec(server.url, cacert=files.cacert), 20)

    assert count(account) == {"connect_error": 20}
    assert list_reasons(account) == ["the server does not speak HTTP/2"]
    assert server.received == 0


async def test_an_address_to_send_from(serve_http2: ServeHttp2) -> None:
    """Every connection comes from it."""
    peers: set[str] = set()

    async def greet(connection: Connection) -> None:
        peers.add(connection.peer)

    server = await serve_http2(always(), greet=greet)
    worker = EngineWorker("127.0.0.77")
    account = await worker.run(build_spec(server.url, streams=2), 50)
    await asyncio.to_thread(worker.close)

    assert (count(account), peers) == ({"ok": 50}, {"127.0.0.77"})
