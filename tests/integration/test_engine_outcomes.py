import asyncio
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from tests.kit.servers.hostile_server import (
    Exchange,
    Script,
    Serve,
    always,
    build_response,
    set_reset_on_close,
    stall,
)
from tests.kit.witness import witnessing
from tests.kit.workers.engine_worker import EngineWorker, count

from oku_core.accounting.measured_time import Time
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.check import ExpectedStatus
from oku_core.spec.values.url import Url

OK = build_response(body=b"hi")
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
UNTIL_CLOSE = b"HTTP/1.0 200 OK\r\n\r\n"

COMPLETE: dict[str, tuple[Script, int, int]] = {
    "body with a length": (always(OK), 200, 2),
    "body apart from its headers": (always(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", b"hi"), 200, 2),
    "byte by byte": (always(*(bytes([byte]) for byte in OK), pause_s=0.001), 200, 2),
    "empty body": (always(build_response()), 200, 0),
    "chunked body": (always(CHUNKED + b"2\r\nhi\r\n1\r\n!\r\n0\r\n\r\n"), 200, 3),
    "chunked body, each chunk apart": (always(CHUNKED, b"2\r\nhi\r\n", b"1\r\n!\r\n", b"0\r\n\r\n"), 200, 3),
    "chunked body with a trailer": (always(CHUNKED + b"2\r\nhi\r\n0\r\nTrailer: x\r\n\r\n"), 200, 2),
    "body until the connection closes": (always(UNTIL_CLOSE + b"hi", b"ho", then="close"), 200, 4),
    "HTTP/1.0 with a length": (always(OK.replace(b"HTTP/1.1", b"HTTP/1.0"), then="close"), 200, 2),
    "close": (always(build_response("200 OK", b"hi", "Connection: close"), then="close"), 200, 2),
    "204": (always(b"HTTP/1.1 204 No Content\r\n\r\n"), 204, 0),
    "304 with a length": (always(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"), 304, 0),
    "interim responses before it": (
        always(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\n\r\n" + OK), 200, 2,
    ),
    "compressed body": (always(build_response("200 OK", b"\x1f\x8b hi", "Content-Encoding: gzip")), 200, 5),
    "malformed cookies": (always(build_response("200 OK", b"hi", "Set-Cookie: \x01=;;=")), 200, 2),
    "redirection": (always(build_response("302 Found", b"", "Location: /elsewhere")), 302, 0),
    "switch to another protocol": (
        always(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), 101, 0,
    ),
    "500": (always(build_response("500 Internal Server Error", b"sorry")), 500, 5),
    "status that does not exist": (always(build_response("999 Whatever", b"hi")), 999, 2),
}  # fmt: skip


def build_spec(url: str, engine: Engine, **changes: object) -> Spec:
    """What to send; a timeout stands out."""
    fields: dict[str, object] = {"concurrency": 3, "timeout_s": 5.0}
    return Spec(urls=(Url(f"{url}/{{i}}"),), engine=engine, **(fields | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("case", COMPLETE)
async def test_a_complete_response(engine: Engine, worker: EngineWorker, serve: Serve, case: str) -> None:
    """It is counted with its status and the bytes of its body as they came; nothing more is sent for it."""
    script, status, size = COMPLETE[case]
    server = await serve(script)

    account = await worker.run(build_spec(server.url, engine), 8)

    assert count(account) == {"ok" if 200 <= status < 300 else "unexpected_status": 8}
    assert account.part.statuses == {str(status): 8}
    assert account.part.bytes_received == 8 * size
    assert sorted(server.targets) == sorted(f"/{index}" for index in range(8))


async def test_expected_statuses(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """A status that the spec expects is `ok`, whatever it means elsewhere."""
    server = await serve(always(build_response("500 Internal Server Error")))
    spec = build_spec(server.url, engine, expect_status=(ExpectedStatus("404"), ExpectedStatus("5xx")))

    account = await worker.run(spec, 5)

    assert count(account) == {"ok": 5}
    assert account.part.statuses == {"500": 5}


async def test_a_head_request_has_no_body(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """The length in its answer is that of a body that does not come."""
    server = await serve(always(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"))

    account = await worker.run(build_spec(server.url, engine, method="HEAD"), 8)

    assert count(account) == {"ok": 8}
    assert account.part.bytes_received == 0
    assert {request.method for request in server.requests} == {"HEAD"}


@contextmanager
def hold_port() -> Iterator[int]:
    """A port on which nobody listens, kept from everybody else."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


async def test_nobody_listens(engine: Engine, worker: EngineWorker) -> None:
    """A refused connection is a `connect_error`."""
    with hold_port() as port:
        account = await worker.run(build_spec(f"http://127.0.0.1:{port}", engine), 20)

    assert count(account) == {"connect_error": 20}


async def test_the_name_is_unknown(engine: Engine, worker: EngineWorker) -> None:
    """A name without an address is a `connect_error`."""
    # Names under `invalid` are guaranteed not to exist (RFC 6761).
    account = await worker.run(build_spec("http://oku.invalid", engine, timeout_s=20.0), 5)

    assert count(account) == {"connect_error": 5}


def greet_with_nonsense(transport: asyncio.Transport) -> None:
    """Send bytes that are not TLS."""
    transport.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def greet_with_end(transport: asyncio.Transport) -> None:
    """Hang up at once."""
    transport.close()


def greet_with_reset(transport: asyncio.Transport) -> None:
    """Reset at once."""
    set_reset_on_close(transport.get_extra_info("socket"))
    transport.abort()


@pytest.mark.parametrize("greet", [greet_with_nonsense, greet_with_end, greet_with_reset])
async def test_tls_is_not_agreed_on(
    engine: Engine, worker: EngineWorker, serve: Serve, greet: object
) -> None:
    """A TLS handshake that fails is a `connect_error`: nothing was sent."""
    server = await serve(stall, greet=greet)

    # Enough of them that a mistake of the event loop about a reset connection would show.
    account = await worker.run(build_spec(f"https://127.0.0.1:{server.port}", engine, concurrency=50), 500)

    assert count(account) == {"connect_error": 500}
    assert server.connections >= 500
    assert server.received == 0


STALLS: dict[str, Script] = {
    "before any byte": stall,
    "within the headers": always(b"HTTP/1.1 200 OK\r\nContent-Le"),
    "after an interim response": always(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "before the body": always(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
    "within the body": always(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", b"hi"),
    "within a chunked body": always(CHUNKED, b"2\r\nhi\r\n"),
    "at the end of a body without a length": always(UNTIL_CLOSE, b"hi"),
}


@pytest.mark.parametrize("case", STALLS)
async def test_a_server_that_stalls(engine: Engine, worker: EngineWorker, serve: Serve, case: str) -> None:
    """The request is a `timeout`, within half a second after the limit; it was sent once."""
    server = await serve(STALLS[case])
    async with witnessing() as witness:
        started_at = time.monotonic()

        account = await worker.run(build_spec(server.url, engine, concurrency=4, timeout_s=0.2), 8)

        elapsed_s = time.monotonic() - started_at

    assert count(account) == {"timeout": 8}
    assert 0.4 <= elapsed_s < 1.4 + witness.stalled_s
    assert len(set(server.targets)) == server.received <= 8
    # Whom the machine holds up for as long as the limit may be connected too late to send anything.
    assert server.received == 8 or witness.stalled_s > 0.15


async def test_nobody_accepts(engine: Engine, worker: EngineWorker) -> None:
    """Connecting counts towards the timeout."""
    with ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            # Linux takes one connection more than the backlog and then drops what comes.
            filler = stack.enter_context(socket.socket())
            filler.settimeout(0)
            filler.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        async with witnessing() as witness:
            started_at = time.monotonic()

            account = await worker.run(build_spec(url, engine, timeout_s=0.4), 3)

            elapsed_s = time.monotonic() - started_at

    assert count(account) == {"timeout": 3}
    # One after the other, they would take three times as long as the limit.
    assert 0.4 <= elapsed_s < 1.15 + witness.stalled_s


async def test_tls_that_stalls(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """The TLS handshake counts towards the timeout."""
    server = await serve(stall)

    account = await worker.run(build_spec(f"https://127.0.0.1:{server.port}", engine, timeout_s=0.4), 3)

    assert count(account) == {"timeout": 3}


async def test_an_answer_after_the_limit(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """It is a `timeout`, even if nothing looked at the clock before."""
    limit_s = 0.001

    async def script(exchange: Exchange) -> None:
        await asyncio.sleep(3 * limit_s)
        await exchange.send(OK)

    server = await serve(script)

    account = await worker.run(build_spec(server.url, engine, concurrency=1, timeout_s=limit_s), 30)

    assert count(account) == {"timeout": 30}


async def test_a_limit_of_a_millisecond(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """Whatever a server makes of it, each request ends in one outcome and no answer took longer."""
    server = await serve(always(OK))
    spec = build_spec(server.url, engine, concurrency=50, timeout_s=0.001)

    account = await worker.run(spec, 500)

    assert sum(account.outcomes) == 500
    assert set(count(account)) <= {"ok", "timeout", "disconnected"}
    assert account.part.histogram(Time.LATENCY).max_us <= 1000
    assert len(set(server.targets)) == server.received <= 500


async def test_outcomes_in_a_mixture(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """Each request ends in its own outcome, whatever happens beside it on other connections."""
    scripts = {
        "ok": always(OK),
        "unexpected_status": always(build_response("500 Internal Server Error")),
        "timeout": always(b"HTTP/1.1 200 OK\r\n"),
        "disconnected": always(b"HTTP/1.1 200 OK\r\n", then="reset"),
        "protocol_error": always(CHUNKED, b"zz\r\n"),
    }
    quick = [name for name in scripts if name != "timeout"]

    def draw(index: int) -> str:
        # Few enough that they all wait at the same time: the limit is long, but passes once.
        return "timeout" if index % 20 == 7 else quick[index % 7 % len(quick)]

    async def script(exchange: Exchange) -> None:
        await scripts[draw(int(exchange.request.target[1:]))](exchange)

    server = await serve(script)
    spec = build_spec(server.url, engine, concurrency=40, timeout_s=2.0)

    account = await worker.run(spec, 700)

    assert count(account) == Counter(map(draw, range(700)))
    assert sorted(server.targets) == sorted(f"/{index}" for index in range(700))
