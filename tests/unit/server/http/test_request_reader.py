import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.server.client import build_registry

from oku_core.spec.values.delay import parse_delay
from oku_server.behaviour.planner import Overrides
from oku_server.counts.count_table import EMPTY_TABLE, CountTable, read_count
from oku_server.http.planned_response import CLOSE, KEEP_ALIVE
from oku_server.http.request_reader import LONGEST_HEAD_BYTES, Request, RequestReader

STREAM = (
    b"GET /1 HTTP/1.1\r\nHost: a\r\nOku-Seed: 7\r\nOku-Run: r1\r\noku-delay:0..3s \r\n\r\n"
    b"\r\nPOST /2?x HTTP/1.1\r\nhost:a\r\noku-run:  r2 \r\nContent-Length: 5\r\n\r\nGET /"
    b"PUT http://b/3 HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5;x=y\r\n12345\r\n0\r\nOku-Run: r3\r\n\r\n"
    b"HEAD /-/healthz HTTP/1.0\r\nConnection: keep-alive\r\nOku-Run: r1\r\n\r\n"
    b"GET /4 HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\nOku-Run: r1\r\nOku-Run: r2\r\n\r\n"
    b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
)
REQUESTS = [
    Request(b"/1", b"1", is_head=False, connection=b"", overrides=Overrides(parse_delay("0..3s"), 7)),
    Request(b"/2?x", b"2", is_head=False, connection=b""),
    Request(b"http://b/3", b"3", is_head=False, connection=b""),
    Request(b"/-/healthz", b"-/healthz", is_head=True, connection=KEEP_ALIVE),
    Request(b"/4", b"4", is_head=False, connection=b""),
    Request(b"/", b"", is_head=False, connection=CLOSE),
]
COUNTS = {"r1": 2, "r2": 1, "r3": 0, "": 2}
HEAD = b"GET /1 HTTP/1.1\r\nHost: a\r\n"


class Reader(RequestReader):
    """A reader with counts of its own."""

    def __init__(self) -> None:
        self.block = bytearray(EMPTY_TABLE)
        super().__init__(CountTable(self.block, build_registry()))

    def count(self, run: str = "") -> int:
        """How many requests of a run were counted."""
        return read_count(self.block, run)


def read(*pieces: bytes) -> Reader:
    """Feed the pieces to a new reader."""
    reader = Reader()
    for piece in pieces:
        reader.feed(piece)
    return reader


def refusal_of(reader: RequestReader) -> bytes:
    """The status of the refusal of the last request, after which nothing is read."""
    last = reader.requests[-1]
    assert reader.is_over
    assert last.connection == CLOSE
    return last.refusal


def test_requests_are_read_however_they_are_split() -> None:
    """Bodies, chunks, trailers, upgrades and empty lines between requests make no difference."""
    reader = read(STREAM)
    assert list(reader.requests) == REQUESTS
    assert {run: reader.count(run) for run in COUNTS} == COUNTS
    assert reader.is_over
    for size in [1, 2, 3, 7]:
        # Requests may come in small pieces. The pieces may be as small as one byte.
        reader = read(*(STREAM[start : start + size] for start in range(0, len(STREAM), size)))
        assert list(reader.requests) == REQUESTS
        assert {run: reader.count(run) for run in COUNTS} == COUNTS
    # Requests may be split at every byte. Two pieces are read like the whole.
    for place in range(len(STREAM)):
        assert list(read(STREAM[:place], STREAM[place:]).requests) == REQUESTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_requests_may_be_split_anywhere(places: list[int]) -> None:
    """What is read does not depend on how the bytes were split."""
    ends = [0, *sorted(places), len(STREAM)]
    reader = read(*(STREAM[start:end] for start, end in itertools.pairwise(ends)))
    assert list(reader.requests) == REQUESTS
    assert {run: reader.count(run) for run in COUNTS} == COUNTS


def test_a_request_counts_as_soon_as_its_head_is_complete() -> None:
    """What becomes of its body makes no difference."""
    reader = read(b"POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n123")
    assert reader.count() == 1
    assert reader.is_partial
    assert not reader.requests


@pytest.mark.parametrize(
    "data",
    [
        b"\0",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GGET /1 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /1 HTTP/1.1\r\n\r\n",
        b"GET /1 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /1 HTTP/1.1\nHost: a\n\n",
        b"GET /1 HTTP/9.9\r\nHost: a\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http://[/ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        HEAD + b"no header\r\n\r\n",
        HEAD + b"X : a\r\n\r\n",
        HEAD + b"X: a\0b\r\n\r\n",
        HEAD + b"Oku-Delay: soon\r\n\r\n",
        HEAD + b"Oku-Delay:\r\n\r\n",
        HEAD + b"Oku-Delay: 1s\r\noku-delay: 1s\r\n\r\n",
        HEAD + b"Oku-Seed: 1_000\r\n\r\n",
        HEAD + b"Oku-Seed: 7\r\nOku-Seed: 7\r\n\r\n",
        HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n",
        HEAD + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_a_malformed_request_is_refused_and_not_counted(data: bytes) -> None:
    """The status is 400, whether the request comes in one piece or byte by byte."""
    for reader in (read(data), read(*(data[i : i + 1] for i in range(len(data))))):
        assert refusal_of(reader) == b"400 Bad Request"
        assert reader.count() == 0


def test_the_refusal_of_an_override_has_a_reason() -> None:
    """Other refusals say no more than their status."""
    twice = read(HEAD + b"Oku-Seed: 7\r\nOku-Seed: 7\r\n\r\n")
    assert twice.requests[-1].reason == b"Oku-Seed: is given twice"
    wrong = read(HEAD + b"Oku-Delay: 2h\r\n\r\n")
    assert wrong.requests[-1].reason == b"Oku-Delay: 2h is not between 0s and 1h"
    assert read(b"GET /1 HTTP/1.1\r\n\r\n").requests[-1].reason == b""
    cases: list[bytes] = [b"chunked", b"none"]
    for coding in cases:
        # A malformed body is refused. The head of the request was complete, so the request counts.
        reader = read(HEAD + b"Transfer-Encoding: " + coding + b"\r\n\r\nno number\r\n")
        assert refusal_of(reader) == b"400 Bad Request"
        assert reader.count() == 1
    # Requests before a malformed one are kept. The earlier requests still get an answer.
    reader = read(HEAD + b"\r\n" + b"no request\r\n")
    assert [request.refusal for request in reader.requests] == [b"", b"400 Bad Request"]
    reader.feed(HEAD + b"\r\n")
    assert len(reader.requests) == 2


LONG = b"x" * LONGEST_HEAD_BYTES
MOST_AT_ONCE_BYTES = 256_000
"""How much the event loop reads at once."""


@pytest.mark.parametrize(
    "data",
    [
        b"GET /" + LONG,
        b"GET /" + LONG + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        HEAD + b"X: " + LONG,
        HEAD + b"X: " + LONG + b"\r\n\r\n",
        HEAD + LONG,
        HEAD + b"X: y\r\n" * (LONGEST_HEAD_BYTES // 2) + b"\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + LONG * 8,
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * LONGEST_HEAD_BYTES,
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;" + LONG * 8,
    ],
    ids=["target", "whole target", "value", "whole value", "name", "many", "trailer", "trailers", "chunk"],
)
def test_what_a_hostile_client_may_make_the_server_keep_is_limited(data: bytes) -> None:
    """An endless head is refused with status 431, whatever the size of its pieces."""
    for size in (MOST_AT_ONCE_BYTES, 1000):
        reader = read(*(data[start : start + size] for start in range(0, len(data), size)))
        assert refusal_of(reader) == b"431 Request Header Fields Too Large"


def test_a_body_may_be_of_any_length() -> None:
    """A body is not kept, so its length is not limited, with or without chunks."""
    reader = read(HEAD + b"Content-Length: 1000000\r\n\r\n", *[b"x" * 10_000] * 100)
    assert len(reader.requests) == 1
    chunk = b"3e8\r\n" + b"x" * 1000 + b"\r\n"
    reader = read(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 1000, b"0\r\n\r\n")
    assert len(reader.requests) == 1
    assert not reader.is_over
    # Any number of requests may follow each other. The limit applies to each request, not to their sum.
    request = HEAD + b"\r\n"
    reader = Reader()
    for _ in range(3 * LONGEST_HEAD_BYTES // len(request)):
        reader.feed(request[:10])
        reader.feed(request[10:])
        assert reader.requests.pop().refusal == b""
    # A reader that is closed reads nothing. A closed reader keeps no requests and counts no more of them.
    reader = read(HEAD + b"\r\n")
    reader.close()
    reader.feed(HEAD + b"\r\n")
    assert not reader.requests
    assert reader.count() == 1
