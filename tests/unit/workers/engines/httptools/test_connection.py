"""What a connection makes of the bytes of a response, however they are cut, with its engine in memory."""

import asyncio
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.outcomes import make_counts
from yarl import URL

from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import (
    DISCONNECTED,
    FAILED_CHECK,
    OK,
    PROTOCOL_ERROR,
    TIMEOUT,
    UNEXPECTED_STATUS,
)
from oku_core.http_client.connector import Way
from oku_core.http_client.http1_connection import PIECE_BYTES
from oku_core.http_client.idle_pool import PooledConnector
from oku_core.http_client.response_reader import LONGEST_HEAD_BYTES
from oku_core.messaging.lease import Lease
from oku_core.spec.request_template import RequestTemplate
from oku_core.spec.spec import Spec
from oku_core.spec.target import Expectation
from oku_core.spec.values.check import ExpectedStatus, JsonValue, SizeBound
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.url import Url
from oku_workers.engines.http.request_timeout import RequestTimeout
from oku_workers.engines.http.response_counting import count_answers
from oku_workers.engines.httptools.connection import LARGE_REQUEST_BYTES, Connection
from oku_workers.engines.httptools.exchange import LONGEST_BYTES, AnswerBatch
from oku_workers.engines.httptools.request import SharedBody
from oku_workers.engines.httptools.route import Route
from oku_workers.executions.execution import Execution
from oku_workers.executions.open_part import OpenPart
from oku_workers.feed.feed import Feed

if TYPE_CHECKING:
    from oku_workers.feed.feed_protocol import FeedProtocol

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


@dataclass
class Transport(asyncio.Transport):
    """A connection to a server that the test is."""

    written: list[bytes] = field(default_factory=list)
    is_aborted: bool = False
    unsent: int = 0

    def get_extra_info(self, name: str, default: object = None) -> object:
        """Look like a TLS connection, whose file descriptor nobody writes to."""
        return self if name == "ssl_object" else default

    def write(self, data: Any) -> None:
        """Send."""
        self.written.append(data)

    def get_write_buffer_size(self) -> int:
        """How much is not out."""
        return self.unsent

    def abort(self) -> None:
        """End."""
        self.is_aborted = True

    def is_closing(self) -> bool:
        """Whether it ends."""
        return self.is_aborted


class Bench:
    """Stands for the engine: sends a request on each connection that has become free."""

    def __init__(self, method: str = "GET", follows: bytes = b"", **expect: Any) -> None:
        self.limit = RequestTimeout(3600)
        template = RequestTemplate(
            url=Url("http://h/"),
            method=method,
            headers=(),
            expect=Expectation(**{"status": (ExpectedStatus("200"),)} | expect),
        )
        origin: PooledConnector[Connection] = PooledConnector(URL("http://h"), Way())
        self.route = Route(template, SharedBody(lambda _: b"request", follows), origin, 3600.0)
        self.known = self.route.known
        self.feed: FeedProtocol = Feed()
        self.build: Any = None
        self.turns: Any = None
        self.batch = AnswerBatch(list[object]().append, count_answers)
        self.kept: list[bool] = []
        self.reasons: list[object] = []
        lease = Lease(id="l", run="r", ranges=[(0, 10**9)], limit=10**9)
        finished: Any = Future()  # of threads: hypothesis would make a thousand event loops
        self.execution = Execution(lease, Spec(), finished)
        self.feed.add(self.execution)
        self.connect()

    def connect(self) -> None:
        """A connection of its own for the next request."""
        self.transport: Any = Transport()
        self.connection = Connection(self, self.route, b"request")
        self._take(self.connection, self.connection.since_ns)
        self.connection.connection_made(self.transport)

    def go_on(self, connection: Connection, now_ns: int) -> None:
        """As the engine does while there is work."""
        self.kept.append(True)
        self._take(connection, now_ns)
        connection.send(b"request")

    def release(self, connection: Connection) -> None:
        """As the engine does."""
        self.kept.append(False)
        connection.close()

    def lose(self, connection: Connection, outcome: int, reason: object) -> None:
        """As the engine does."""
        tally, coordinate = connection.tally, connection.coordinate
        connection.close()
        if tally is not None:
            self.kept.append(False)
            self.reasons.append(reason)
            tally.fail(outcome, coordinate, str(reason))

    def forget(self, connection: Connection) -> None:
        """Nothing more comes."""

    def receive(self, *parts: bytes) -> None:
        """The server sends, as long as there is anybody to send to."""
        for part in parts:
            if part and not self.transport.is_aborted:
                self.connection.data_received(part)

    def end(self, error: Exception | None = None) -> None:
        """The connection ends."""
        self.connection.connection_lost(error)

    def tell(self) -> tuple[list[int], dict[int, int], int, list[bool]]:
        """All that was made of what came."""
        execution = self.execution
        return execution.outcomes, execution.tally.statuses, execution.tally.bytes_received, self.kept

    def _take(self, connection: Connection, now_ns: int) -> None:
        tally, coordinate, _, due_ns = self.feed.pop()
        connection.start_request(self.route, tally, coordinate, now_ns, due_ns)


@dataclass(frozen=True)
class Response:
    """One response, and what it means."""

    method: str
    content: bytes
    status: int
    size: int
    is_kept: bool


def spell(draw: st.DrawFn, name: str) -> str:
    """A header's name in any case."""
    return draw(st.sampled_from([name, name.lower(), name.upper(), name.title().swapcase()]))


@st.composite
def responses(draw: st.DrawFn, method: str | None = None) -> Response:
    """Any valid response whose end can be seen without the end of its connection."""
    method = method or draw(st.sampled_from(["GET", "HEAD"]))
    status = draw(st.sampled_from([200, 200, 200, 201, 204, 301, 304, 404, 500, 999]))
    version = draw(st.sampled_from(["1.1", "1.1", "1.0"]))
    body = b"" if status in (204, 304) else draw(st.binary(max_size=40))
    lines = draw(
        st.lists(
            st.sampled_from(
                ["X-A: b", "Server:", "Set-Cookie: a=b; c", "Date: \t x ", "Via:1.1 close, keep"]
            ),
            max_size=4,
        )
    )
    is_chunked = version == "1.1" and status not in (204, 304) and draw(st.booleans())
    if is_chunked:
        lines.append(f"{spell(draw, 'Transfer-Encoding')}: chunked")
    elif status not in (204, 304):
        lines.append(f"{spell(draw, 'Content-Length')}: {len(body)}")
    word = draw(st.sampled_from([None, "close", "Close", "keep-alive", "Keep-Alive, x"]))
    if word is not None:
        lines.append(f"{spell(draw, 'Connection')}: {word}")
    is_kept = word not in ("close", "Close") if version == "1.1" else word not in (None, "close", "Close")
    head = "\r\n".join([f"HTTP/{version} {status} Any", *draw(st.permutations(lines)), "", ""]).encode()
    interim = b"".join(
        draw(st.lists(st.sampled_from([b"HTTP/1.1 100 Continue\r\n\r\n", EARLY_HINTS]), max_size=2))
    )
    sent = b"" if method == "HEAD" else (encode_chunked(draw, body) if is_chunked else body)
    return Response(method, interim + head + sent, status, 0 if method == "HEAD" else len(body), is_kept)


EARLY_HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: 5\r\n\r\n"


def encode_chunked(draw: st.DrawFn, body: bytes) -> bytes:
    """A body in chunks, with extensions and trailers."""
    encoded = b""
    while body:
        size = draw(st.integers(1, len(body)))
        extension = draw(st.sampled_from([b"", b"", b";a=b"]))
        encoded += f"{size:{draw(st.sampled_from(['x', 'X', '04x']))}}".encode() + extension + b"\r\n"
        encoded, body = encoded + body[:size] + b"\r\n", body[size:]
    return encoded + b"0\r\n" + draw(st.sampled_from([b"", b"X-Sum: 1\r\n"])) + b"\r\n"


def cut(data: st.DataObject, content: bytes) -> list[bytes]:
    """Pieces of any size, mostly one."""
    if data.draw(st.booleans()):
        return [content]
    places = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=5)))
    return [content[a:b] for a, b in zip([0, *places], [*places, len(content)], strict=True)]


@given(st.data(), st.sampled_from(["GET", "HEAD"]))
def test_responses_mean_the_same_however_they_are_cut(data: st.DataObject, method: str) -> None:
    """Status, bytes and reuse of the connection agree, also for responses that were seen before."""
    kinds = data.draw(st.lists(responses(method), min_size=1, max_size=3))
    bench = Bench(method)
    sent = data.draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=12))

    for response in sent:
        if bench.transport.is_aborted:
            bench.connect()
        bench.receive(*cut(data, response.content))
        assert bench.kept[-1] == response.is_kept

    outcomes, statuses, received, kept = bench.tell()
    assert outcomes[OK] == sum(response.status == 200 for response in sent)
    assert outcomes[UNEXPECTED_STATUS] == len(sent) - outcomes[OK]
    assert statuses == {
        status: sum(response.status == status for response in sent)
        for status in {response.status for response in sent}
    }
    assert received == sum(response.size for response in sent)
    assert len(kept) == len(sent)


@given(responses())
def test_a_response_byte_by_byte(response: Response) -> None:
    """It may be cut at any place."""
    bench = Bench(response.method)
    bench.receive(*(response.content[at : at + 1] for at in range(len(response.content))))
    assert bench.kept == [response.is_kept]
    assert bench.execution.tally.statuses == {response.status: 1}
    assert bench.execution.tally.bytes_received == response.size


@given(responses("GET"), st.data())
def test_a_response_that_ends_early_is_none(response: Response, data: st.DataObject) -> None:
    """It does not count, whatever is missing at its end."""
    bench = Bench()
    bench.receive(*cut(data, response.content[: data.draw(st.integers(0, len(response.content) - 1))]))
    bench.end()
    assert bench.execution.outcomes[DISCONNECTED] == 1
    assert bench.execution.tally.bytes_received == 0


@given(responses("GET"), st.sampled_from([b"x", b"HTTP/1.1", PLAIN, b"\0", b"0\r\n\r\n"]), st.data())
def test_what_comes_with_a_response_answers_nobody(
    response: Response, surplus: bytes, data: st.DataObject
) -> None:
    """The response counts, the connection is given up, and nothing of it is remembered."""
    bench = Bench()
    pieces = [piece for piece in cut(data, response.content) if piece]
    pieces[-1] += surplus
    if data.draw(st.booleans()):
        bench.receive(response.content)  # it is known then, if it may be
        bench.connect()
        bench.kept.clear()
    ended = bench.execution.ended

    bench.receive(*pieces)

    assert bench.kept == [False]
    assert bench.execution.ended == ended + 1
    assert bench.execution.tally.statuses.keys() <= {response.status}
    assert bench.known.find(pieces[-1]) is None


@given(content=st.binary(max_size=200), is_http=st.booleans())
def test_any_bytes_end_in_one_outcome_for_each_request(content: bytes, *, is_http: bool) -> None:
    """It does not matter what a server sends."""
    bench = Bench()
    bench.receive(b"HTTP/1.1 200 OK\r\n" * is_http + content)
    bench.end()
    assert bench.execution.ended == sum(bench.execution.outcomes) == len(bench.kept)
    assert bench.execution.in_flight == 0


SHORT_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
LONG_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nX: ".ljust(LONGEST_HEAD_BYTES - 4, b"y") + b"\r\n\r\n"
)
TWO_PLAIN = b"HTTP/1.1 201 Any\r\nContent-Length: %d\r\n\r\n" % (2 * len(PLAIN))
MANY = [
    b"HTTP/1.1 200 OK\r\nX: %d\r\nContent-Length: %d\r\n\r\n" % (kind, turn) + b"x" * turn
    for turn in range(3)
    for kind in range(400)
]


def list_alike(length: int) -> list[bytes]:
    """Answers that differ by a byte, by their status or by their length, three times."""
    heads = [b"HTTP/1.1 %d Any\r\nContent-Length: %d\r\n\r\n" % (status, length) for status in (200, 201)]
    shorter = b"HTTP/1.1 200 Any\r\nContent-Length: %d\r\n\r\n" % (length - 1) + b"x" * (length - 1)
    return [*(head + each * length for head in heads for each in (b"x", b"y")), shorter] * 3


def test_what_answers_count_as() -> None:
    """Statuses, bytes and reuse are those of each answer, known or not; HEAD has answers without a body."""
    known = [PLAIN, PLAIN, PLAIN[:5], PLAIN[5:], PLAIN, PLAIN[:-1], PLAIN[-1:], PLAIN]
    table: list[tuple[str, str, list[bytes], dict[int, int], int, bool]] = [
        *(
            (f"alike, {length}", "GET", list_alike(length), {200: 9, 201: 6}, 15 * length - 3, True)
            for length in (1, LONGEST_BYTES, LONGEST_BYTES + 1, 10 * LONGEST_BYTES)
        ),
        ("more than can be known", "GET", MANY, {200: 1200}, 1200, True),
        ("in pieces after a known one", "GET", known, {200: 6}, 12, True),
        (
            "a body like a known answer",
            "GET",
            [PLAIN, TWO_PLAIN, PLAIN, PLAIN],
            {200: 1, 201: 1},
            2 + 2 * len(PLAIN),
            True,
        ),
        ("a body too long for a head", "GET", [LONG_HEAD + b"x" * 100_000], {200: 1}, 100_000, True),
        ("head and body", "GET", [SHORT_HEAD, b"hi", PLAIN], {200: 2}, 4, True),
        ("the same to HEAD", "HEAD", [SHORT_HEAD] * 3, {200: 3}, 0, True),
        ("a body to HEAD", "HEAD", [PLAIN], {200: 1}, 0, False),
    ]
    found = []
    for name, method, pieces, *_ in table:
        bench = Bench(method, status=(ExpectedStatus("2xx"),))
        bench.receive(*pieces)
        outcomes, statuses, received, kept = bench.tell()
        assert outcomes == make_counts(len(kept))
        found.append((name, method, pieces, statuses, received, all(kept)))
    assert found == table


def build_varied(number: int, body: bytes) -> bytes:
    """An answer whose id, date and body are its own."""
    head = b"HTTP/1.1 200 OK\r\nDate: day %d\r\nX-Request-Id: %x\r\n" % (number // 7, number**3)
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def test_answers_that_differ_in_their_values_are_counted_as_they_are() -> None:
    """Also those that come in pieces, and between others."""
    bench = Bench()
    bodies = [b"x" * (number % 30) for number in range(300)]
    for number, body in enumerate(bodies):
        answer = build_varied(number, body)
        bench.receive(*([answer] if number % 5 else [answer[:20], answer[20:]]), PLAIN)
    assert bench.tell() == (make_counts(600), {200: 600}, sum(map(len, bodies)) + 600, [True] * 600)


def test_checks_look_into_every_answer_however_it_is_recognised() -> None:
    """Each is judged by its own head and body."""
    bench = Bench(body=("good",), header=(Header("X-Request-Id:"),), size=(SizeBound(">= 5"),))
    bench.receive(*(build_varied(number, b"good" + b"y" * (number % 3)) for number in range(30)))
    bench.receive(*(build_varied(number, b"bad" * 3) for number in range(10)))
    assert bench.execution.outcomes[OK] == 20
    assert bench.execution.outcomes[FAILED_CHECK] == 20


def test_an_answer_that_comes_again_is_looked_up_from_then_on() -> None:
    """A check that looks inside would take longer."""
    bench = Bench(body=("a",))
    first, second = build_varied(1, b"a"), build_varied(2, b"a")
    bench.receive(first, second)
    assert bench.known.find(second) is None
    bench.receive(second)
    assert bench.known.find(second) == (OK, 200, 1, "")


UNTIL_CLOSE = [
    b"HTTP/1.0 200 OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX-Content-Length: 99\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    b"\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
]
WITH_LENGTH = [
    b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nConnection: close\r\nCONTENT-LENGTH:9\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length : 9\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: gzip, chunked\r\n\r\n9\r\n",
    b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: gzip,\r\n chunked\r\n\r\n9\r\n",
    b"HTTP/1.1 103 Hints\r\n\r\nHTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\n",
    b"\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\n",
]


def test_a_body_without_a_length_ends_with_its_connection() -> None:
    """Only an orderly end counts, and not for a body whose length is given, however that is written."""
    reset = ConnectionResetError()
    table = [
        *((head, None, OK, 2) for head in UNTIL_CLOSE),
        *((head, reset, DISCONNECTED, 0) for head in UNTIL_CLOSE),
        *((head, None, DISCONNECTED, 0) for head in WITH_LENGTH),
    ]
    found = []
    for head, error, outcome, _ in table:
        for pieces in ([head + b"hi"], [head[:-3], head[-3:], b"h", b"i"]):
            bench = Bench()
            bench.receive(*pieces)
            assert bench.execution.ended == 0
            bench.end(error)
            assert (sum(bench.execution.outcomes), bench.kept) == (1, [False])
        found.append((head, error, outcome if bench.execution.outcomes[outcome] else -1, bench.tell()[2]))
    assert found == table


@pytest.mark.parametrize("where", ["idle", "before the head", "in the head", "in the body", "after it"])
def test_a_connection_that_ends_in_any_state(where: str) -> None:
    """A request in flight has one outcome; without one, nothing is counted."""
    bench = Bench()
    if where == "idle":
        bench.go_on = lambda connection, now_ns: connection.rest(now_ns)  # type: ignore[method-assign]
    parts = {"before the head": 0, "in the head": 9, "in the body": len(PLAIN) - 1}
    bench.receive(PLAIN[: parts.get(where, len(PLAIN))])
    bench.end()
    is_answered = where in ("idle", "after it")
    assert bench.execution.outcomes[OK] == is_answered
    assert bench.execution.outcomes[DISCONNECTED] == (where != "idle")


def test_a_closed_connection_says_nothing_more() -> None:
    """Neither what still arrives nor its end counts for anybody."""
    bench = Bench()
    bench.connection.close()
    bench.connection.data_received(PLAIN)
    bench.connection.connection_lost(None)
    assert (bench.execution.ended, bench.kept) == (0, [])
    assert not bench.connection.is_usable


def test_what_nobody_asked_for_ends_an_idle_connection() -> None:
    """It does so whether or not the response is known."""
    for surplus in (PLAIN, b"x"):
        bench = Bench()
        bench.go_on = lambda connection, now_ns: connection.rest(now_ns)  # type: ignore[method-assign]
        bench.receive(PLAIN)
        assert bench.connection.is_usable
        bench.receive(surplus)
        assert bench.transport.is_aborted
        assert bench.execution.ended == 1


def test_what_is_complete_after_the_limit_is_a_timeout() -> None:
    """It is one even if the same response was seen before."""
    bench = Bench()
    bench.receive(PLAIN)
    bench.limit.ns = bench.route.ok_ns = 0
    bench.receive(PLAIN, PLAIN[:5], PLAIN[5:])
    assert (bench.execution.outcomes[OK], bench.execution.outcomes[TIMEOUT]) == (1, 2)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000,
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * LONGEST_HEAD_BYTES,
        b"HTTP/1.1 103 Hints\r\n\r\n" * 20_000,
    ],
)
@pytest.mark.parametrize("piece", [100, 10_000, 10**6])
def test_a_head_without_end(head: bytes, piece: int) -> None:
    """It soon ends as a `protocol_error`, in small pieces and in large ones."""
    bench = Bench()
    bench.receive(*(head[at : at + piece] for at in range(0, len(head), piece)))
    assert bench.execution.outcomes[PROTOCOL_ERROR] == 1
    assert str(LONGEST_HEAD_BYTES) in str(bench.reasons[0])


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("is_large", [True, False])
async def test_an_answer_before_the_request_is_out(*, is_known: bool, is_large: bool) -> None:
    """It ends the connection: the rest would stand between the server and the next request."""
    bench = Bench()
    if is_known:
        bench.receive(PLAIN)
    bench.connection.start_request(bench.route, bench.execution.tally, 1, 0, 0)
    bench.connection.send(b"x" * (100_000 if is_large else 10))
    bench.transport.unsent = 50_000 if is_large else 0
    bench.receive(PLAIN)
    assert bench.execution.outcomes[TIMEOUT] + bench.execution.outcomes[OK] == 1 + is_known
    assert bench.kept[-1] is not is_large


JSON = b'HTTP/1.1 200 OK\r\nX-Cache: HIT\r\nContent-Length: 13\r\n\r\n{"order": 17}'
CHECKS: list[tuple[dict[str, Any], str]] = [
    ({"body": ("order_id",)}, "check body"),
    ({"body": ("order", "17")}, ""),
    ({"match": (r"order\b.*18",)}, "check match"),
    ({"match": (r"order.*1\d",)}, ""),
    ({"json": (JsonValue("/order=18"),)}, "check json /order"),
    ({"json": (JsonValue("/order=17"),)}, ""),
    ({"header": (Header("X-Cache: MISS"),)}, "check header X-Cache"),
    ({"header": (Header("x-cache: HIT"), Header("Content-Length:"))}, ""),
    ({"size": (SizeBound("< 13"),)}, "check size"),
    ({"size": (SizeBound(">= 13"), SizeBound("13"))}, ""),
    ({"within_s": 1e-9}, "check within"),
    ({"within_s": 3600.0}, ""),
    ({"status": (ExpectedStatus("404"),), "body": ("order_id",)}, "status 200"),
]
"""What is expected of the answer above, and why it fails then; an unexpected status comes first."""


def test_an_answer_is_checked_whether_or_not_it_was_seen_before() -> None:
    """It is a complete answer all the same; each time, whole or in pieces, and with a reason if it fails."""
    for pieces in ([JSON], [JSON[:-7], JSON[-7:]]):
        found = []
        for expect, _ in CHECKS:
            bench = Bench(**expect)
            bench.receive(*pieces * 3)
            tally = bench.execution.tally
            assert (tally.statuses, tally.bytes_received, sum(tally.outcomes)) == ({200: 3}, 39, 3)
            reasons = [count.reason for count in tally.failures.build_reasons() if count.requests == 3]
            outcome = FAILED_CHECK if reasons[:1] != ["status 200"] else UNEXPECTED_STATUS
            assert tally.outcomes[outcome if reasons else OK] == 3
            found.append((expect, "".join(reasons)))
        assert found == CHECKS


@given(st.data(), st.sampled_from(["GET", "HEAD"]))
def test_answers_that_are_cut_are_timed_in_two_parts(data: st.DataObject, method: str) -> None:
    """Each one in several pieces is told of once, whatever came before it, and no other one is."""
    bench, split = Bench(method), 0
    for response in data.draw(st.lists(responses(method), max_size=8)):
        if bench.transport.is_aborted:
            bench.connect()
        pieces = [piece for piece in cut(data, response.content) if piece]
        bench.receive(*pieces)
        split += len(pieces) > 1
    part = OpenPart(bench.execution.tally).build()
    latency, first_byte, transfer = map(
        part.histogram, (Time.SPLIT_LATENCY, Time.SPLIT_FIRST_BYTE, Time.TRANSFER)
    )
    assert (latency.total, transfer.total) == (split, split)
    assert latency.sum_us == first_byte.sum_us + transfer.sum_us <= part.histogram(Time.LATENCY).sum_us


def test_an_answer_to_a_request_that_is_still_being_sent_may_come_in_one_piece() -> None:
    """It came before the request was out; nothing of it was waited for."""
    bench = Bench()
    bench.connection.send(b"x" * (LARGE_REQUEST_BYTES + 1))
    bench.receive(PLAIN, PLAIN[:-1], PLAIN[-1:])
    assert bench.execution.tally.times[Time.TRANSFER].build_snapshot().total == 1


def test_an_answer_in_two_pieces_that_is_too_late_is_not_timed() -> None:
    """It is no answer any more."""
    bench = Bench()
    bench.limit.ns = bench.route.ok_ns = 0
    bench.receive(PLAIN[:-1], PLAIN[-1:])
    assert bench.execution.outcomes[TIMEOUT] == 1
    assert Time.TRANSFER not in bench.execution.tally.times


def test_a_connection_tells_its_first_request_how_long_it_took() -> None:
    """Also if it was made ahead, and once: those that follow have it for nothing."""
    bench = Bench()
    bench.receive(PLAIN, PLAIN)
    assert bench.execution.tally.times[Time.CONNECT].build_snapshot().total == 1

    ahead = Connection(bench, bench.route)
    ahead.connect_us = 250
    ahead.connection_made(bench.transport)
    assert bench.execution.tally.times[Time.CONNECT].build_snapshot().total == 1
    for _ in range(2):
        tally, coordinate, _, due_ns = bench.feed.pop()
        ahead.start_request(bench.route, tally, coordinate, 0, due_ns)
    connect, tls = (bench.execution.tally.times[time].build_snapshot() for time in (Time.CONNECT, Time.TLS))
    assert (connect.min_us, connect.total, tls.total) == (250, 2, 1)


async def test_a_long_request_is_given_to_the_transport_in_pieces() -> None:
    """Each when the server has read enough, and none is a copy; then the next request may follow."""
    bench = Bench()
    bench.receive(PLAIN)
    request = bytes(range(256)) * 1000
    bench.connection.start_request(bench.route, bench.execution.tally, 1, 0, 0)
    bench.transport.written.clear()
    bench.connection.send(request)
    bench.connection.pause_writing()
    for _ in range(5):
        await asyncio.sleep(0)
    written: list[Any] = bench.transport.written
    assert len(written) == 1
    bench.connection.resume_writing()
    for _ in range(5):
        await asyncio.sleep(0)
    assert b"".join(written) == request
    assert all(piece.obj is request and len(piece) <= PIECE_BYTES for piece in written)
    bench.receive(PLAIN)
    assert bench.kept[-1]


@pytest.mark.parametrize("ends", ["answer", "close"])
async def test_nothing_more_is_sent_of_a_long_body_when_its_request_has_ended(ends: str) -> None:
    """With an answer before it was out the connection ends, too."""
    bench = Bench(follows=b"x" * 3 * PIECE_BYTES)
    bench.connection.pause_writing()
    await asyncio.sleep(0)
    if ends == "answer":
        bench.receive(PLAIN)
        assert not bench.kept[-1]
    else:
        bench.connection.close()
    written = len(bench.transport.written)
    bench.connection.resume_writing()
    await asyncio.sleep(0)
    assert len(bench.transport.written) == written
    assert bench.transport.is_aborted


async def test_a_body_that_all_requests_have_follows_each_of_them() -> None:
    """Whether its request is the first on its connection or not."""
    bench = Bench(follows=b"x" * 2 * PIECE_BYTES)
    for _ in range(2):
        for _ in range(5):
            await asyncio.sleep(0)
        assert b"".join(bench.transport.written) == b"request" + b"x" * 2 * PIECE_BYTES
        bench.transport.written.clear()
        bench.receive(PLAIN)
