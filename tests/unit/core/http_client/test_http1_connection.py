"""A connection of HTTP/1.1 writes in pieces, and loses no answer to a reset."""

import asyncio
import socket
import struct
from collections.abc import Iterator

import pytest

from oku_core.accounting.outcome import DISCONNECTED, PROTOCOL_ERROR
from oku_core.http_client.http1_connection import PIECE_BYTES, Http1Connection
from oku_core.http_client.response_reader import ResponseReader

LONG = b"0123456789abcdef" * 500_000
EARLY = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno"
RESET = struct.pack("ii", 1, 0)


class Client(Http1Connection):
    """A connection that keeps what becomes of it."""

    def __init__(self) -> None:
        super().__init__()
        self.reader = ResponseReader(has_bodies=True)
        self.is_complete = False
        self.failures: list[tuple[int, object]] = []
        self.lost = asyncio.get_running_loop().create_future()

    def ask(self, request: bytes, body: bytes = b"") -> None:
        """Send a request."""
        self._write_in_pieces(request, 0, body)

    def data_received(self, data: bytes) -> None:
        """A piece of a response has come."""
        self.is_complete = self._read_piece(self.reader, data) or self.is_complete

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self._read_rest(exc)
        self.is_complete = self._end_response(self.reader, exc) or self.is_complete
        self.lost.set_result(None)

    def _fail(self, outcome: int, cause: object) -> None:
        self.failures.append((outcome, cause))


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server on loopback that the test is."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        yield listener


async def connect(listener: socket.socket) -> tuple[Client, socket.socket]:
    """A connection, and its other end."""
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(Client, *listener.getsockname())
    server, _ = listener.accept()
    server.settimeout(0)
    return client, server


async def take(server: socket.socket, size: int) -> bytes:
    """Read so many bytes."""
    loop, parts = asyncio.get_running_loop(), []
    while size > 0:
        parts.append(await loop.sock_recv(server, 1 << 20))
        assert parts[-1]
        size -= len(parts[-1])
    return b"".join(parts)


async def test_a_long_request_goes_out_whole_and_the_next_one_behind_it(listener: socket.socket) -> None:
    """However slowly the server reads, with a body that follows its head or without."""
    client, server = await connect(listener)
    for request, body in ((LONG, b""), (b"head", LONG), (LONG[:PIECE_BYTES], LONG), (b"short", b"")):
        client.ask(request, body)
        assert client.is_sent is (len(request + body) < PIECE_BYTES)
        assert await take(server, len(request + body)) == request + body
        await asyncio.sleep(0)
        assert client.is_sent
    server.close()
    await client.lost


@pytest.mark.parametrize("ahead", [0, 100, 10**6])
async def test_an_early_answer_is_not_lost_to_the_reset_behind_it(
    listener: socket.socket, ahead: int
) -> None:
    """Whether the reset meets the client while it waits, or between two pieces."""
    client, server = await connect(listener)
    client.ask(b"head", LONG)
    await take(server, ahead)
    server.send(EARLY)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    server.close()
    await client.lost
    assert (client.is_complete, client.reader.status) == (True, 413)
    assert not client.is_sent


async def test_a_reset_without_an_answer_is_one(listener: socket.socket) -> None:
    """There is nothing left to read."""
    client, server = await connect(listener)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    server.close()
    client.ask(LONG)
    await client.lost
    [(outcome, cause)] = client.failures
    assert outcome == DISCONNECTED
    assert isinstance(cause, ConnectionError)
    assert not client.is_complete


async def test_what_is_no_response_fails(listener: socket.socket) -> None:
    """With an error that keeps nothing of what was read."""
    client, server = await connect(listener)
    server.send(b"220 mail\r\n")
    server.close()
    await client.lost
    (outcome, cause), *_ = client.failures
    assert outcome == PROTOCOL_ERROR
    assert isinstance(cause, Exception)
    assert [cause.__cause__, cause.__context__, cause.__traceback__] == [None] * 3


async def test_a_body_without_a_length_ends_with_its_connection(listener: socket.socket) -> None:
    """A response with a length does not."""
    for head, is_complete in ((b"", True), (b"Content-Length: 3\r\n", False)):
        client, server = await connect(listener)
        server.send(b"HTTP/1.1 200 OK\r\n" + head + b"\r\nhi")
        server.close()
        await client.lost
        assert (client.is_complete, bool(client.failures)) == (is_complete, not is_complete)
