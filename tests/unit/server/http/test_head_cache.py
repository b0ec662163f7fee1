import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.server.client import GET, LINES, OK, Server

from oku_server.http.head_cache import LONGEST_BYTES, MOST, HeadCache
from oku_server.http.planned_response import DelayedResponse


def find_response(_: bytes) -> DelayedResponse:
    """Fail, because a cache alone asks for no response."""
    pytest.fail("only a connection asks for a response")


@pytest.mark.parametrize(
    "first",
    [
        b"GET /-/healthz HTTP/1.1",
        b"GET /1?x HTTP/1.1",
        b"GET /1#x HTTP/1.1",
        b"GET /%31 HTTP/1.1", b"GET / HTTP/1.1 HTTP/1.1", b"GET  /1 HTTP/1.1", b"GET /1 HTTP/1.0",
        b"get /1 HTTP/1.1", b"HEAD /1 HTTP/1.1", b"POST /1 HTTP/1.1", b"GET 1 HTTP/1.1",
        b"GET /1\t HTTP/1.1", b"GET /1\r\nX: a HTTP/1.1", b"GET /\xb2 HTTP/1.1", b"",
    ],
)  # fmt: skip
def test_a_first_line_that_is_not_plain_is_left_to_the_parser(first: bytes) -> None:
    """Such a request is not found in the cache, and its lines are not cached."""
    heads = HeadCache()
    heads.add(first + b"\r\n" + LINES, "r1", find_response)
    assert len(heads) == 0
    heads.add(GET, "r1", find_response)
    assert heads.find(first + b"\r\n" + LINES) is None


def test_a_known_request_is_known_by_any_plain_name() -> None:
    """Only the first line differs between the requests of a client."""
    heads = HeadCache()
    heads.add(GET, "r1", find_response)
    for name in (b"", b"1", b"a/b.c~_"):
        assert heads.find(b"GET /" + name + b" HTTP/1.1\r\n" + LINES) == (name, ("r1", find_response))
    # Lines that differ by one byte are not known.
    for place in range(len(GET) - len(LINES), len(GET)):
        for other in (b"", b" ", b"\r", b"\n", b"x", GET[place : place + 1] * 2):
            changed = GET[:place] + other + GET[place + 1 :]
            assert changed == GET or heads.find(changed) is None
    # No more than so many are remembered.
    heads = HeadCache()
    for number in range(3 * MOST):
        heads.add(GET + b"%d" % number, "", find_response)
        assert len(heads) <= MOST
    before = len(heads)
    heads.add(GET + b"x" * LONGEST_BYTES, "", find_response)
    assert len(heads) == before


def test_a_trailer_names_no_run_and_wishes_nothing() -> None:
    """This holds when the request is new and when it is cached."""
    server = Server()
    client = server.connect()
    chunked = b"GET /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
    chunked += b"Oku-Run: r2\r\nOku-Delay: 1s\r\nOku-Seed: x\r\n\r\n"
    assert client.say(chunked, chunked) == 2 * OK
    assert len(server.service.head_cache) == 1
    assert (server.count(""), server.count("r2")) == (2, 0)


HEADERS = st.lists(
    st.sampled_from(
        [
            b"Oku-Run: r2", b"oku-run:r3 ", b"Oku-Delay: 0s", b"oku-delay:1h", b"Oku-Delay: soon",
            b"Oku-Seed: 7", b"Connection: close", b"Connection: keep-alive",
            b"Connection: upgrade\r\nUpgrade: x", b"Content-Length: 0", b"Content-Length: 3",
            b"Transfer-Encoding: chunked", b"Expect: 100-continue", b"Host: b", b"X: \xff", b"X:",
            b"no header", b" folded",
        ]
    ),
    max_size=4,
)  # fmt: skip
FIRST = st.sampled_from([b"GET /1 HTTP/1.1", b"GET /2 HTTP/1.0", b"HEAD /3 HTTP/1.1", b"POST /4 HTTP/1.1"])
TAIL = st.sampled_from([b"", b"", b"abc", b"0\r\n\r\n", b"\r\n", b"GET"])


@given(FIRST, HEADERS, TAIL)
def test_what_is_known_is_what_a_parser_would_say(first: bytes, headers: list[bytes], tail: bytes) -> None:
    """A server that has seen the same bytes before answers and counts like one that has not."""
    data = b"\r\n".join([first, b"Host: a", *headers, b"", b""]) + tail
    fresh, experienced = Server(), Server()
    for name in (b"9", b"77"):
        experienced.connect().say(data.replace(b" /1 ", b" /%b " % name))
    before = {run: experienced.count(run) for run in ("", "r2", "r3")}
    asked, asked_again = fresh.connect(), experienced.connect()
    assert asked_again.say(data, GET) == asked.say(data, GET)
    assert asked_again.closed == asked.closed
    assert asked.closed or asked.written.count(OK) <= 2
    for run, count in before.items():
        assert experienced.count(run) - count == fresh.count(run)
