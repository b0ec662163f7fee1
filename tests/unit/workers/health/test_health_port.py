import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import pytest
import uvloop

from oku_workers.health.health_port import MOST_WAITING, HealthPort

Address = tuple[str, int]


@pytest.fixture
async def address() -> AsyncIterator[Address]:
    """Where an open port is."""
    listening = socket.create_server(("127.0.0.1", 0))
    address: Address = listening.getsockname()
    port = HealthPort(listening, lambda: True)
    await port.open()
    yield address
    await port.close()


async def ask(address: Address, request: bytes) -> bytes:
    """What is answered until the connection is closed, in whichever way."""
    reader, writer = await asyncio.open_connection(*address)
    answer = b""
    with suppress(ConnectionError):
        writer.write(request)
        answer = await reader.read()
    writer.close()
    return answer


async def test_a_probe_is_answered_with_200(address: Address) -> None:
    """Whatever it asks for; one after the other."""
    for path in (b"/healthz", b"/"):
        head, _, body = (await ask(address, b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n")).partition(
            b"\r\n\r\n"
        )
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert f"Content-Length: {len(body)}".encode() in head


async def test_a_worker_that_is_not_ready_lives() -> None:
    """One path asks whether it is ready, each time anew; all others ask whether it lives."""
    listening = socket.create_server(("127.0.0.1", 0))
    address: Address = listening.getsockname()
    is_ready = False
    port = HealthPort(listening, lambda: is_ready)
    await port.open()
    for is_ready, ready in ((False, b"503"), (True, b"200")):  # noqa: B007  # the port reads it
        answers = [
            (await ask(address, request + b"\r\n\r\n")).split(b" ", 2)[1]
            for request in (b"GET /readyz HTTP/1.1\r\nHost: x", b"GET /readyz?verbose HTTP/1.0",
                            b"GET /healthz HTTP/1.1", b"GET /readyz/x HTTP/1.1", b"GET", b"")
        ]  # fmt: skip
        assert answers == [ready, ready, b"200", b"200", b"200", b"200"]
    await port.close()


async def test_what_is_no_request_is_not_answered(address: Address) -> None:
    """The port goes on."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(b"GET / HT")
    writer.write_eof()
    assert await reader.read() == b""
    writer.close()
    assert await ask(address, b"x" * 100_000) == b""
    assert await ask(address, b"GET / HTTP/1.0\r\n\r\n") != b""


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nX: "], ids=["nothing", "half"])
def test_nobody_keeps_probes_away_by_many_connections(sent: bytes, run: Callable[..., None]) -> None:
    """Whatever these have sent, and in the event loop of a worker: the one that has waited longest goes."""

    async def hold_many() -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        port = HealthPort(listening, lambda: True)
        await port.open()
        address: Address = listening.getsockname()
        idle = [await asyncio.open_connection(*address) for _ in range(MOST_WAITING + 50)]
        for _, writer in idle:
            with suppress(ConnectionError):
                writer.write(sent)
        for _ in range(3):
            assert (await ask(address, b"GET / HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 200 OK\r\n")
        for reader, _ in idle[:50]:
            with suppress(ConnectionError):
                assert await reader.read() == b""
        assert not any(reader.at_eof() or reader.exception() for reader, _ in idle[-50:])
        for _, writer in idle:
            writer.close()
        await port.close()

    run(hold_many())


async def test_a_connection_that_sends_no_request_is_closed() -> None:
    """Its time begins with the connection, however slowly it sends."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = HealthPort(listening, lambda: True, reading_s=0.05)
    await port.open()
    reader, writer = await asyncio.open_connection(*listening.getsockname())
    writer.write(b"GET / HTTP/1.1\r\n")
    with suppress(ConnectionError):
        assert await reader.read() == b""
    writer.close()
    await port.close()
