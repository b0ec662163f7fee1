import pytest
from tests.unit.server.client import GET, LINES, OK, Server


def test_every_method_is_answered_alike() -> None:
    """The method does not matter, except for HEAD."""
    cases: list[bytes] = [b"GET", b"POST", b"DELETE", b"OPTIONS", b"PATCH", b"CONNECT"]
    for method in cases:
        target = b"a:1" if method == b"CONNECT" else b"/a"
        client = Server().connect_known()
        assert client.say(method + b" " + target + b" HTTP/1.1\r\n" + LINES) == OK
        assert client.say(GET) == OK
    # A head request gets the head alone. The response to HEAD announces a body but has none.
    client = Server().connect_known()
    assert client.say(GET.replace(b"GET", b"HEAD")) == OK.removesuffix(b"Hello, World!")


def test_a_request_is_answered_and_its_connection_stays(pieces: tuple[bytes, ...]) -> None:
    """Any number of requests get status 200, their delay and the body."""
    client = Server().connect_known()
    assert client.say(*pieces, *pieces) == 2 * OK
    assert not client.closed
    # A long body is written whole. A body that is too long to be copied behind its head still follows it.
    client = Server(body=b"x" * 100_000).connect_known()
    assert client.say(*pieces).partition(b"\r\n\r\n")[2] == b"x" * 100_000


@pytest.mark.parametrize(
    "body",
    [
        b"Content-Length: 5\r\n\r\n12345",
        b"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\n123\r\n2\r\n45\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\nOku-Run: r2\r\n\r\n",
    ],
    ids=["length", "chunked", "trailer"],
)
def test_the_body_of_a_request_is_ignored(body: bytes) -> None:
    """The next request on the connection is found behind it."""
    server = Server()
    client = server.connect_known()
    post = b"POST /1 HTTP/1.1\r\nHost: a\r\nOku-Run: r1\r\n" + body
    assert client.say(post + GET) == 2 * OK
    assert client.say(*(post[i : i + 1] for i in range(len(post))), GET) == 2 * OK
    assert server.count("r1") == 4


def test_a_client_that_asks_for_leave_to_send_its_body_gets_it() -> None:
    """`Expect: 100-continue` is answered once all earlier requests are answered."""
    server = Server(delay="1s")
    client = server.connect_known()
    post = b"POST /1 HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    assert client.say(GET, post) == b""
    server.time.pass_s(1.1)
    assert client.written.endswith(b"Hello, World!HTTP/1.1 100 Continue\r\n\r\n")
    assert client.say(b"a", b"b") == b""
    server.time.pass_s(1.1)
    assert client.written.count(b"HTTP/1.1 200 OK") == 2
    assert client.written.count(b"100 Continue") == 1
    # A client that sends its body at once needs no leave.
    expect = b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    assert Server().connect_known().say(b"POST /1 HTTP/1.1\r\nHost: a\r\n" + expect + b"ab") == OK
    assert Server().connect_known().say(b"POST /1 HTTP/1.0\r\n" + expect) == b""


def test_a_connection_is_closed_when_the_client_wants_it() -> None:
    """`Connection: close` is answered with the same header, and what follows is not read."""
    server = Server()
    client = server.connect_known()
    answer = client.say(b"GET /1 HTTP/1.1\r\nConnection: close\r\n" + LINES + GET)
    assert b"\r\nConnection: close\r\n" in answer
    assert answer.count(b"HTTP/1.1") == 1
    assert client.closed
    assert server.count("r1") == 1
    # Nothing is read behind a request that closes its connection.
    server = Server(delay="1s")
    client = server.connect_known()
    client.say(b"GET /1 HTTP/1.1\r\nConnection: close\r\n" + LINES, GET)
    server.time.pass_s(3)
    assert client.written.count(b"HTTP/1.1") == 1
    assert client.closed
    assert server.count("r1") == 1


@pytest.mark.parametrize(("asked", "kept"), [(b"", False), (b"Connection: keep-alive\r\n", True)])
def test_http_1_0_keeps_a_connection_only_if_asked(asked: bytes, *, kept: bool) -> None:
    """A header tells an HTTP/1.0 client that its connection stays open."""
    client = Server().connect_known()
    answer = client.say(b"GET /1 HTTP/1.0\r\n" + asked + b"\r\n")
    assert (b"\r\nConnection: keep-alive\r\n" in answer) is kept
    assert client.closed is not kept


def test_a_known_request_within_another_one_is_a_part_of_that() -> None:
    """Bytes get their meaning from where they stand: in a body, in a header, behind half a line."""
    post = b"POST /1 HTTP/1.1\r\nHost: a\r\nOku-Run: r2\r\nContent-Length: %d\r\n\r\n" % len(GET)
    server = Server()
    assert server.connect_known().say(post, GET, GET) == 2 * OK
    assert (server.count("r1"), server.count("r2")) == (1, 1)
    assert server.connect_known().say(b"G", GET).startswith(b"HTTP/1.1 400 ")
    # What looks like a first line is the value of a header, so the request has two Host headers.
    assert server.connect_known().say(b"GET /2 HTTP/1.1\r\nHost: a\r\nX: ", GET).startswith(b"HTTP/1.1 400 ")
    assert (server.count("r1"), server.count("r2")) == (1, 1)
    # Empty lines between requests are skipped. Old clients send an empty line after a body.
    assert Server().connect_known().say(b"\r\n", GET, b"\r\n\r", b"\n" + GET, b"\n", GET) == 3 * OK
    # An upgrade that is offered is not taken.
    client = Server().connect_known()
    assert client.say(b"GET /1 HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n" + LINES + GET) == 2 * OK


def test_a_request_waits_for_its_delay(pieces: tuple[bytes, ...]) -> None:
    """The request is counted at once, and answered neither early nor more than two milliseconds late."""
    server = Server(delay="20ms")
    client = server.connect_known()
    assert client.say(*pieces) == b""
    assert server.count("r1") == 1
    server.time.pass_s(0.0195, 0.0001)
    assert client.written == b""
    server.time.pass_s(0.0025, 0.0001)
    assert client.written == OK.replace(b"Delay: 0", b"Delay: 0.02")
    assert client.say(GET) == b""


def test_nothing_is_kept_of_a_request_whose_client_is_gone(pieces: tuple[bytes, ...]) -> None:
    """The request is counted, but it no longer waits."""
    server = Server(delay="1h")
    client = server.connect_known()
    client.say(*pieces)
    assert len(server.service.wheel) == 1
    client.leave()
    assert len(server.service.wheel) == 0
    assert server.count("r1") == 1
    server.time.pass_s(3601, step_s=0.5)
    assert client.written == b""


def test_a_connection_that_ends_while_its_time_comes_is_not_written_to() -> None:
    """A transport may know that a connection has ended before it reports it."""
    server = Server(delay="1s")
    client = server.connect_known()
    client.say(GET)
    client.closed = True
    server.time.pass_s(1.1)
    assert client.written == b""
    client.leave()
    # Questions to the server are neither counted nor delayed.
    server = Server(delay="1h", reset=1.0)
    client = server.connect_known()
    for target in (b"/-/healthz", b"/-/served", b"/-/nothing", b"/-/", b"http://a/-/healthz"):
        assert client.say(b"GET " + target + b" HTTP/1.1\r\n" + LINES)
        assert client.say(b"HEAD " + target + b" HTTP/1.1\r\n" + LINES).endswith(b"\r\n\r\n")
    assert (server.count("r1"), server.count("")) == (0, 0)


def test_thousands_wait_with_one_timer() -> None:
    """Each request is answered on time, and nothing is left of them."""
    server = Server(delay="0..3s")
    clients = [server.connect_known() for _ in range(3000)]
    for index, client in enumerate(clients):
        client.say(b"GET /%d HTTP/1.1\r\n" % index + LINES)
    waiting = [client for client in clients if not client.written]
    assert len(server.service.wheel) == len(waiting)
    assert len(server.time.timers) == 1
    for second in (1, 2, 3):
        server.time.pass_s(1.002)
        assert all((b"Delay: %d\r" % second in client.written) <= (client in waiting) for client in clients)
    assert len(server.service.wheel) == 0
    assert all(client.written.count(b"HTTP/1.1 200 OK") == 1 for client in clients)
