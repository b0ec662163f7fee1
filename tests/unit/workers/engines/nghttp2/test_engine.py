"""What the nghttp2 engine does beside the contract of all engines, with servers that the test makes."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.kit.http2.frames import ErrorCode, Setting, build_headers
from tests.kit.workers.engine_benches import settle
from tests.kit.workers.http2_benches import Http2Transport, MultiplexedBench, Nghttp2Bench
from tests.kit.workers.scheduled_bench import ScheduledBench, build_open_spec, list_waves

from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import CONNECT_ERROR, DISCONNECTED, OK, PROTOCOL_ERROR, TIMEOUT
from oku_core.http_client.error_reason import CUT_SHORT, HUNG_UP, NO_HTTP2, STREAM_REFUSED
from oku_core.http_client.http1_connection import PIECE_BYTES
from oku_core.http_client.idle_pool import KEEPALIVE_S
from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Engine
from oku_core.spec.values.url import Url, parse_urls
from oku_workers.engines.contract import engine_protocol
from oku_workers.engines.contract.engine_protocol import FILES_BESIDE
from oku_workers.engines.engine_registry import build_engine
from oku_workers.engines.http.connection_set import CONNECTING_AT_ONCE
from oku_workers.engines.nghttp2.engine import MOST_REFUSALS
from oku_workers.executions.execution import Execution

BuildBench = Callable[..., MultiplexedBench]
WIDE = bytes.fromhex("00000604000000000000047fffffff0000040800000000007fff0000")
"""SETTINGS with the widest window of a stream, and a WINDOW_UPDATE of the connection."""


@pytest.fixture
async def build_bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[BuildBench]:
    """Makes a bench with a spec of the test; its engine is closed at the end, and leaves no connection."""
    benches: list[MultiplexedBench] = []

    def build(**changes: Any) -> MultiplexedBench:
        benches.append(MultiplexedBench(monkeypatch, **changes))
        return benches[-1]

    yield build
    for bench in benches:
        await asyncio.wait_for(bench.engine.close(), 1)
    for bench in benches:
        check_left(bench)


def check_left(bench: Nghttp2Bench) -> None:
    """Nothing is left of an engine that is closed: no connection, and no task."""
    assert all(transport.is_aborted for transport in bench.open)
    assert asyncio.all_tasks() <= {asyncio.current_task()}
    assert [fault for transport in bench.open for fault in transport.session.faults] == []


@pytest.fixture
async def bench(build_bench: BuildBench) -> MultiplexedBench:
    """An engine that sends three requests at a time on one connection, and has an hour for each."""
    return build_bench()


def list_targets(transport: Http2Transport) -> list[int]:
    """The indices that were asked for on a connection."""
    return [int(request.target[1:]) for request in transport.requests]


def find_reasons(execution: Execution) -> dict[str, int]:
    """Why requests have failed, and how many."""
    reasons = [each for tally in execution.tallies for each in tally.failures.build_reasons()]
    return {reason.reason: reason.requests for reason in reasons}


async def answer_all(bench: Nghttp2Bench, execution: Execution) -> None:
    """Answer whatever is asked for until a lease is finished."""
    while not execution.finished.done():
        await settle()
        for transport in bench.open:
            for stream in sorted(transport.session.open_streams):
                transport.answer(stream)


# Connections and streams.


@pytest.mark.parametrize(
    ("spec", "made"),
    [
        ({"concurrency": 10}, [10]),
        ({"concurrency": 11}, [10, 1]),
        ({"concurrency": 30, "streams": 100}, [30]),
        ({"concurrency": 30, "streams": 7}, [7, 7, 7, 7, 2]),
        ({"concurrency": 30, "connections": 2}, [10, 10]),
        ({"concurrency": 5, "connections": 3}, [2, 2, 1]),
    ],
)
async def test_there_are_as_many_connections_as_the_window_needs(
    build_bench: BuildBench, spec: dict[str, int], made: list[int]
) -> None:
    """Or as the spec says; then no more is in flight than their streams hold."""
    bench = build_bench(**spec)
    execution = bench.add((0, 1000))
    await settle()
    counts = sorted((len(transport.requests) for transport in bench.open), reverse=True)
    assert (len(counts), sum(counts)) == (len(made), sum(made))
    assert (bench.engine.in_flight, execution.in_flight, bench.engine.window) == (sum(made),) * 3
    assert max(counts) <= spec.get("streams", 10)


async def test_more_connections_are_made_where_a_server_allows_few_streams(
    build_bench: BuildBench, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says so."""
    bench = build_bench(concurrency=9)
    bench.settings = {Setting.MAX_CONCURRENT_STREAMS: 3}
    with caplog.at_level(logging.WARNING):
        execution = bench.add((0, 90))
        await answer_all(bench, execution)
    assert execution.outcomes[OK] == 90
    assert [transport.session.most_open for transport in bench.open] == [3, 3, 3]
    assert caplog.messages == ["http://host allows 3 streams at a time on a connection, not 10"]


async def test_a_connection_takes_the_next_request(build_bench: BuildBench) -> None:
    """It does so at once, also when that is of the next lease."""
    bench = build_bench()
    bench.add((0, 4))
    bench.add((4, 8))
    await settle()
    for number in range(5):
        bench.answer(number)
        await settle()
        assert bench.sent == list(range(number + 4))
    assert len(bench.open) == 1
    # A limit of no streams is kept.
    bench = build_bench()
    bench.settings = {Setting.MAX_CONCURRENT_STREAMS: 0}
    execution = bench.add((0, 10))
    await settle()
    assert (bench.sent, execution.in_flight) == ([], len(bench.open))
    for transport in bench.open:
        transport.session.change_settings({Setting.MAX_CONCURRENT_STREAMS: 10})
    await settle()
    assert (bench.sent, execution.in_flight) == ([0, 1, 2], 3)
    # Nothing is sent before the server has said what it allows.
    bench = build_bench()
    bench.settings = None
    execution = bench.add((0, 10))
    await settle()
    assert (len(bench.open), bench.sent, execution.in_flight) == (1, [], 1)
    bench.open[0].begin({})
    await settle()
    assert (len(bench.open), bench.sent, execution.in_flight) == (1, [0, 1, 2], 3)


async def test_connections_are_made_in_steps(
    build_bench: BuildBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests that must wait for one are not taken."""
    bench = build_bench(concurrency=1000, streams=1)
    bench.may_connect.clear()
    execution = bench.add((0, 5000))
    await settle()
    assert execution.in_flight == bench.engine.in_flight == CONNECTING_AT_ONCE
    bench.may_connect.set()
    while bench.engine.in_flight < 1000:
        await settle()
    assert len(bench.open) == 1000
    # No more connections are made than there may be files. Each of them has its streams all the same.
    monkeypatch.setattr(engine_protocol, "read_open_files", lambda: FILES_BESIDE + 2)
    bench = build_bench(concurrency=100)
    bench.add((0, 1000))
    await settle()
    assert (len(bench.open), bench.engine.in_flight, bench.engine.window) == (2, 20, 20)


async def test_each_url_has_connections_of_its_own(build_bench: BuildBench) -> None:
    """Two URLs of one origin share theirs."""
    bench = build_bench(urls=parse_urls(["http://a/{i}", "http://b/{i}", "http://a/{i}"]), concurrency=2)
    execution = bench.add((0, 60))
    await answer_all(bench, execution)
    assert bench.sent == list(range(60))
    hosts = [{request.header("host")[0] for request in transport.requests} for transport in bench.open]
    assert sorted(hosts, key=str) == [{"a"}, {"b"}]


async def test_a_window_may_change(bench: MultiplexedBench) -> None:
    """What is in flight beyond it may end."""
    execution = bench.add((0, 100))
    await settle()
    bench.engine.set_window(5)
    await settle()
    assert (execution.in_flight, bench.engine.window) == (5, 5)
    bench.engine.set_window(2)
    for index in range(3):
        bench.answer(index)
        await settle()
    assert (execution.in_flight, bench.sent) == (2, [0, 1, 2, 3, 4])
    bench.answer(3)
    await settle()
    assert (execution.in_flight, bench.sent) == (2, [0, 1, 2, 3, 4, 5])
    assert len(bench.open) == 1


# Connections before there is a request, and after there was one.


@pytest.mark.parametrize(("due", "made"), [(0, 0), (2, 1), (15, 2), (99, 3)])
async def test_connections_are_made_before_the_first_requests_are_due(
    build_bench: BuildBench, monkeypatch: pytest.MonkeyPatch, due: int, made: int
) -> None:
    """As many as will be needed at once, and no more than the window; the requests go out on them."""
    bench = build_bench(concurrency=30)
    monkeypatch.setattr(bench.feed, "count_first", lambda _: due)
    await settle()
    assert (len(bench.open), bench.sent, bench.engine.in_flight) == (made, [], 0)
    bench.add((0, 30))
    await settle()
    assert (len(bench.open), bench.sent) == (3, list(range(30)))


async def test_what_cannot_be_connected_ahead_counts_as_nothing(
    bench: MultiplexedBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request that comes later tries again."""
    monkeypatch.setattr(bench.feed, "count_first", lambda _: 3)
    bench.refuses = True
    await settle()
    bench.refuses = False
    execution = bench.add((0, 3))
    await settle()
    assert (bench.sent, execution.ended) == ([0, 1, 2], 0)


@pytest.mark.parametrize("turns", range(8))
@pytest.mark.parametrize("is_made", [False, True])
async def test_closing_at_any_turn_of_the_event_loop_leaves_no_connection(
    bench: MultiplexedBench, turns: int, *, is_made: bool
) -> None:
    """Those that are being made end as well as those that are open."""
    if not is_made:
        bench.may_connect.clear()
    execution = bench.add((0, 10))
    for _ in range(turns):
        await asyncio.sleep(0)
    await asyncio.wait_for(bench.engine.close(), 1)
    check_left(bench)
    assert sorted(execution.given_back) == list(range(execution.taken))
    assert set(execution.given_back) - set(execution.untouched) == set(bench.sent)


@pytest.mark.parametrize("error", [None, ConnectionResetError()])
async def test_an_idle_connection_that_ends_counts_as_nothing(
    bench: MultiplexedBench, error: Exception | None
) -> None:
    """Another one is made when it is needed."""
    await answer_all(bench, bench.add((0, 3)))
    bench.open[0].connection.connection_lost(error)
    bench.open[0].is_aborted = True
    execution = bench.add((3, 6))
    await settle()
    assert (execution.in_flight, execution.ended, len(bench.open)) == (3, 0, 2)


async def test_idle_connections_are_swept_by_a_limit_of_their_own(build_bench: BuildBench) -> None:
    """They outlive the timeout of requests, and are closed before most servers close them."""
    bench = build_bench(timeout_s=0.02)
    await answer_all(bench, bench.add((0, 1)))
    bench.advance(1)
    bench.engine.sweep()
    assert not bench.open[0].is_aborted
    bench.advance(KEEPALIVE_S)
    bench.engine.sweep()
    assert bench.open[0].is_aborted


async def test_an_idle_connection_waits_for_the_next_lease(build_bench: BuildBench) -> None:
    """It is used again."""
    bench = build_bench()
    await answer_all(bench, bench.add((0, 5)))
    assert bench.engine.in_flight == 0
    execution = bench.add((5, 8))
    await settle()
    assert (execution.in_flight, len(bench.open)) == (3, 1)
    # How long connecting took is noted once.
    bench = build_bench()
    execution = bench.add((0, 20))
    await answer_all(bench, execution)
    [tally] = execution.tallies
    assert tally.times[Time.CONNECT].build_snapshot().total == 1


# What ends without an answer.


@pytest.mark.parametrize("made", [False, True])
async def test_waiting_for_a_connection_counts_towards_the_limit(
    bench: MultiplexedBench, *, made: bool
) -> None:
    """Whether it cannot be made in time, or its server says nothing; others get connections of their own."""
    bench.settings = None
    if not made:
        bench.may_connect.clear()
    execution = bench.add((0, 1))
    await settle()
    bench.advance(3601)
    bench.engine.sweep()
    await settle()
    assert (execution.outcomes[TIMEOUT], execution.finished.done(), bench.engine.in_flight) == (1, True, 0)
    bench.settings = {}
    bench.may_connect.set()
    following = bench.add((1, 4))
    await settle()
    assert (following.in_flight, bench.sent[-1:]) == (3, [3])


async def test_a_timeout_leaves_its_connection(build_bench: BuildBench) -> None:
    """The stream is reset, and the next request takes its place, as long as anything comes."""
    bench = build_bench()
    execution = bench.add((0, 100))
    await settle()
    bench.advance(1000)
    bench.answer(1)
    await settle()
    bench.advance(2601)
    bench.engine.sweep()
    await settle()
    assert (execution.outcomes[TIMEOUT], execution.outcomes[OK], len(bench.open)) == (2, 1, 1)
    resets = {stream.reset for stream in bench.open[0].session.streams.values()} - {None}
    assert resets == {ErrorCode.CANCEL}
    assert (bench.sent, execution.in_flight) == ([0, 1, 2, 3, 4, 5], 3)
    # A connection of which nothing comes gets no further requests. Nobody may be there any more.
    bench = build_bench()
    execution = bench.add((0, 100))
    await settle()
    bench.advance(10)
    for index in range(3):
        bench.answer(index)
    await settle()
    bench.advance(3601)
    bench.engine.sweep()
    await settle()
    assert execution.outcomes[TIMEOUT] == 3
    assert [list_targets(transport) for transport in bench.open] == [[0, 1, 2, 3, 4, 5], [6, 7, 8]]
    assert bench.open[0].is_aborted


async def test_a_cut_resets_streams_and_keeps_the_connection(build_bench: BuildBench) -> None:
    """The server learns of it, and what follows goes on where it was."""
    bench = build_bench()
    first = bench.add((0, 3))
    await settle()
    second = bench.add((3, 6))
    bench.engine.cancel(first)
    await settle()
    assert (first.given_back, first.untouched) == ([0, 1, 2], [])
    assert (second.in_flight, len(bench.open)) == (3, 1)
    resets = [stream.reset for stream in bench.open[0].session.streams.values()]
    assert resets == [ErrorCode.CANCEL] * 3 + [None] * 3
    # What had no stream is given back as untouched. Nobody has seen it.
    bench = build_bench()
    bench.settings = None
    execution = bench.add((0, 3))
    await settle()
    bench.feed.shorten(execution, 0)
    bench.engine.cancel(execution)
    assert (execution.given_back, execution.untouched, bench.engine.in_flight) == ([0], [0], 0)


async def test_a_server_of_another_protocol_is_asked_for_nothing(
    build_bench: BuildBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request ends with the reason, and none of them is sent."""
    bench = build_bench()
    bench.settings = None
    execution = bench.add((0, 20))
    while not execution.finished.done():
        await settle()
        for transport in bench.open:
            if not transport.is_aborted:
                transport.session.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert (execution.outcomes[CONNECT_ERROR], find_reasons(execution)) == (20, {NO_HTTP2: 20})
    assert bench.sent == []
    # A tls server that has not agreed on http2 is asked for nothing.
    bench = build_bench()
    monkeypatch.setattr(Http2Transport, "selected_alpn_protocol", lambda _: None)
    execution = bench.add((0, 20))
    await asyncio.wait_for(execution.finished, 1)
    assert (execution.outcomes[CONNECT_ERROR], find_reasons(execution)) == (20, {NO_HTTP2: 20})
    assert bench.sent == []


@pytest.mark.parametrize("error", [None, ConnectionResetError(104, "reset")])
@pytest.mark.parametrize(("is_tls", "reasons"), [(False, {NO_HTTP2}), (True, {HUNG_UP, "reset"})])
async def test_a_server_that_hangs_up_on_the_first_bytes_speaks_no_http2(
    bench: MultiplexedBench,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception | None,
    reasons: set[str],
    *,
    is_tls: bool,
) -> None:
    """Unless TLS has agreed on it."""
    bench.settings = None
    execution = bench.add((0, 1))
    await settle()
    if not is_tls:
        monkeypatch.setattr(Http2Transport, "get_extra_info", lambda *_: None)
    bench.open[0].is_aborted = True
    bench.open[0].connection.connection_lost(error)
    await settle()
    assert (execution.outcomes[CONNECT_ERROR], bench.sent) == (1, [])
    assert find_reasons(execution).keys() <= reasons


async def test_the_end_of_a_connection_ends_what_is_in_flight_on_it(build_bench: BuildBench) -> None:
    """The server has hung up on the other requests."""
    bench = build_bench()
    execution = bench.add((0, 3))
    await settle()
    transport = bench.open[0]
    transport.session.send_headers(transport.requests[0].stream, [(":status", "200")])
    await settle()
    transport.abort()
    await settle()
    assert execution.outcomes[DISCONNECTED] == 3
    assert find_reasons(execution) == {CUT_SHORT: 1, HUNG_UP: 2}
    # A fault of a connection ends all that is in flight on it.
    bench = build_bench()
    execution = bench.add((0, 100))
    await settle()
    bench.open[0].session.send(build_headers(0, [(":status", "200")]))
    await settle()
    assert execution.outcomes[PROTOCOL_ERROR] == 3
    assert find_reasons(execution) == {"not HTTP/2: PROTOCOL_ERROR": 3}
    assert [list_targets(transport) for transport in bench.open] == [[0, 1, 2], [3, 4, 5]]
    # A connection that is lost ends all that is in flight on it.
    bench = build_bench()
    execution = bench.add((0, 100))
    await settle()
    bench.open[0].session.go_away(code=ErrorCode.ENHANCE_YOUR_CALM)
    await settle()
    assert execution.ended == 0
    bench.open[0].abort()
    await settle()
    assert execution.outcomes[DISCONNECTED] == 3
    assert find_reasons(execution) == {"the server hung up: ENHANCE_YOUR_CALM": 3}


# What the server has not looked at.


async def test_what_the_server_has_not_looked_at_is_sent_again(build_bench: BuildBench) -> None:
    """What was taken ends on the old one, which is closed then; what was not looked at counts once."""
    bench = build_bench()
    execution = bench.add((0, 6))
    await settle()
    bench.open[0].session.go_away(last_stream=3)
    await settle()
    assert [list_targets(transport) for transport in bench.open] == [[0, 1, 2], [2]]
    for index in (0, 1):
        transport = bench.open[0]
        transport.answer(transport.requests[index].stream)
    await settle()
    assert bench.open[0].is_aborted
    assert sorted(list_targets(bench.open[1])) == [2, 3, 4]
    bench.open[0].requests.clear()
    await answer_all(bench, execution)
    assert (execution.outcomes[OK], execution.ended, len(bench.open)) == (6, 6, 2)
    # A refused stream is sent again.
    bench = build_bench()
    execution = bench.add((0, 5))
    await settle()
    bench.open[0].session.reset(bench.open[0].requests[1].stream, ErrorCode.REFUSED_STREAM)
    await settle()
    assert list_targets(bench.open[0]) == [0, 1, 2, 1]
    await answer_all(bench, execution)
    assert (execution.outcomes[OK], execution.ended) == (5, 5)
    # A stream that is always refused fails.
    bench = build_bench()
    execution = bench.add((0, 3))
    for turn in range(MOST_REFUSALS):
        await settle()
        transport = bench.open[0]
        for request in transport.requests[3 * turn :]:
            transport.session.reset(request.stream, ErrorCode.REFUSED_STREAM)
    await asyncio.wait_for(execution.finished, 1)
    assert (execution.outcomes[DISCONNECTED], find_reasons(execution)) == (3, {STREAM_REFUSED: 3})
    assert len(bench.open[0].requests) == 3 * MOST_REFUSALS
    assert bench.sent == [each for each in range(3) for _ in range(MOST_REFUSALS)]
    # What was refused and waits is given back as untouched.
    bench = build_bench()
    execution = bench.add((0, 3))
    await settle()
    session = bench.open[0].session
    session.change_settings({Setting.MAX_CONCURRENT_STREAMS: 0})
    session.reset(bench.open[0].requests[1].stream, ErrorCode.REFUSED_STREAM)
    bench.may_connect.clear()
    await settle()
    bench.engine.cancel(execution)
    await settle()
    assert (execution.given_back, execution.untouched) == ([0, 1, 2], [1])


async def test_refusals_are_counted_for_each_request(build_bench: BuildBench) -> None:
    """However many there were of those before it."""
    bench = build_bench(concurrency=1)
    execution = bench.add((0, 20))
    refused: set[str] = set()
    while not execution.finished.done():
        await settle()
        transport = bench.open[0]
        for request in transport.requests:
            if request.stream in transport.session.open_streams:
                if request.target in refused:
                    transport.answer(request.stream)
                else:
                    refused.add(request.target)
                    transport.session.reset(request.stream, ErrorCode.REFUSED_STREAM)
    assert (execution.outcomes[OK], len(refused)) == (20, 20)
    # A url that cannot be asked for holds nobody up. Requests to other URLs are sent.
    bench = build_bench(urls=(Url("http://h:port/{i}"), Url("http://a/{i}")))
    execution = bench.add((0, 20))
    await answer_all(bench, execution)
    assert (execution.outcomes[OK], execution.outcomes[CONNECT_ERROR]) == (10, 10)
    assert bench.sent == list(range(1, 20, 2))


async def test_a_connection_that_is_about_to_end_gets_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its server has hung up, and the event loop has not said so yet: the request goes to another one."""
    bench = MultiplexedBench(monkeypatch)
    first = bench.add((0, 1))
    await settle()
    bench.answer(0)
    await settle()
    assert first.finished.done()

    bench.open[0].abort()
    second = bench.add((1, 2))
    bench.engine.set_window(3)
    await settle()
    bench.answer(1)
    await settle()

    assert (second.outcomes[OK], len(bench.open)) == (1, 2)
    await asyncio.wait_for(bench.engine.close(), 1)


async def test_whether_there_is_room_takes_nothing_from_the_feed() -> None:
    """It is the feed that asks: what has become too late meanwhile stays there until it is done with that."""
    spec = build_open_spec(
        "10/s", 1.0, urls=(Url("http://one/{i}"), Url("http://other/{i}")), engine=Engine.NGHTTP2
    )
    bench = ScheduledBench(spec)
    engine = build_engine(spec, bench.feed, Supervisor())
    taker: Any = engine
    execution = bench.add(list_waves(bench.schedule)[0])
    bench.time.turn(0.05)
    bench.time.now_ns += 3600 * 10**9

    assert taker.has_room()

    assert execution.ended == 0
    await engine.close()


async def test_long_bodies_are_taken_in_pieces_however_wide_the_window_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server may allow all of them at once: they would be in memory once more. While paused, none comes."""
    body, written = "x" * 400_000, list[int]()
    monkeypatch.setattr(Http2Transport, "write", lambda _, data: written.append(len(data)))
    bench = MultiplexedBench(monkeypatch, body=body, method="POST", concurrency=3, streams=3)
    bench.settings = None
    bench.add((0, 3))
    await settle()
    [transport] = bench.open
    connection = transport.connection
    connection.data_received(WIDE)
    connection.pause_writing()
    await settle()
    before = sum(written)
    assert before < len(body)
    connection.resume_writing()
    for _ in range(10):
        await settle()
    assert sum(written) > 3 * len(body)
    assert max(written) <= PIECE_BYTES
    await bench.engine.close()
