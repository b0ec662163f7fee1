"""What the engine for HTTP/2 does beside the contract of all engines, with targets and a clock in memory."""

import asyncio

import pytest
from tests.kit.workers.engine_benches import settle
from tests.kit.workers.http2_benches import MultiplexedBench

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
