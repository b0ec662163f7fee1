"""What the engine for HTTP/2 does beside the contract of all engines, with targets and a clock in memory."""

import asyncio

import pytest
from tests.kit.workers.engine_benches import settle
from tests.kit.workers.http2_benches import MultiplexedBench
from tests.kit.workers.scheduled_bench import ScheduledBench, build_open_spec, list_waves

from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Engine
from oku_core.spec.values.url import Url
from oku_workers.engines.engine_registry import build_engine
from oku_workers.executions.tally import OK


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
    bench.feed.on_due = lambda: None
    execution = bench.add(list_waves(bench.schedule)[0])
    bench.time.turn(0.05)
    bench.time.now_ns += 3600 * 10**9

    assert bench.feed.has_room()

    assert execution.ended == 0
    await engine.close()
