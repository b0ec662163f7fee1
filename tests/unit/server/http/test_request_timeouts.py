"""Tests of requests that take too long to arrive, on a connection without a network."""

import pytest
from tests.unit.server.client import GET, LINES, OK, Client, Server

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


def test_half_a_head_is_refused_after_a_while(server: Server) -> None:
    """Its time begins with its first byte, whatever drips in meanwhile."""
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


def test_a_head_that_comes_in_two_pieces_is_answered(server: Server) -> None:
    """The connection then stays open, however long it is idle."""
    client = server.connect()
    client.say(HALF)
    assert client.say(GET[20:]) == OK
    pass_s(server, 10 * request_timeouts.BODY_S)
    assert client.say(GET) == OK
    assert len(server.service.request_timeouts) == 0


def test_a_connection_that_says_nothing_stays(server: Server) -> None:
    """A load test may open its connections beforehand."""
    client = server.connect()
    pass_s(server, 10 * request_timeouts.BODY_S)
    assert client.say(GET) == OK


def test_a_body_may_take_long_as_long_as_it_comes(server: Server) -> None:
    """Only a pause ends the connection."""
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


def test_of_too_many_half_heads_the_oldest_make_room(server: Server) -> None:
    """A client that sends its request at once is still answered."""
    clients = [server.connect() for _ in range(request_timeouts.MOST_HEADS + 10)]
    for client in clients:
        client.say(HALF)
    assert [client.closed for client in clients] == [True] * 10 + [False] * request_timeouts.MOST_HEADS
    assert server.connect().say(GET) == OK


def test_a_client_that_leaves_is_forgotten(server: Server) -> None:
    """This holds for clients that leave half a head and those that leave half a body."""
    for piece in (HALF, POST):
        client: Client = server.connect()
        client.say(piece)
        assert len(server.service.request_timeouts) == 1
        client.leave()
        assert len(server.service.request_timeouts) == 0
