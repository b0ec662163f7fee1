"""Runs over HTTP/2 from the command line to the target: each index is answered once, and counts once."""

import asyncio
from collections import Counter

from tests.kit.http2.frames import Setting
from tests.kit.http2.server import Http2Server, StreamExchange
from tests.kit.http2.serving import serving
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import Start

ENGINE = ("--engine", "nghttp2", "--quiet")


def test_what_was_not_looked_at_is_sent_again_and_counts_once(start: Start) -> None:
    """Neither refused streams nor a server that leaves after every 50 requests is seen in the account."""
    answered: Counter[int] = Counter()
    refused: set[int] = set()

    async def script(exchange: StreamExchange) -> None:
        if exchange.turn == 49:
            exchange.session.go_away(exchange.stream)
        if exchange.index % 7 == 0 and exchange.index not in refused:
            refused.add(exchange.index)
            exchange.refuse()
            return
        await asyncio.sleep(0.002)
        if not exchange.is_over:
            answered[exchange.index] += 1
            await exchange.respond(body=b"hi")

    with serving(Http2Server(script)) as server:
        load = ("--requests", "1000", "--workers", "2", "--concurrency", "40", "--url", f"{server.url}/{{i}}")
        summary = start("run", *load, *ENGINE).finish()

    assert_completed(summary)
    assert summary["outcomes"]["ok"] == 1000
    assert summary["resent_at_most"] == 0
    assert answered == Counter(range(1000))
    assert server.faults == []


def test_what_finds_no_stream_in_time_is_not_sent(start: Start) -> None:
    """It waits nowhere unseen: the target gets what it has streams for, and the rest has a cause."""

    async def script(exchange: StreamExchange) -> None:
        await asyncio.sleep(0.1)
        await exchange.respond(body=b"hi")

    with serving(Http2Server(script, settings={Setting.MAX_CONCURRENT_STREAMS: 2})) as server:
        load = ("--rate", "100/s", "--duration", "2s", "--late", "50ms", "--workers", "1")
        streams = ("--streams", "10", "--connections", "1", "--url", f"{server.url}/{{i}}")
        summary = start("run", *load, *streams, *ENGINE).finish()

    assert_completed(summary)
    outcomes, not_sent = summary["outcomes"], summary["not_sent"]
    assert outcomes["ok"] + outcomes["not_sent"] == 200
    assert server.received == len(set(server.targets)) == outcomes["ok"]
    # Two at a time, each for a tenth of a second.
    assert 2 <= outcomes["ok"] <= 2 * (2.2 / 0.1 + 1)
    assert not_sent["in_flight_cap"] >= 100
    assert (server.connections, server.faults) == (1, [])
