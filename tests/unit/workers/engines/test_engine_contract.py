"""What every engine does, its races above all, with targets and a clock in memory."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

import pytest
from tests.kit.workers.engine_benches import AiohttpBench, EngineBench, HttptoolsBench, settle
from tests.kit.workers.http2_benches import MultiplexedBench, Nghttp2Bench
from tests.kit.workers.leftovers import without_collector

from oku_core.accounting.outcome import (
    CONNECT_ERROR,
    DISCONNECTED,
    FAILED_CHECK,
    OK,
    TIMEOUT,
    UNEXPECTED_STATUS,
    ReasonCount,
)
from oku_core.data.data_format import DataError, DataFormat
from oku_core.data.escape import IN_HEADER
from oku_core.data.row_reader import Value
from oku_core.http_client.error_reason import NO_ROW
from oku_core.process.supervision import Supervisor
from oku_core.spec.data_file import DataFile
from oku_core.spec.request_template import find_target_turns
from oku_core.spec.spec import HTTP_ENGINES, Engine, Spec
from oku_core.spec.target import Expectation, Target
from oku_core.spec.values.check import ExpectedStatus
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.url import Url
from oku_workers.engines.engine_registry import build_engine
from oku_workers.executions.tally import Tally
from oku_workers.feed.feed import Feed

BuildBench = Callable[..., EngineBench]
BENCHES: tuple[type[EngineBench], ...] = (AiohttpBench, HttptoolsBench, Nghttp2Bench, MultiplexedBench)


def test_each_engine_of_a_spec_has_a_bench() -> None:
    """An engine that is new is held to this contract as well."""
    assert {bench.kind for bench in BENCHES} == set(HTTP_ENGINES)


@pytest.fixture(params=BENCHES, ids=lambda bench: bench.__name__)
async def build_bench(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[BuildBench]:
    """Makes a bench with a spec of the test; its engine is closed at the end."""
    benches: list[EngineBench] = []

    def build(**changes: object) -> EngineBench:
        benches.append(request.param(monkeypatch, **changes))
        return benches[-1]

    yield build
    for bench in benches:
        await asyncio.wait_for(bench.engine.close(), 1)


@pytest.fixture
async def bench(build_bench: BuildBench) -> EngineBench:
    """An engine that sends three requests at a time and has an hour for each."""
    return build_bench()


@pytest.mark.parametrize("engine", HTTP_ENGINES)
@pytest.mark.parametrize("is_started", [False, True])
async def test_an_engine_without_work_can_be_closed(engine: Engine, *, is_started: bool) -> None:
    """Nothing is in flight, whether it has begun or not."""
    spec = Spec(urls=(Url("http://127.0.0.1/"),), engine=engine, concurrency=2)
    built = build_engine(spec, Feed(), Supervisor())
    if is_started:
        built.start()
    assert built.in_flight == 0
    await built.close()


class DamagedRows:
    """Of every three rows, the first one can be read."""

    values = (Value("sku", IN_HEADER),)

    def read(self, index: int) -> tuple[bytes, ...]:
        """The row of a request."""
        if index % 3:
            raise DataError("the data or its row index is damaged: offsets are out of order")
        return (b"s%d" % index,)


async def test_a_request_whose_row_cannot_be_read_fails(build_bench: BuildBench) -> None:
    """It counts once, as one that could not be sent; the others are sent, and their answers count."""
    data = DataFile(
        name="a.csv", format=DataFormat.CSV, digest="0" * 64, size=9, rows=9, columns=("sku",), index="1" * 64
    )
    bench = build_bench(rows=DamagedRows(), data=data, headers=(Header("X-Sku: {sku}"),), concurrency=1)
    execution = bench.add((0, 9))
    for index in (0, 3, 6):
        await settle()
        assert bench.sent[-1] == index
        bench.answer(index)
    await settle()
    assert (execution.outcomes[OK], execution.outcomes[CONNECT_ERROR], execution.ended) == (3, 6, 9)
    [tally] = execution.tallies
    assert tally.failures.build_reasons() == [ReasonCount(CONNECT_ERROR, NO_ROW, 6, 1, 8)]
    assert execution.finished.done()


async def test_each_answer_is_judged_and_counted_by_its_own_target(build_bench: BuildBench) -> None:
    """All have one origin and get the same answer: what is ok for one target is unexpected for another."""
    bench = build_bench(
        base_url=Url("http://host"), urls=(), concurrency=2,
        targets=(
            Target(name="any", weight=2, url="/{i}"),
            Target(name="other", url="/{i}", expect=Expectation(status=(ExpectedStatus("404"),))),
            Target(name="fast", url="/{i}", expect=Expectation(within_s=5.0)),
        ),
    )  # fmt: skip
    execution = bench.add((0, 40))
    pauses_s = [10 if index % 8 >= 4 else 1 for index in range(40)]
    for index, pause_s in enumerate(pauses_s):
        await settle()
        bench.advance(pause_s)
        bench.answer(index)
    await settle()
    assert execution.finished.done()
    turns = find_target_turns(bench.spec)
    # Each is in flight while the one before it is answered, but for the first.
    late = sum(
        pauses_s[index] + sum(pauses_s[index - 1 : index]) > 5
        for index in range(40)
        if turns[index % len(turns)] == 2
    )
    assert 0 < late < 10
    outcomes = {tally.name: dict(enumerate(tally.outcomes)) for tally in execution.tallies}
    counts = {name: {kind: count for kind, count in of.items() if count} for name, of in outcomes.items()}
    assert counts == {
        "any": {OK: 20},
        "other": {UNEXPECTED_STATUS: 10},
        "fast": {OK: 10 - late, FAILED_CHECK: late},
    }


async def test_it_keeps_the_window_full_and_passes_no_limit(build_bench: BuildBench) -> None:
    """Each answer makes room for the next index, also where one lease ends and the next begins."""
    bench = build_bench()
    first, second = bench.add((0, 4)), bench.add((4, 8))
    await settle()
    assert (bench.sent, bench.engine.in_flight) == ([0, 1, 2], 3)
    for index in range(5):
        bench.answer(index)
        await settle()
        assert bench.sent == list(range(index + 4))
    assert first.finished.done()
    assert second.in_flight == 3
    # A limit is not passed by the window.
    bench = build_bench()
    execution = bench.add((5, 6), (10, 12), (20, 30), limit=2)
    await settle()
    assert (bench.sent, bench.engine.in_flight) == ([5, 10], 2)
    bench.feed.raise_limits({execution: 4})
    await settle()
    assert (bench.sent, bench.engine.in_flight) == ([5, 10, 11], 3)
    bench.answer(10)
    await settle()
    assert (bench.sent, bench.engine.in_flight) == ([5, 10, 11, 20], 3)
    bench.answer(5)
    await settle()
    assert bench.engine.in_flight == 2
    # What is in flight is known by index.
    bench = build_bench()
    first, second = bench.add((0, 2)), bench.add((7, 20))
    assert bench.engine.group_in_flight() == {}
    for _ in range(8):
        await asyncio.sleep(0)
        groups = bench.engine.group_in_flight()
        assert {each: len(groups.get(each, ())) for each in (first, second)} == {
            first: first.in_flight, second: second.in_flight
        }  # fmt: skip
    bench.answer(1)
    await settle()
    groups = bench.engine.group_in_flight()
    assert {each: sorted(indices) for each, indices in groups.items()} == {first: [0], second: [7, 8]}
    assert bench.engine.window == 3


@pytest.mark.parametrize("ask", ["flush_counts", "group_in_flight", "cancel", "close"])
async def test_no_answer_is_in_flight_for_whoever_asks(bench: EngineBench, ask: str) -> None:
    """Answers may be counted at the end of a turn of the event loop, but at once if somebody looks."""
    execution = bench.add((0, 30))
    for begin in (0, 3, 6):
        await settle()
        for number in range(3):
            bench.answer(begin + number)
    bench.feed.shorten(execution, 0)
    closing = asyncio.ensure_future(bench.engine.close()) if ask == "close" else None
    if closing is not None:
        await asyncio.sleep(0)
    elif ask == "cancel":
        bench.engine.cancel(execution)
    else:
        getattr(bench.engine, ask)()
    assert execution.in_flight <= bench.engine.window
    if closing is not None:
        await closing
    await settle()
    assert execution.outcomes[OK] + len(execution.given_back) + execution.in_flight == execution.taken


@pytest.mark.parametrize("turns", range(6))
async def test_a_cut_at_any_turn_of_the_event_loop(bench: EngineBench, turns: int) -> None:
    """Each index taken is given back before, while and after its request begins."""
    execution = bench.add((0, 10))
    for _ in range(turns):
        await asyncio.sleep(0)
    taken = execution.taken
    bench.feed.shorten(execution, 0)
    bench.engine.cancel(execution)
    await settle()
    assert execution.given_back == list(range(taken))
    assert (bench.engine.in_flight, execution.finished.done()) == (0, True)

    other = bench.add((10, 20))
    await settle()
    assert (other.in_flight, bench.engine.in_flight) == (3, 3)


async def test_the_first_of_two_cuts_counts(bench: EngineBench) -> None:
    """A request that is cut off for its time is a timeout, also when its lease ends at the same moment."""
    first = bench.add((0, 1))
    await settle()
    bench.advance(3600)
    second = bench.add((1, 3))
    await settle()
    bench.advance(1)
    bench.engine.sweep()
    bench.engine.cancel(first)
    bench.engine.cancel(second)
    await settle()
    assert (first.outcomes[TIMEOUT], first.given_back) == (1, [])
    assert (second.outcomes[TIMEOUT], second.given_back) == (0, [0, 1])
    assert not any(task.cancelling() for task in asyncio.all_tasks())


async def test_a_cut_off_request_is_given_back_once(build_bench: BuildBench) -> None:
    """The engine goes on with the next lease."""
    bench = build_bench()
    first = bench.add((0, 3))
    await settle()
    second = bench.add((3, 6))
    bench.engine.cancel(first)
    await settle()
    assert first.finished.done()
    assert first.given_back == [0, 1, 2]
    assert (bench.sent, second.in_flight) == ([0, 1, 2, 3, 4, 5], 3)
    # A second cut does nothing. It does not matter whether it comes at once or later.
    bench = build_bench()
    first = bench.add((0, 3))
    await settle()
    bench.engine.cancel(first)
    bench.engine.cancel(first)
    await settle()
    second = bench.add((3, 6))
    await settle()
    bench.engine.cancel(first)
    await settle()
    assert (first.given_back, second.in_flight, bench.engine.in_flight) == ([0, 1, 2], 3, 3)
    # A cut leaves other leases alone.
    bench = build_bench()
    first, second = bench.add((0, 4)), bench.add((4, 9))
    await settle()
    for index in (0, 1):
        bench.answer(index)
    await settle()
    assert bench.sent == [0, 1, 2, 3, 4]
    bench.engine.cancel(first)
    bench.engine.cancel(first)
    await settle()
    assert first.given_back == [2, 3]
    assert (second.given_back, second.in_flight) == ([], 3)
    # A cut while nothing is in flight. The engine goes on waiting for an index.
    bench = build_bench()
    first = bench.add((0, 1))
    await settle()
    bench.answer(0)
    await settle()
    bench.engine.cancel(first)
    await settle()
    second = bench.add((1, 4))
    await settle()
    assert second.in_flight == 3
    # An answer after a cut does not count. The index was given back, and has one end.
    bench = build_bench()
    execution = bench.add((0, 3))
    await settle()
    bench.engine.cancel(execution)
    bench.answer(0)
    await settle()
    assert (execution.given_back, execution.outcomes[OK]) == ([0, 1, 2], 0)


@pytest.mark.parametrize("turns", range(6))
async def test_closing_at_any_turn_of_the_event_loop(bench: EngineBench, turns: int) -> None:
    """Nobody waits for a request that nobody sends any more."""
    execution = bench.add((0, 10))
    for _ in range(turns):
        await asyncio.sleep(0)
    await asyncio.wait_for(bench.engine.close(), 1)
    assert sorted(execution.given_back) == list(range(execution.taken))
    assert bench.engine.in_flight == 0


async def test_closing_gives_back_what_is_in_flight(build_bench: BuildBench) -> None:
    """Nothing more is taken."""
    bench = build_bench()
    execution = bench.add((0, 10))
    await settle()
    await bench.engine.close()
    assert sorted(execution.given_back) == [0, 1, 2]
    assert (bench.sent, bench.engine.in_flight) == ([0, 1, 2], 0)
    # Closing right after a cut. The end of the cut is waited for once.
    bench = build_bench()
    execution = bench.add((0, 3))
    await settle()
    bench.engine.cancel(execution)
    await asyncio.wait_for(bench.engine.close(), 1)
    assert execution.given_back == [0, 1, 2]
    # A lease that comes as the engine closes is not begun.
    bench = build_bench()
    await settle()
    execution = bench.add((0, 3))
    await bench.engine.close()
    assert (bench.sent, execution.taken) == ([], 0)


async def test_a_request_that_fails_holds_nobody_up(build_bench: BuildBench) -> None:
    """The request is not sent again."""
    bench = build_bench()
    execution = bench.add((0, 4))
    await settle()
    bench.break_off(1, ConnectionResetError())
    await settle()
    assert execution.outcomes[DISCONNECTED] == 1
    assert bench.sent == [0, 1, 2, 3]
    assert execution.in_flight == 3
    # Connections that cannot be made hold nobody up.
    bench = build_bench()
    bench.refuses = True
    execution = bench.add((0, 1000))
    await settle()
    assert 0 < execution.ended < 100
    await asyncio.wait_for(execution.finished, 5)
    assert execution.outcomes[CONNECT_ERROR] == 1000
    # Requests that cannot be written hold nobody up. They do not fill the stack either.
    bench = build_bench(urls=(Url("http://h:port/{i}"),))
    execution = bench.add((0, 2000))
    await settle()
    assert 0 < execution.ended < 2000
    await asyncio.wait_for(execution.finished, 5)
    assert execution.outcomes[CONNECT_ERROR] == 2000


async def test_the_first_error_of_a_kind_is_told(
    bench: EngineBench, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told in one line; a count alone would not say what to mend."""
    execution = bench.add((0, 20))
    with caplog.at_level(logging.WARNING):
        for index in range(20):
            await settle()
            bench.break_off(index, OSError("over\nand out"))
        await asyncio.wait_for(execution.finished, 1)
    assert caplog.messages == [bench.told_of_end]


async def test_what_takes_too_long_is_a_timeout(build_bench: BuildBench) -> None:
    """It ends as a timeout, and others take its place."""
    bench = build_bench()
    first, second = bench.add((0, 3)), bench.add((3, 6))
    await settle()
    bench.engine.sweep()
    await settle()
    assert first.ended == 0
    bench.advance(3601)
    bench.engine.sweep()
    await settle()
    assert (first.outcomes[TIMEOUT], first.finished.done(), second.in_flight) == (3, True, 3)
    # An answer after the limit is a timeout. It counts as one although nobody has looked in time.
    bench = build_bench()
    execution = bench.add((0, 3))
    await settle()
    bench.advance(3601)
    bench.answer(0)
    await settle()
    assert (execution.outcomes[OK], execution.outcomes[TIMEOUT]) == (0, 1)
    # An engine sweeps by itself. It looks often enough for the limit of its spec.
    bench = build_bench(timeout_s=0.02)
    execution = bench.add((0, 3))
    await settle()
    bench.advance(0.03)
    await asyncio.wait_for(execution.finished, 1)
    assert execution.outcomes[TIMEOUT] == 3


async def test_a_fault_of_our_own_does_not_leave_its_lease_hanging(
    bench: EngineBench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever waits for the lease learns of it, and so does the log."""

    def fail(*_: object, **__: object) -> None:
        raise ArithmeticError("cannot count")

    execution = bench.add((0, 3))
    await settle()
    with monkeypatch.context() as patch:
        patch.setattr(Tally, "answer", fail)
        bench.answer(0)
        await settle()

    with pytest.raises(ArithmeticError):
        await asyncio.wait_for(execution.finished, 1)
    assert "cannot count" in caplog.text
    assert bench.engine.in_flight == 2


async def test_nothing_is_kept_of_a_lease_that_is_over(build_bench: BuildBench) -> None:
    """Neither by what is idle then, nor by a request that ended without an answer; no collector is needed."""
    bench = build_bench(concurrency=4)
    with without_collector() as list_alive:
        execution = bench.add((0, 12))
        for index in range(12):
            await settle()
            if index % 3:
                bench.answer(index)
            else:
                bench.break_off(index, OSError("over and out"))
        await settle()
        assert (execution.outcomes[OK], execution.outcomes[DISCONNECTED]) == (8, 4)
        assert execution.finished.done()
        execution.drop_tallies()
        del execution
        await settle()
        assert list_alive() == []
