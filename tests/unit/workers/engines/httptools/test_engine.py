"""What the httptools engine does beside the contract of all engines, with connections that the test makes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.kit.workers.engine_benches import LAST_ANSWER, HttptoolsBench, settle

from oku_core.accounting.outcome import OK, TIMEOUT
from oku_core.http_client.idle_pool import KEEPALIVE_S
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.url import parse_urls
from oku_workers.engines.http.connection_set import CONNECTING_AT_ONCE

BuildBench = Callable[..., HttptoolsBench]


@pytest.fixture
async def build_bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[BuildBench]:
    """Makes a bench with a spec of the test; its engine is closed at the end, and leaves no connection."""
    benches: list[HttptoolsBench] = []

    def build(**changes: Any) -> HttptoolsBench:
        benches.append(HttptoolsBench(monkeypatch, **changes))
        return benches[-1]

    yield build
    for bench in benches:
        await asyncio.wait_for(bench.engine.close(), 1)
        assert bench.connecting == 0
        assert all(transport.is_aborted for transport in bench.open)


@pytest.fixture
async def bench(build_bench: BuildBench) -> HttptoolsBench:
    """An engine that sends three requests at a time and has an hour for each."""
    return build_bench()


async def test_a_connection_takes_the_next_request(bench: HttptoolsBench) -> None:
    """It does so at once, also when that is of the next lease."""
    bench.add((0, 4))
    bench.add((4, 8))
    await settle()
    for number in range(5):
        bench.open[number % 3].answer()
        assert bench.sent == list(range(number + 4))
    assert len(bench.open) == 3


async def test_a_connection_that_was_the_last_makes_room(bench: HttptoolsBench) -> None:
    """Another connection is made in its place."""
    execution = bench.add((0, 10))
    await settle()
    bench.open[0].answer(LAST_ANSWER)
    await settle()
    assert (bench.sent, bench.engine.in_flight, len(bench.open)) == ([0, 1, 2, 3], 3, 4)
    assert (execution.outcomes[OK], bench.open[0].is_aborted) == (1, True)


async def test_what_is_cut_off_in_the_turn_of_its_answers_is_finished_at_once(bench: HttptoolsBench) -> None:
    """The answers that have come count, and what followed them is given back."""
    execution = bench.add((0, 30))
    await settle()
    for number in range(6):
        bench.answer(number)
    bench.feed.shorten(execution, 0)
    bench.engine.cancel(execution)
    assert execution.finished.done()
    assert (execution.outcomes[OK], execution.given_back) == (6, [6, 7, 8])


@pytest.mark.parametrize("turns", range(6))
async def test_closing_at_any_turn_of_the_event_loop_leaves_no_connection(
    bench: HttptoolsBench, turns: int
) -> None:
    """Those that are being made end as well as those that are open."""
    bench.add((0, 10))
    for _ in range(turns):
        await asyncio.sleep(0)
    await asyncio.wait_for(bench.engine.close(), 1)
    assert bench.connecting == 0
    assert all(transport.is_aborted for transport in bench.open)


async def test_connections_are_made_in_steps(build_bench: BuildBench) -> None:
    """Requests that must wait for one are not taken."""
    bench = build_bench(concurrency=1000)
    bench.may_connect.clear()
    execution = bench.add((0, 5000))
    await settle()
    assert bench.connecting == execution.in_flight == bench.engine.in_flight == CONNECTING_AT_ONCE
    bench.may_connect.set()
    await settle()
    assert bench.engine.in_flight == len(bench.open) == 1000


@pytest.mark.parametrize(("due", "made"), [(0, 0), (2, 2), (9, 3)])
async def test_connections_are_made_before_the_first_requests_are_due(
    build_bench: BuildBench, monkeypatch: pytest.MonkeyPatch, due: int, made: int
) -> None:
    """As many as will be needed at once, and no more than the window; the requests go out on them."""
    bench = build_bench()
    monkeypatch.setattr(bench.feed, "count_first", lambda _: due)
    await settle()
    assert (len(bench.open), bench.sent, bench.engine.in_flight) == (made, [], 0)
    bench.add((0, 3))
    await settle()
    assert (len(bench.open), bench.sent) == (3, [0, 1, 2])


async def test_what_cannot_be_connected_ahead_counts_as_nothing(
    build_bench: BuildBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request that comes later tries again."""
    bench = build_bench()
    monkeypatch.setattr(bench.feed, "count_first", lambda _: 3)
    bench.refuses = True
    await settle()
    bench.refuses = False
    execution = bench.add((0, 3))
    await settle()
    assert (bench.sent, execution.ended) == ([0, 1, 2], 0)


async def test_connections_that_are_made_ahead_end_with_the_engine(
    build_bench: BuildBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while they are being made."""
    bench = build_bench()
    monkeypatch.setattr(bench.feed, "count_first", lambda _: 3)
    bench.may_connect.clear()
    await settle()
    assert bench.connecting == 3
    await asyncio.wait_for(bench.engine.close(), 1)
    assert bench.connecting == 0


async def test_a_run_that_keeps_no_connection_makes_none_ahead(
    build_bench: BuildBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its requests has one of its own."""
    bench = build_bench(headers=(Header("Connection: close"),))
    monkeypatch.setattr(bench.feed, "count_first", lambda _: 3)
    await settle()
    assert bench.open == []


async def test_idle_connections_wait_for_the_next_lease(bench: HttptoolsBench) -> None:
    """They are used again."""
    bench.add((0, 3))
    await settle()
    for transport in bench.open:
        transport.answer()
    assert bench.engine.in_flight == 0
    execution = bench.add((3, 6))
    await settle()
    assert (execution.in_flight, len(bench.open)) == (3, 3)


async def test_an_idle_connection_that_ends_counts_as_nothing(bench: HttptoolsBench) -> None:
    """Another one is made when it is needed."""
    bench.add((0, 3))
    await settle()
    for transport in bench.open:
        transport.answer()
    bench.open[0].connection.connection_lost(None)
    bench.open[1].connection.connection_lost(ConnectionResetError())
    for transport in bench.open[:2]:
        transport.is_aborted = True
    execution = bench.add((3, 6))
    await settle()
    assert (execution.in_flight, execution.ended, len(bench.open)) == (3, 0, 5)


async def test_each_url_has_connections_of_its_own(build_bench: BuildBench) -> None:
    """Two URLs of one origin share theirs."""
    bench = build_bench(urls=parse_urls(["http://a/{i}", "http://b/{i}", "http://a/{i}"]), concurrency=1)
    execution = bench.add((0, 60))
    while not execution.finished.done():
        await settle()
        for transport in bench.open:
            if transport.connection.execution is not None:
                transport.answer()
    assert bench.sent == list(range(60))
    hosts = [
        {request.split(b"Host: ")[1].split(b"\r\n")[0] for request in transport.received}
        for transport in bench.open
    ]
    assert sorted(hosts, key=str) == [{b"a"}, {b"b"}]


async def test_connecting_counts_towards_the_limit(bench: HttptoolsBench) -> None:
    """A connection that is not made in time is not waited for any more."""
    bench.may_connect.clear()
    execution = bench.add((0, 3))
    await settle()
    bench.advance(3601)
    bench.engine.sweep()
    await settle()
    assert (execution.outcomes[TIMEOUT], bench.connecting) == (3, 0)


async def test_idle_connections_are_swept_by_a_limit_of_their_own(build_bench: BuildBench) -> None:
    """They outlive the timeout of requests, and are closed before most servers close them."""
    bench = build_bench(timeout_s=0.02)
    bench.add((0, 1))
    await settle()
    bench.open[0].answer()
    bench.advance(1)
    bench.engine.sweep()
    assert not bench.open[0].is_aborted
    bench.advance(KEEPALIVE_S)
    bench.engine.sweep()
    assert bench.open[0].is_aborted
