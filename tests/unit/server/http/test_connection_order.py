import logging

import pytest
from tests.unit.server.client import GET, OK, Server

from oku_server.http import server_connection
from oku_server.http.planned_response import CONTINUE


def test_requests_of_one_connection_are_answered_in_order() -> None:
    """The delay of a request begins when the request before it is answered."""
    server = Server(delay="1s", body=b"0123456789")
    client = server.connect_known()
    assert client.say(GET + GET.replace(b"GET", b"HEAD"), GET) == b""
    assert server.count("r1") == 3
    for answers, length in ((1, 10), (2, 10), (3, 20)):
        server.time.pass_s(1.002)
        assert client.written.count(b"HTTP/1.1 200 OK") == answers
        assert client.written.count(b"0123456789") * 10 == length
    assert client.say(GET) == b""
    # A client that sends ahead without end is not read meanwhile.
    server = Server(delay="1ms")
    client = server.connect_known()
    client.say(GET * (server_connection.MOST_QUEUED + 2))
    assert not client.is_read
    server.time.pass_s(1.0)
    assert client.is_read
    assert client.written.count(b"HTTP/1.1 200 OK") == server_connection.MOST_QUEUED + 2
    assert client.say(GET) == b""


def test_a_client_that_does_not_read_is_not_read_either(pieces: tuple[bytes, ...]) -> None:
    """While the connection takes no more answers, the client's next requests wait."""
    client = Server().connect_known()
    client.connection.pause_writing()
    assert not client.is_read
    assert client.say(*pieces, *pieces) == b""
    client.connection.resume_writing()
    assert client.is_read
    assert client.written == 2 * OK
    assert client.say(*pieces) == OK


def test_leave_to_send_a_body_does_not_overtake_an_answer() -> None:
    """`100 Continue` waits for its turn, even when the client does not read."""
    client = Server().connect_known()
    client.connection.pause_writing()
    post = b"POST /1 HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    assert client.say(GET + post) == b""
    client.connection.resume_writing()
    assert client.written == OK + CONTINUE
    assert client.say(b"ab") == OK


def test_an_error_is_status_500_on_a_connection_that_stays(pieces: tuple[bytes, ...]) -> None:
    """An error status is no reason to close."""
    client = Server(error=1.0).connect_known()
    assert client.say(*pieces).startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert not client.closed
    # A reset answers nothing. The connection is aborted after the delay.
    server = Server(reset=1.0, delay="1s")
    client = server.connect_known()
    client.say(*pieces, *pieces)
    assert not client.was_reset
    server.time.pass_s(1.1)
    assert client.was_reset
    assert client.written == b""
    # A truncated answer announces all and sends half. The connection is closed in the middle of the body.
    client = Server(body=b"0123456789", truncate=1.0).connect_known()
    head, _, body = client.say(*pieces, *pieces).partition(b"\r\n\r\n")
    assert b"\r\nContent-Length: 10\r\n" in head
    assert body == b"01234"
    assert client.closed
    # A stalled request is never answered nor is what follows.
    server = Server(stall=1.0)
    client = server.connect_known()
    assert client.say(*pieces, GET * 1000) == b""
    assert client.is_read
    assert server.count("r1") == 1001
    assert len(server.service.wheel) == 0
    server.time.pass_s(10)
    assert not client.closed
    client.leave()


def test_a_malformed_request_is_refused_behind_the_answers_before_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It gets status 400 and the connection ends; it is not counted, and nothing is logged."""
    server = Server(delay="1s")
    client = server.connect_known()
    with caplog.at_level(logging.DEBUG):
        client.say(GET + b"no request\r\n\r\n", GET)
        server.time.pass_s(1.1)
    assert client.written.count(b"HTTP/1.1 200 OK\r\n") == 1
    assert client.written.partition(b"Hello, World!")[2].startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert client.closed
    assert (server.count("r1"), server.count("")) == (1, 0)
    assert not caplog.records


@pytest.mark.parametrize(("reset", "truncate"), [(1.0, 0.0), (0.0, 1.0)])
def test_requests_behind_one_that_ends_the_connection_are_not_answered(reset: float, truncate: float) -> None:
    """This holds even if they arrived in the same piece."""
    client = Server(reset=reset, truncate=truncate).connect_known()
    client.say(GET + GET + GET)
    assert client.closed
    assert client.written.count(b"HTTP/1.1") == truncate
