"""What the aiohttp engine does beside the contract of all engines, with a client that the test is."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import MagicMock

import pytest
from aiohttp import ClientConnectionError
from tests.kit.workers.engine_benches import RESPONSE, AiohttpBench, settle

from oku_core.accounting.outcome import OK, TIMEOUT
from oku_workers.executions.tally import Tally


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AiohttpBench]:
    """An engine that sends three requests at a time, and is closed at the end."""
    bench = AiohttpBench(monkeypatch)
    yield bench
    await asyncio.wait_for(bench.engine.close(), 1)


async def test_there_is_a_slot_for_each_request_and_not_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window may be larger than all leases under way: what is never used takes no memory."""
    before = len(asyncio.all_tasks())
    bench = AiohttpBench(monkeypatch, concurrency=1000)
    try:
        for start in range(0, 100, 10):
            execution = bench.add((start, start + 10))
            await settle()
            assert bench.engine.in_flight == 10
            assert len(asyncio.all_tasks()) - before <= 12
            for index in range(start, start + 10):
                bench.answer(index)
            await settle()
            assert execution.finished.done()
        bench.add((100, 110))
        bench.add((110, 150))
        await settle()
        assert bench.engine.in_flight == 50
    finally:
        await bench.engine.close()


async def test_a_cut_that_meets_a_complete_response(bench: AiohttpBench) -> None:
    """The index has one of both ends: it is given back, and its slot does not stumble over the answer."""
    first = bench.add((0, 3))
    await settle()

    bench.answer(1)
    bench.engine.cancel(first)
    await settle()

    assert (first.given_back, first.outcomes[OK]) == ([0, 1, 2], 0)
    assert first.finished.done()
    second = bench.add((3, 6))
    await settle()
    assert second.in_flight == 3


@pytest.mark.parametrize("end", ["error", "answer"])
async def test_a_client_that_makes_something_else_of_a_cut(bench: AiohttpBench, end: str) -> None:
    """A request that is cut off is given back, even if it ends with an answer; the next cut works."""

    async def send(index: int) -> Any:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if index >= 3:
                raise
            if end == "error":
                raise ClientConnectionError("cancelled") from None
        return RESPONSE

    bench.send = send
    first = bench.add((0, 3))
    await settle()
    bench.engine.cancel(first)
    await settle()
    assert first.finished.done()
    assert (first.given_back, sum(first.outcomes)) == ([0, 1, 2], 0)

    second = bench.add((3, 6))
    await settle()
    bench.engine.cancel(second)
    await settle()
    assert second.given_back == [0, 1, 2]


class Swallower:
    """A client whose requests do not end when they are cut off, until the test lets them."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.end: Exception | None = None

    async def send(self, index: int) -> Any:
        """Send a request; those from the fourth on end as they should."""
        while not self.release.is_set():
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                if index >= 3:
                    raise
        if self.end is not None:
            raise self.end
        return RESPONSE


@pytest.mark.parametrize("error", [None, ClientConnectionError("late")])
@pytest.mark.parametrize("is_late", [True, False])
async def test_a_request_that_does_not_end_is_accounted_for_once(
    bench: AiohttpBench, error: Exception | None, *, is_late: bool
) -> None:
    """Another slot takes the place of its own; after five seconds people learn of it, until it has ended."""
    swallower = Swallower()
    swallower.end = error
    bench.send = swallower.send
    first = bench.add((0, 3))
    await settle()
    second = bench.add((3, 9))
    try:
        if is_late:
            bench.advance(3601)
            bench.engine.sweep()
        else:
            bench.engine.cancel(first)
        await settle()
        ends = (first.finished.done(), first.given_back, first.outcomes[TIMEOUT], sum(first.outcomes))
        assert ends == ((True, [], 3, 3) if is_late else (True, [0, 1, 2], 0, 0))
        assert (second.in_flight, bench.engine.in_flight) == (3, 3)
        assert bench.engine.group_in_flight() == {second: [3, 4, 5]}
        bench.advance(4)
        bench.engine.sweep()
        assert bench.supervisor.troubles == []
        bench.advance(2)
        bench.engine.sweep()
        assert bench.supervisor.troubles == ["requests: 3 did not end when they were cut off"]
    finally:
        swallower.release.set()
    await settle()
    bench.engine.sweep()
    assert bench.supervisor.troubles == []
    assert ends == (True, first.given_back, first.outcomes[TIMEOUT], sum(first.outcomes))


async def test_a_request_that_has_just_ended_is_not_given_back_as_well(bench: AiohttpBench) -> None:
    """A look at what is stuck may come between its end and the next request of its slot."""
    release = asyncio.Event()

    async def send(_: int) -> Any:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
        bench.advance(6)
        asyncio.get_running_loop().call_soon(bench.engine.sweep)
        raise ClientConnectionError("late")

    bench.send = send
    first = bench.add((0, 3))
    await settle()
    bench.engine.cancel(first)
    await settle()
    release.set()
    await settle()
    bench.engine.sweep()
    assert (first.finished.done(), first.given_back, sum(first.outcomes)) == (True, [0, 1, 2], 0)
    assert bench.supervisor.troubles == []


async def test_a_request_that_somebody_else_cancels_is_given_back_once(
    bench: AiohttpBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checkpoints do not name it twice, and after a pause its slot takes the next request."""
    monkeypatch.setattr("oku_core.process.supervision.FIRST_PAUSE_S", 0.0)

    async def send(index: int) -> Any:
        if index == 1:
            raise asyncio.CancelledError
        await asyncio.Event().wait()

    bench.send = send
    first = bench.add((0, 3))
    await settle()
    assert first.given_back == [1]
    assert bench.engine.group_in_flight() == {first: [0, 2]}
    assert "cancelled by something else than its engine" in bench.supervisor.troubles[0]
    second = bench.add((9, 20))
    await asyncio.sleep(0.01)
    assert bench.engine.group_in_flight() == {first: [0, 2], second: [9]}


async def test_an_engine_whose_requests_never_end_can_be_closed(
    bench: AiohttpBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run need not wait for it."""
    monkeypatch.setattr("oku_workers.engines.aiohttp.engine.STUCK_S", 0.01)
    swallower = Swallower()
    bench.send = swallower.send
    first = bench.add((0, 3))
    await settle()
    await asyncio.wait_for(bench.engine.close(), 1)
    assert first.given_back == [0, 1, 2]
    swallower.release.set()
    await settle()


async def test_an_error_after_the_limit_is_a_timeout(bench: AiohttpBench) -> None:
    """It counts as one although nobody has looked in time."""
    execution = bench.add((0, 3))
    await settle()
    bench.advance(3601)
    bench.break_off(0, ClientConnectionError())
    await settle()
    assert execution.outcomes[TIMEOUT] == 1


async def test_a_slot_that_fails_ends_its_lease_and_goes_on_after_a_pause(
    bench: AiohttpBench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The lease is given to others, and the window is as large as before."""
    monkeypatch.setattr("oku_core.process.supervision.FIRST_PAUSE_S", 0.0)
    first = bench.add((0, 3))
    await settle()
    with monkeypatch.context() as fault:
        fault.setattr(Tally, "answer", MagicMock(side_effect=ZeroDivisionError("unforeseen")))
        bench.answer(0)
        await settle()
    assert isinstance(first.finished.exception(), ZeroDivisionError)
    assert "requests: ZeroDivisionError: unforeseen; trying again" in caplog.text
    for index in (1, 2):
        bench.answer(index)
    await asyncio.sleep(0.01)
    bench.add((10, 20))
    await settle()
    assert bench.sent == [0, 1, 2, 10, 11, 12]
