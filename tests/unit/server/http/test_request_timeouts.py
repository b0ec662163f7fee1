"""Tests of requests that take too long to arrive, on a connection without a network."""

import pytest
from tests.unit.server.client import GET, LINES, OK, Server

from oku_server.http import request_timeouts

HALF = GET[:20]
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\n"
POST = b"POST /1 HTTP/1.1\r\nContent-Length: 4\r\n" + LINES


@pytest.fixture
def server() -> Server:
    """A server that answers at once."""
    return Server()


def pass_s(server: Server, seconds: float) -> None:
    """Let time pass on the server's clock."""
    server.time.pass_s(seconds, 0.25)


def test_how_long_a_head_and_a_body_may_take() -> None:
    """Its time begins with its first byte, whatever drips in meanwhile."""
    server = Server()
    client = server.connect()
    client.say(HALF)
    for byte in GET[20:25]:
        pass_s(server, request_timeouts.HEAD_S / 6)
        client.say(bytes([byte]))
        assert not client.closed
    pass_s(server, request_timeouts.HEAD_S / 6 + 1.5)
    assert client.written.startswith(TOO_SLOW)
    assert client.closed
    assert server.count("r1") == 0
    # A head that comes in two pieces is answered. The connection then stays open, however long it is idle.
    server = Server()
    client = server.connect()
    client.say(HALF)
    assert client.say(GET[20:]) == OK
    pass_s(server, 10 * request_timeouts.BODY_S)
    assert client.say(GET) == OK
    assert len(server.service.request_timeouts) == 0
    # A connection that says nothing stays. A load test may open its connections beforehand.
    server = Server()
    client = server.connect()
    pass_s(server, 10 * request_timeouts.BODY_S)
    assert client.say(GET) == OK
    # A body may take long as long as it comes. Only a pause ends the connection.
    server = Server()
    client = server.connect()
    client.say(POST)
    for byte in b"abc":
        pass_s(server, request_timeouts.BODY_S - 2)
        client.say(bytes([byte]))
        assert not client.closed
    pass_s(server, request_timeouts.BODY_S + 1.5)
    assert client.written.startswith(TOO_SLOW)
    assert client.closed


def test_a_head_behind_a_request_that_is_being_answered_waits_with_it() -> None:
    """The server may have kept the sender from sending the rest."""
    server = Server(delay="30s")
    client = server.connect()
    client.say(GET + HALF)
    pass_s(server, 29)
    assert not client.closed
    pass_s(server, 2)
    assert client.written.startswith(b"HTTP/1.1 200 OK\r\n")
    assert not client.closed
    pass_s(server, request_timeouts.HEAD_S + 1.5)
    assert TOO_SLOW in client.written


def test_of_too_many_half_heads_the_oldest_make_room() -> None:
    """A client that sends its request at once is still answered."""
    server = Server()
    clients = [server.connect() for _ in range(request_timeouts.MOST_HEADS + 10)]
    for client in clients:
        client.say(HALF)
    assert [client.closed for client in clients] == [True] * 10 + [False] * request_timeouts.MOST_HEADS
    assert server.connect().say(GET) == OK
    # A client that leaves is forgotten.
    server = Server()
    for piece in (HALF, POST):
        client = server.connect()
        client.say(piece)
        assert len(server.service.request_timeouts) == 1
        client.leave()
        assert len(server.service.request_timeouts) == 0
