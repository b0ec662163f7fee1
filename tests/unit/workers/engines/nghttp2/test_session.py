"""One connection without a socket: what comes of the frames of a server, and what the server gets to see."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.http2.frames import (
    ErrorCode,
    Fields,
    Kind,
    Setting,
    build_block,
    build_continuation,
    build_data,
    build_goaway,
    build_headers,
    build_ping,
    build_push_promise,
    build_reset,
    build_settings,
    build_window_update,
    encode_fields,
)
from tests.kit.http2.session import Session as ServerSession
from tests.kit.http2.session import StreamRequest

from oku_core.accounting.outcome import CONNECT_ERROR, DISCONNECTED, OK, PROTOCOL_ERROR
from oku_core.http_client.error_reason import HEADERS_TOO_LONG, MALFORMED_ANSWER, NO_HTTP2, STREAM_REFUSED
from oku_core.http_client.response_reader import LONGEST_HEAD_BYTES, MOST_HEADERS
from oku_core.spec.request_template import RequestTemplate
from oku_core.spec.target import Expectation
from oku_core.spec.values.check import ExpectedStatus
from oku_core.spec.values.url import Url
from oku_workers.engines.nghttp2.request import BuildRequest, Headers
from oku_workers.engines.nghttp2.route import Route, Stream
from oku_workers.engines.nghttp2.session import (
    CONNECTION_WINDOW_BYTES,
    STREAM_WINDOW_BYTES,
    Session,
    SessionClosedError,
)

OK_FIELDS = [(":status", "200")]
HEADERS: Headers = (
    (b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"host"), (b":path", b"/"),
)  # fmt: skip
HEAD: Headers = ((b":method", b"HEAD"), *HEADERS[1:])
POST: Headers = ((b":method", b"POST"), *HEADERS[1:])
LAST_STREAM = 2**31 - 1
NAMED = [code for code in ErrorCode if code is not ErrorCode.REFUSED_STREAM]


class Bench:
    """A session and its server, with nothing between them.

    Args:
        settings: what the server says first.
        begins: whether it says anything by itself.
    """

    def __init__(self, settings: Mapping[int, int] | None = None, *, begins: bool = True, **how: Any) -> None:
        self.session = Session()
        self.now_ns = 1000
        self.ended: list[Stream] = []
        self.requests: list[StreamRequest] = []
        self._pending: list[bytes] = []
        self.server = ServerSession(self._pending.append, settings, **how)
        if begins:
            self.server.begin()
            self.settle()

    def settle(self) -> None:
        """Let both say what they have to say."""
        while True:
            data = b""
            if not self.session.fault:
                data = self.session.take_bytes(1 << 30)
                self.ended += self.session.settle(self.now_ns)
            self.requests += self.server.feed(data)
            received = b"".join(self._pending)
            self._pending.clear()
            if not data and not received:
                return
            if received:
                self.ended += self.session.receive(received, self.now_ns)

    def open(self, headers: Headers = HEADERS, body: bytes | None = None, kept_bytes: int = 0) -> Stream:
        """Send a request."""
        build_body = None if body is None else lambda _: body
        template = RequestTemplate(
            url=Url("http://h/"),
            method="GET",
            headers=(),
            expect=Expectation(status=(ExpectedStatus("200"),)),
        )
        route = Route(template, BuildRequest(lambda _: headers, build_body), None, 1.0)
        route.kept_bytes = kept_bytes
        stream = Stream(route, build_no_tally(), 0, 0, self.now_ns, 0)
        self.session.open(stream, headers)
        self.settle()
        return stream

    def send(self, *frames: bytes) -> None:
        """Let the server say this, each in a piece of its own."""
        for frame in frames:
            if not self.session.fault:
                self.ended += self.session.receive(frame, self.now_ns)
        self.settle()

    def list_sent(self, kind: Kind) -> list[Any]:
        """What the server has got of that kind, without the stream of the connection's own."""
        return [frame for frame in self.server.frames if frame.kind == kind]


def build_no_tally() -> Any:
    """Sessions count nothing."""
    return None


def answer(stream: int, fields: Fields = OK_FIELDS, body: bytes = b"hi") -> bytes:
    """A whole answer."""
    return build_headers(stream, fields) + build_data(stream, body)


def fail_reason(stream: Stream) -> tuple[int, str]:
    """What a request counts as that has no answer, and why."""
    return stream.outcome, stream.reason


# What both sides say first.


def test_nothing_may_be_sent_before_the_settings_of_the_server() -> None:
    """Who does not begin with them does not speak HTTP/2."""
    bench = Bench(begins=False)
    assert (bench.session.is_ready, bench.session.has_news) == (False, False)
    bench.server.begin()
    bench.settle()
    assert (bench.session.is_ready, bench.session.has_news) == (True, True)
    assert bench.server.client == {Setting.ENABLE_PUSH: 0, Setting.INITIAL_WINDOW_SIZE: STREAM_WINDOW_BYTES}
    assert (bench.session.is_draining, bench.session.fault, bench.server.faults) == (False, "", [])


def test_the_window_of_the_connection_is_larger_than_that_of_a_stream() -> None:
    """One body that is slow to come leaves room for others."""
    bench = Bench()
    [update] = bench.list_sent(Kind.WINDOW_UPDATE)
    assert (update.stream, update.number) == (0, CONNECTION_WINDOW_BYTES - 65_535)
    # How many streams there may be is what the server said last.
    bench = Bench({Setting.HEADER_TABLE_SIZE: 0})
    assert bench.session.most_streams > 10**9
    said = [(Setting.MAX_CONCURRENT_STREAMS, 3), (Setting.HEADER_TABLE_SIZE, 100),
            (Setting.MAX_CONCURRENT_STREAMS, 0), (Setting.MAX_CONCURRENT_STREAMS, 7)]  # fmt: skip
    for (setting, value), most in zip(said, (3, 3, 0, 7), strict=True):
        bench.session.has_news = False
        bench.server.change_settings({setting: value})
        bench.settle()
        assert (bench.session.most_streams, bench.session.has_news) == (most, True)
    assert bench.server.is_confirmed


def test_what_changes_nothing_of_a_connection_is_no_news() -> None:
    """Nobody has to look at the connection for it."""
    bench = Bench()
    bench.open()
    bench.session.has_news = False
    updates = build_window_update(0, 100), build_window_update(1, 100)
    for frame in (build_ping(), *updates, build_headers(1, [(":status", "103")])):
        bench.send(frame)
        assert (bench.session.has_news, bench.session.fault) == (False, "")


# Whole answers.


@given(st.lists(st.integers(1, 60), max_size=4), st.sampled_from([None, b"body"]))
def test_an_answer_may_come_in_any_pieces(places: list[int], body: bytes | None) -> None:
    """The borders of what a socket gives are not those of frames."""
    bench = Bench()
    stream = bench.open(body=body, kept_bytes=100)
    content = build_headers(1, OK_FIELDS) + build_data(1, b"one", end=False) + build_data(1, b"two")
    borders = [0, *sorted(places), len(content)]
    bench.send(*(content[a:b] for a, b in pairwise(borders)))
    assert bench.ended == [stream]
    assert (stream.outcome, stream.received, bytes(stream.body)) == (OK, 6, b"onetwo")


def test_an_answer_may_have_no_body() -> None:
    """A length that it names is that of another answer."""
    for kept_bytes in (0, 100):
        for headers, fields in (
            (HEAD, [*OK_FIELDS, ("content-length", "9")]),
            (HEADERS, [(":status", "204")]),
            (HEADERS, [(":status", "304"), ("content-length", "9")]),
            (HEADERS, OK_FIELDS),
        ):
            bench = Bench()
            stream = bench.open(headers, kept_bytes=kept_bytes)
            bench.send(build_headers(1, fields, end=True))
            assert (bench.ended, stream.outcome, stream.received) == ([stream], OK, 0), fields


@pytest.mark.parametrize("body", [None, b"body"])
def test_trailers_stand_behind_the_headers(body: bytes | None) -> None:
    """They are looked at as these are."""
    bench = Bench()
    stream = bench.open(POST if body else HEADERS, body)
    bench.send(build_headers(1, [*OK_FIELDS, ("a", "b")]), build_data(1, b"hi", end=False))
    assert bench.ended == []
    bench.send(build_headers(1, [("grpc-status", "0")], end=True))
    assert (bench.ended, stream.outcome) == ([stream], OK)
    assert stream.headers == ((b":status", b"200"), (b"a", b"b"), (b"grpc-status", b"0"))


def test_a_complete_answer_ends_its_stream() -> None:
    """Its status stands first, its body is counted, and it has its time."""
    bench = Bench()
    first, second = bench.open(), bench.open()
    assert bench.session.streams == {1: first, 3: second}
    bench.now_ns = 2000
    bench.server.send_headers(3, [(":status", "404"), ("x-any", "y")])
    bench.settle()
    bench.now_ns = 3000
    bench.server.send_data(3, b"hello")
    bench.settle()
    assert (bench.ended, bench.session.streams) == ([second], {1: first})
    assert second.headers == ((b":status", b"404"), (b"x-any", b"y"))
    assert (second.outcome, second.received, second.first_ns, bytes(second.body)) == (OK, 5, 2000, b"")
    assert (first.outcome, first.headers, bench.server.faults) == (OK, (), [])
    # Of a body is kept what checks look into. All of it is counted.
    bench = Bench()
    stream = bench.open(kept_bytes=4)
    bench.send(build_headers(1, OK_FIELDS), build_data(1, b"abc", end=False), build_data(1, b"defg"))
    assert (bench.ended, bytes(stream.body), stream.received) == ([stream], b"abcd", 7)
    # Interim responses are passed over. The answer is the one after them, and its time begins with it.
    bench = Bench()
    stream = bench.open()
    bench.send(build_headers(1, [(":status", "103"), ("link", "x")]), build_headers(1, [(":status", "100")]))
    assert (stream.headers, stream.first_ns) == ((), 0)
    bench.now_ns = 5000
    bench.send(answer(1))
    assert (bench.ended, stream.headers, stream.first_ns) == ([stream], ((b":status", b"200"),), 5000)


def test_a_body_of_a_request_arrives_whole() -> None:
    """In as many frames as the server's windows demand."""
    bench = Bench({Setting.INITIAL_WINDOW_SIZE: 1000})
    body = bytes(range(256)) * 500
    bench.open(POST, body)
    [request] = bench.requests
    assert (request.method, request.body, bench.server.faults) == ("POST", body, [])


# Answers that come before their requests are out.


def open_stuck(**how: Any) -> tuple[Bench, Stream]:
    """A request for whose body the server has no room."""
    bench = Bench({Setting.INITIAL_WINDOW_SIZE: 10}, hears_early=True, grants=False)
    return bench, bench.open(POST, bytes(100), **how)


END_WITH_RESET = build_reset(1, ErrorCode.NO_ERROR)
END_WITH_TRAILERS = build_headers(1, [("a", "b")], end=True)
EARLY: dict[str, list[bytes]] = {
    "at once": [answer(1)],
    "in pieces": [build_headers(1, OK_FIELDS), build_data(1, b"hi")],
    "without a body": [build_headers(1, OK_FIELDS, end=True)],
    "with trailers": [build_headers(1, OK_FIELDS), END_WITH_TRAILERS],
    "and a reset at once": [answer(1) + END_WITH_RESET],
    "and a reset later": [answer(1), END_WITH_RESET],
    "trailers and a reset": [build_headers(1, OK_FIELDS) + END_WITH_TRAILERS + END_WITH_RESET],
}  # fmt: skip


@pytest.mark.parametrize("kept_bytes", [0, 100])
@pytest.mark.parametrize("name", EARLY)
def test_an_answer_before_the_request_is_out_counts(name: str, kept_bytes: int) -> None:
    """The rest of the request is not sent any more, and the connection goes on."""
    bench, stream = open_stuck(kept_bytes=kept_bytes)
    bench.send(*EARLY[name])
    assert (bench.ended, fail_reason(stream)) == ([stream], (OK, ""))
    assert (bench.session.streams, bench.session.fault) == ({}, "")
    bench.server.grant(0, 1000)
    following = bench.open()
    bench.send(answer(3))
    assert bench.ended == [stream, following]
    assert bench.server.faults == []


def test_an_answer_that_has_begun_does_not_end_its_request() -> None:
    """A server may answer as it reads."""
    bench, stream = open_stuck()
    bench.send(build_headers(1, OK_FIELDS) + build_data(1, b"h", end=False))
    assert bench.ended == []
    for _ in range(10):
        bench.server.grant(1, 10)
        bench.settle()
    assert bytes(bench.server.streams[1].body) == bytes(100)
    bench.send(build_data(1, b"i"))
    assert (bench.ended, stream.received, stream.outcome) == ([stream], 2, OK)
    # A reset before the request is out is the end of it.
    bench, stream = open_stuck()
    bench.send(END_WITH_RESET)
    assert (bench.ended, fail_reason(stream)) == ([stream], (DISCONNECTED, "stream reset: NO_ERROR"))


# Streams that end without an answer.


BEFORE_RESET = {
    "nothing": b"",
    "a head": build_headers(1, OK_FIELDS),
    "a part of a body": build_headers(1, OK_FIELDS) + build_data(1, b"h", end=False),
}


@pytest.mark.parametrize("code", NAMED, ids=lambda code: code.name)
@pytest.mark.parametrize("before", BEFORE_RESET)
def test_a_stream_that_is_reset_says_why(code: ErrorCode, before: str) -> None:
    """By the name that RFC 9113 gives the reason; the others go on."""
    bench = Bench()
    stream, other = bench.open(), bench.open()
    bench.send(BEFORE_RESET[before] + build_reset(1, code), answer(3))
    assert bench.ended == [stream, other]
    assert fail_reason(stream) == (DISCONNECTED, f"stream reset: {code.name}")
    assert not stream.is_refused
    assert fail_reason(other) == (OK, "")


def test_a_code_that_nobody_knows_has_no_name() -> None:
    """A number would make as many reasons as a server likes."""
    bench = Bench()
    stream = bench.open()
    bench.send(build_reset(1, 0xBEEF))
    assert fail_reason(stream) == (DISCONNECTED, "stream reset: unknown code")


@pytest.mark.parametrize("body", [None, b"body"])
def test_a_refused_stream_may_be_sent_again(body: bytes | None) -> None:
    """The server says that it has not looked at it; nothing is left of the first try."""
    bench = Bench()
    stream = bench.open(POST if body else HEADERS, body, kept_bytes=100)
    bench.send(build_headers(1, OK_FIELDS) + build_data(1, b"h", end=False))
    bench.send(build_reset(1, ErrorCode.REFUSED_STREAM))
    assert bench.ended == [stream]
    assert stream.is_refused
    assert fail_reason(stream) == (DISCONNECTED, STREAM_REFUSED)
    stream.prepare_retry()
    assert (stream.number, stream.received, bytes(stream.body), stream.is_refused) == (0, 0, b"", False)
    assert fail_reason(stream) == (OK, "")
    bench.session.open(stream, POST if body else HEADERS)
    bench.settle()
    bench.send(answer(3))
    assert bench.ended == [stream, stream]
    assert (fail_reason(stream), stream.received, bytes(stream.body)) == ((OK, ""), 2, b"hi")


MALFORMED: dict[str, Fields] = {
    "Connection": [*OK_FIELDS, ("connection", "close")],
    "no status": [("a", "b")],
    "a capital": [*OK_FIELDS, ("A", "b")],
    "less than the length": [*OK_FIELDS, ("content-length", "9")],
    "more than the length": [*OK_FIELDS, ("content-length", "1")],
}


@pytest.mark.parametrize("body", [None, b"body"])
@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_answer_is_that_of_one_stream(name: str, body: bytes | None) -> None:
    """The server is told, and the connection goes on (RFC 9113, section 8.1.1)."""
    bench = Bench()
    stream = bench.open(POST if body else HEADERS, body)
    bench.send(answer(1, MALFORMED[name]))
    assert bench.ended == [stream]
    assert fail_reason(stream) == (PROTOCOL_ERROR, MALFORMED_ANSWER)
    [reset] = bench.list_sent(Kind.RST_STREAM)
    assert (reset.stream, reset.number) == (1, ErrorCode.PROTOCOL_ERROR)
    other = bench.open()
    bench.send(answer(3))
    assert (bench.ended, other.outcome, bench.session.fault) == ([stream, other], OK, "")


def test_headers_that_are_too_long_are_not_sent() -> None:
    """The connection goes on without them."""
    bench = Bench()
    stream = bench.open((*HEADERS, (b"x", b"y" * (2 << 20))))
    assert (bench.ended, bench.requests) == ([stream], [])
    assert fail_reason(stream) == (CONNECT_ERROR, HEADERS_TOO_LONG)
    bench.open()
    assert len(bench.requests) == 1


@pytest.mark.parametrize("body", [None, bytes(100)])
def test_what_is_given_up_is_not_heard_of_again(body: bytes | None) -> None:
    """The server is told, and an answer that was on its way counts as nothing."""
    bench = Bench({Setting.INITIAL_WINDOW_SIZE: 10}, hears_early=True, grants=False)
    stream = bench.open(POST if body else HEADERS, body)
    bench.session.reset(stream)
    assert bench.session.streams == {}
    bench.send(answer(1))
    assert (bench.ended, bench.session.fault, stream.received) == ([], "", 0)
    assert [(reset.stream, reset.number) for reset in bench.list_sent(Kind.RST_STREAM)] == [
        (1, ErrorCode.CANCEL)
    ]


# The end of a connection.


def test_a_goaway_lets_what_was_taken_end() -> None:
    """What came after that was not looked at, and no further stream may be opened."""
    bench = Bench()
    first, second = bench.open(), bench.open()
    bench.session.has_news = False
    bench.send(build_goaway(1))
    assert (bench.session.is_draining, bench.session.has_news) == (True, True)
    assert (bench.session.farewell, bench.session.fault) == ("", "")
    assert (bench.ended, second.is_refused) == ([second], True)
    with pytest.raises(SessionClosedError):
        bench.open()
    assert bench.session.streams == {1: first}
    bench.send(answer(1))
    assert (bench.ended, first.outcome) == ([second, first], OK)
    # A first goaway may leave everything open.
    bench = Bench()
    stream = bench.open()
    bench.send(build_goaway(LAST_STREAM))
    assert (bench.ended, bench.session.is_draining) == ([], True)
    bench.send(build_goaway(1), answer(1))
    assert (bench.ended, stream.outcome) == ([stream], OK)
    for code, name in [(ErrorCode.ENHANCE_YOUR_CALM, "ENHANCE_YOUR_CALM"), (0xBEEF, "unknown code")]:
        # A goaway with an error says why. What was taken may end all the same.
        bench = Bench()
        stream = bench.open()
        bench.send(build_goaway(1, code))
        assert bench.session.farewell == f"the server hung up: {name}"
        bench.send(answer(1))
        assert (bench.ended, stream.outcome, bench.session.fault) == ([stream], OK, "")


def test_the_last_bytes_say_that_nothing_is_wrong() -> None:
    """A server may keep count of clients that leave without a word."""
    bench = Bench()
    bench.open()
    list(bench.server.feed(bench.session.take_last_bytes()))
    [goaway] = bench.list_sent(Kind.GOAWAY)
    assert goaway.payload == bytes(8)


BOMB = encode_fields([(":status", "200"), ("x", "y" * 4000)]) + b"\xbe" * 4000
LONG_FIELDS = [*OK_FIELDS, *[("x", "y" * 8000)] * (LONGEST_HEAD_BYTES // 8000 + 1)]
PUSHED = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "h")]
FAULTS: dict[str, bytes] = {
    "PING": build_ping() * 20_000,
    "SETTINGS": build_settings({1: 4096}) * 5000,
    "CONTINUATION": build_block(1, BOMB[:1], flags=0) + build_continuation(1, end=False) * 99,
    "many fields": build_headers(1, [*OK_FIELDS, *[("x", "y")] * MOST_HEADERS]),
    "long fields": build_headers(1, LONG_FIELDS, pieces=6),
    "a header bomb": build_block(1, BOMB),
    "a push": build_push_promise(1, 2, PUSHED),
    "HTTP/1.1": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "an answer without a request": answer(101),
    "a setting that is none": build_settings({Setting.ENABLE_PUSH: 2}),
    "a window that is too large": build_window_update(0, 2**31 - 1),
    "a block that cannot be read": build_block(1, b"\xfe"),
}


def test_a_fault_of_the_connection() -> None:
    """What was in flight stays to be accounted for, and nothing is sent on it any more."""
    for fault in FAULTS.values():
        bench = Bench()
        stream, other = bench.open(), bench.open()
        bench.session.has_news = False
        bench.send(fault)
        session = bench.session
        assert session.fault.startswith("not HTTP/2: ")
        assert session.fault.isprintable()
        assert len(session.fault) < 120
        assert (session.is_draining, session.has_news) == (True, True)
        assert (bench.ended, list(session.streams.values())) == ([], [stream, other])
        assert session.take_last_bytes() == b""
        session.reset(stream)
        assert list(session.streams.values()) == [other]
    for fault in FAULTS.values():
        # What ended before a fault counts. Although it came in the same piece.
        bench = Bench()
        stream, other = bench.open(), bench.open()
        bench.send(answer(3) + fault)
        assert (bench.ended, fail_reason(other)) == ([other], (OK, ""))
        assert bench.session.streams == {1: stream}
        assert bench.session.fault
    for name in ["PING", "many fields", "HTTP/1.1"]:
        # Nothing comes after a fault. Whatever the server may say.
        bench = Bench()
        bench.open()
        bench.send(FAULTS[name])
        assert bench.session.receive(answer(1), bench.now_ns) == []
        assert bench.session.fault.startswith("not HTTP/2: ")


def test_who_does_not_begin_with_settings_does_not_speak_http2() -> None:
    """Whatever is wrong with it in detail is of no interest."""
    cases: list[bytes] = [
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        b"220 mail.example ESMTP\r\n",
        build_ping(),
        build_headers(1, OK_FIELDS, end=True),
        build_settings(dict.fromkeys(range(100, 4000), 0)),
    ]
    for greeting in cases:
        bench = Bench(begins=False)
        bench.send(greeting)
        assert (bench.session.fault, bench.session.is_ready, bench.session.is_draining) == (
            NO_HTTP2,
            False,
            True,
        )
    # Half of the settings says nothing yet. The rest may come.
    session = Session()
    session.take_bytes(1 << 30)
    settings = build_settings({Setting.MAX_CONCURRENT_STREAMS: 3})
    assert session.receive(settings[:5], 0) == []
    assert (session.fault, session.is_ready) == ("", False)
    assert session.receive(settings[5:], 0) == []
    assert (session.most_streams, session.is_ready) == (3, True)
