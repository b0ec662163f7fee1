"""The races of the engine, with a client that the test holds in its hand."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from aiohttp import ClientConnectionError, ClientSession

from oku_core.messaging.lease import Lease
from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Spec
from oku_workers.engines.aiohttp.engine import AiohttpEngine
from oku_workers.executions.execution import DISCONNECTED, OK, TIMEOUT, Execution
from oku_workers.executions.feed import Feed

SPEC = Spec(urls=("http://host/{i}",), concurrency=3, timeout_s=3600.0)
RESPONSE = SimpleNamespace(connection=None, status=200, content=SimpleNamespace(total_bytes=2))

Send = Callable[[int], Awaitable[Any]]


@dataclass
class Bench:
    """An engine whose requests do what `send` does with their index."""

    feed: Feed = field(default_factory=Feed)
    started: list[int] = field(default_factory=list)
    answers: dict[int, asyncio.Future[Any]] = field(default_factory=dict)
    send: Send | None = None
    engine: AiohttpEngine = None  # type: ignore[assignment]

    async def request(self, _: str, url: Any, **__: object) -> Any:
        """Stands for `ClientSession.request`."""
        index = int(url.path[1:])
        self.started.append(index)
        if self.send is not None:
            return await self.send(index)
        self.answers[index] = asyncio.get_running_loop().create_future()
        return await self.answers[index]

    def answer(self, index: int) -> None:
        """Complete a response."""
        self.answers[index].set_result(RESPONSE)

    def add(self, start: int, stop: int) -> Execution:
        """Give the engine a lease."""
        lease = Lease(id=f"{start}", run="r1", start=start, stop=stop, start_by=0.0, spec=SPEC)
        execution = Execution(lease, asyncio.get_running_loop().create_future())
        self.feed.add(execution)
        return execution


async def settle() -> None:
    """Let everything happen that can happen without time going by."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    """A bench that is swept at the end."""
    bench = Bench()
    monkeypatch.setattr(ClientSession, "request", lambda _, *args, **kwargs: bench.request(*args, **kwargs))
    bench.engine = AiohttpEngine(SPEC, bench.feed, Supervisor())
    bench.engine.start()
    yield bench
    await asyncio.wait_for(bench.engine.close(), 1)


async def test_it_keeps_the_window_full(bench: Bench) -> None:
    """Whoever is answered makes room for the next index, over the border of leases."""
    first, second = bench.add(0, 4), bench.add(4, 8)
    await settle()
    assert (bench.started, bench.engine.in_flight) == ([0, 1, 2], 3)
    for index in range(5):
        bench.answer(index)
        await settle()
        assert bench.started == list(range(index + 4))
    assert first.finished.done()
    assert second.in_flight == 3


async def test_there_is_a_slot_for_each_request_and_not_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window may be larger than all leases in hand: what is never used takes no memory."""
    bench, before = Bench(), len(asyncio.all_tasks())
    monkeypatch.setattr(ClientSession, "request", lambda _, *args, **kwargs: bench.request(*args, **kwargs))
    spec = msgspec.structs.replace(SPEC, concurrency=1000)
    bench.engine = AiohttpEngine(spec, bench.feed, Supervisor())
    bench.engine.start()
    try:
        for start in range(0, 100, 10):
            execution = bench.add(start, start + 10)
            await settle()
            assert bench.engine.in_flight == 10
            assert len(asyncio.all_tasks()) - before <= 12
            for index in range(start, start + 10):
                bench.answer(index)
            await settle()
            assert execution.finished.done()
        bench.add(100, 110)
        bench.add(110, 150)
        await settle()
        assert bench.engine.in_flight == 50
    finally:
        await bench.engine.close()


async def test_a_cut_off_request_is_given_back(bench: Bench) -> None:
    """Its slot goes on with the next lease."""
    first = bench.add(0, 3)
    await settle()
    second = bench.add(3, 6)

    bench.engine.cut_off(first)
    await settle()

    assert first.finished.done()
    assert first.unfinished == [0, 1, 2]
    assert (bench.started, second.in_flight) == ([0, 1, 2, 3, 4, 5], 3)


async def test_a_cut_that_meets_a_complete_response(bench: Bench) -> None:
    """The index has one of both ends: it is given back, and its slot does not stumble over the answer."""
    first = bench.add(0, 3)
    await settle()

    bench.answer(1)
    bench.engine.cut_off(first)
    await settle()

    assert (first.unfinished, first.outcomes[OK]) == ([0, 1, 2], 0)
    assert first.finished.done()
    second = bench.add(3, 6)
    await settle()
    assert second.in_flight == 3


async def test_a_second_cut_does_nothing(bench: Bench) -> None:
    """Neither at once nor later."""
    first = bench.add(0, 3)
    await settle()
    bench.engine.cut_off(first)
    bench.engine.cut_off(first)
    await settle()
    second = bench.add(3, 6)
    await settle()
    bench.engine.cut_off(first)
    await settle()
    assert (first.unfinished, second.in_flight, bench.engine.in_flight) == ([0, 1, 2], 3, 3)


async def test_the_first_of_two_cuts_counts(bench: Bench) -> None:
    """A request that is cut off for its time is a timeout, also when its lease ends at the same moment."""
    execution = bench.add(0, 3)
    await settle()
    slots = list(bench.engine._slots)
    slots[0].cut(TIMEOUT)
    bench.engine.cut_off(execution)
    await settle()
    assert (execution.outcomes[TIMEOUT], execution.unfinished) == (1, [1, 2])
    assert [slot.task.cancelling() for slot in slots if slot.task] == [0, 0, 0]


async def test_a_cut_leaves_other_leases_alone(bench: Bench) -> None:
    """Also those whose slots had requests of this lease before."""
    first, second = bench.add(0, 4), bench.add(4, 9)
    await settle()
    for index in (0, 1):
        bench.answer(index)
    await settle()
    assert bench.started == [0, 1, 2, 3, 4]

    bench.engine.cut_off(first)
    await settle()

    assert first.unfinished == [2, 3]
    assert (second.unfinished, second.in_flight) == ([], 3)


async def test_a_cut_while_nothing_is_in_flight(bench: Bench) -> None:
    """Slots that wait for an index go on waiting."""
    first = bench.add(0, 1)
    await settle()
    bench.answer(0)
    await settle()
    bench.engine.cut_off(first)
    await settle()
    second = bench.add(1, 4)
    await settle()
    assert second.in_flight == 3


@pytest.mark.parametrize("end", ["error", "answer"])
async def test_a_client_that_makes_something_else_of_a_cut(bench: Bench, end: str) -> None:
    """A cut that comes back as another error is one; one that was overlooked is none; the next one works."""

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
    first = bench.add(0, 3)
    await settle()
    bench.engine.cut_off(first)
    await settle()
    assert first.finished.done()
    assert (first.unfinished, first.outcomes[OK]) == (([0, 1, 2], 0) if end == "error" else ([], 3))

    second = bench.add(3, 6)
    await settle()
    bench.engine.cut_off(second)
    await settle()
    assert second.unfinished == [3, 4, 5]


async def test_closing_gives_back_what_is_in_flight(bench: Bench) -> None:
    """And takes nothing more."""
    execution = bench.add(0, 10)
    await settle()
    await bench.engine.close()
    assert execution.unfinished == [0, 1, 2]
    assert (bench.started, bench.engine.in_flight) == ([0, 1, 2], 0)


async def test_closing_right_after_a_cut(bench: Bench) -> None:
    """Two cancellations of one task are one; nobody waits for the second."""
    execution = bench.add(0, 3)
    await settle()
    bench.engine.cut_off(execution)
    await asyncio.wait_for(bench.engine.close(), 1)
    assert execution.unfinished == [0, 1, 2]


async def test_closing_while_slots_wake(bench: Bench) -> None:
    """Those that were woken by a lease and have not taken an index take none."""
    await settle()
    execution = bench.add(0, 3)
    await bench.engine.close()
    assert (bench.started, execution.has_begun) == ([], False)


async def test_requests_that_fail_without_waiting_hold_nobody_up(bench: Bench) -> None:
    """A lease of nothing but such requests leaves the event loop room for others."""

    async def send(_: int) -> Any:
        raise ClientConnectionError("at once")

    bench.send = send
    execution = bench.add(0, 1000)
    await settle()
    assert 0 < execution.ended < 100
    await asyncio.wait_for(execution.finished, 5)
    assert execution.outcomes[DISCONNECTED] == 1000


async def test_the_first_error_of_a_kind_is_told(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """In one line; a count alone would not say what to mend."""

    async def send(_: int) -> Any:
        raise ClientConnectionError("over\nand out")

    bench.send = send
    with caplog.at_level(logging.WARNING):
        await asyncio.wait_for(bench.add(0, 20).finished, 1)
    assert caplog.messages == ["first disconnected: ClientConnectionError: over and out"]


async def test_what_ends_after_the_limit_is_a_timeout(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it was answered or failed in the end, and whether or not anybody looked in time."""
    execution = bench.add(0, 3)
    await settle()
    for slot in bench.engine._slots:
        slot.sent_ns = 1  # long ago
    monkeypatch.setattr(bench.engine, "_limit_ns", 1)
    bench.answers[0].set_exception(ClientConnectionError())
    await settle()
    assert execution.outcomes[TIMEOUT] == 1


async def test_a_fault_of_our_own_does_not_leave_its_lease_hanging(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever waits for the lease learns of it, and so does the log."""

    def fail(*_: object, **__: object) -> None:
        raise ArithmeticError("cannot count")

    execution = bench.add(0, 3)
    await settle()
    with monkeypatch.context() as patch:
        patch.setattr(Execution, "answer", fail)
        bench.answer(0)
        await settle()

    with pytest.raises(ArithmeticError):
        await asyncio.wait_for(execution.finished, 1)
    assert "cannot count" in caplog.text
    assert bench.engine.in_flight == 2


async def test_a_slot_that_fails_ends_its_lease_and_goes_on_after_a_pause(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The lease is given to others, and the window is as large as before."""
    monkeypatch.setattr("oku_core.process.supervision.FIRST_PAUSE_S", 0.0)
    first = bench.add(0, 3)
    await settle()
    with monkeypatch.context() as fault:
        fault.setattr(Execution, "answer", fail)
        bench.answer(0)
        await settle()
    assert isinstance(first.finished.exception(), ZeroDivisionError)
    assert "requests: ZeroDivisionError: unforeseen; trying again" in caplog.text
    for index in (1, 2):
        bench.answer(index)
    await asyncio.sleep(0.01)
    bench.add(10, 20)
    await settle()
    assert bench.started == [0, 1, 2, 10, 11, 12]


def fail(*_: object, **__: object) -> None:
    """A fault of our own."""
    raise ZeroDivisionError("unforeseen")
