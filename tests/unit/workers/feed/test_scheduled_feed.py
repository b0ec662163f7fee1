"""When the feed of an open run shows what, and what becomes of the rest."""

import asyncio

import pytest
from tests.kit.workers.scheduled_bench import (
    BOOTED_NS,
    NS,
    STARTS_AT,
    ScheduledBench,
    build_open_spec,
    list_waves,
)
from tests.kit.workers.simulated_loop import SimulatedLoop

from oku_core.accounting.index_ranges import iter_ranges
from oku_core.accounting.outcome import NOT_SENT, NOT_SENT_CAUSES, NotSentCause
from oku_core.messaging.checkpoint import MOST_FAILED_RANGES
from oku_core.schedule.lane import MOST_IN_CHUNK, Lane
from oku_core.schedule.stage import Arrivals
from oku_core.spec.load import build_schedule
from oku_core.spec.request_template import find_target_turns
from oku_core.spec.target import Target
from oku_core.spec.values.load_values import Late
from oku_core.spec.values.url import Url
from oku_workers.feed.feed_protocol import NO_TAKER

TEN_PER_S = build_open_spec("10/s", 4.0)
TARGETS = tuple(
    Target(name=name, url=Url(f"http://127.0.0.1/{name}"), weight=weight)
    for name, weight in (("a", 3), ("b", 1))
)
SEND_ALL = build_open_spec("10/s", 4.0, late=Late("send"))


def count_causes(bench: ScheduledBench) -> dict[NotSentCause, int]:
    """Why how many were not sent."""
    sums = [0] * len(NOT_SENT_CAUSES)
    for execution in bench.executions:
        for tally in execution.tallies:
            assert sum(tally.not_sent) == tally.outcomes[NOT_SENT]
            sums = [total + count for total, count in zip(sums, tally.not_sent, strict=True)]
    return {cause: count for cause, count in zip(NOT_SENT_CAUSES, sums, strict=True) if count}


async def test_leases_are_merged_by_due_time() -> None:
    """The arrivals of lanes interleave, and the next wave follows on, in whatever order they come."""
    bench = ScheduledBench(TEN_PER_S)
    first, second = list_waves(bench.schedule, lanes=3)
    for wave, lane in ((second, 1), (first, 2), (first, 0), (second, 0), (first, 1), (second, 2)):
        bench.add(wave, lane)
    bench.time.turn(4.0)
    assert bench.indices == list(range(40))
    assert len({taken[1] for _, taken in bench.taken}) == 40


async def test_a_request_is_shown_when_it_is_due_and_not_before() -> None:
    """It tells its index, its place in the ledger and its due time."""
    bench = ScheduledBench(TEN_PER_S)
    [wave, _] = list_waves(bench.schedule)
    execution = bench.add(wave)
    bench.time.turn(0.0499)
    assert bench.feed.current is None
    bench.time.turn(0.05)
    [(at_s, (tally, coordinate, index, due_ns))] = bench.taken
    assert (at_s, coordinate, index, due_ns) == (0.05, 0, 0, BOOTED_NS + NS // 20)
    assert tally is execution.tally
    bench.time.turn(2.0)
    assert [round(at_s, 9) for at_s, _ in bench.taken] == [round(0.05 + 0.1 * i, 9) for i in range(20)]
    # All that is due is sent at one wake.
    bench = ScheduledBench(TEN_PER_S)
    bench.add(list_waves(bench.schedule)[0])
    bench.time.stall(0.98)
    assert [(at_s, taken[2]) for at_s, taken in bench.taken] == [(0.98, index) for index in range(10)]
    bench.time.turn(1.05)
    assert bench.taken[-1][0] == 1.05


async def test_dense_requests_share_wakes() -> None:
    """None is more than half a millisecond late, and each second has as many as the plan, to one."""
    bench = ScheduledBench(build_open_spec("20000/s", 2.0))
    bench.add(list_waves(bench.schedule)[0])
    for step in range(42):
        await asyncio.sleep(0.01)
        bench.feed.refresh()
        bench.time.turn(step / 20)
    sent_ns = [BOOTED_NS + round(at_s * NS) for at_s, _ in bench.taken]
    assert bench.indices == list(range(40_000))
    assert all(0 <= at - taken[3] < NS // 2000 for at, (_, taken) in zip(sent_ns, bench.taken, strict=True))
    assert len(set(sent_ns)) <= 4001
    assert 19_999 <= sum(at < BOOTED_NS + NS - 50_000 for at in sent_ns) <= 20_000


@pytest.mark.parametrize("arrivals", list(Arrivals))
async def test_how_many_requests_come_first_is_known_before_their_times(arrivals: Arrivals) -> None:
    """An engine may make connections for them; half of the rate is another worker's."""
    bench = ScheduledBench(build_open_spec("20000/s", 2.0, arrivals=arrivals))
    assert bench.feed.count_first(0.01) == 0
    bench.add(list_waves(bench.schedule, 2)[0], 1)
    assert 90 <= bench.feed.count_first(0.01) <= 110


async def test_the_wakes_of_several_workers_lie_between_each_other() -> None:
    """A target gets the requests of four workers one after the other, not in bursts of all."""
    phases: set[int] = set()
    for lane in range(4):
        bench = ScheduledBench(build_open_spec("20000/s", 2.0))
        bench.add(list_waves(bench.schedule, 4)[0], lane)
        bench.time.turn(0.01)
        phases |= {round(at_s * NS) % (NS // 2000) for at_s, _ in bench.taken}
    assert sorted(phases) == [65_000, 190_000, 315_000, 440_000]


async def test_what_waits_for_room() -> None:
    """Its due time stays as it was: the waiting counts."""
    bench = ScheduledBench(TEN_PER_S, window=2)
    [execution] = [bench.add(list_waves(bench.schedule)[0])]
    bench.time.turn(0.5)
    assert bench.indices == [0, 1]
    bench.answer(1)
    assert [(at_s, taken[2], taken[3]) for at_s, taken in bench.taken[2:]] == [(0.5, 2, BOOTED_NS + NS // 4)]
    assert execution.sent == 3
    # What cannot be sent in time for lack of room says so.
    bench = ScheduledBench(TEN_PER_S, window=2)
    execution = bench.add(list_waves(bench.schedule)[0])
    bench.time.turn(1.2499)
    assert count_causes(bench) == {}
    bench.time.turn(1.27)
    assert count_causes(bench) == {NotSentCause.IN_FLIGHT_CAP: 1}
    bench.time.turn(4.0)
    assert count_causes(bench) == {NotSentCause.IN_FLIGHT_CAP: 18}
    assert (execution.taken, execution.sent, execution.in_flight) == (20, 2, 2)
    bench.answer()
    assert execution.finished.done()
    assert sum(execution.outcomes) == 20
    # Nothing is sent later than it may. Even if room comes before anybody has looked.
    bench = ScheduledBench(TEN_PER_S, window=1)
    bench.add(list_waves(bench.schedule)[0])
    bench.time.turn(1.0)
    bench.time.now_ns = BOOTED_NS + round(1.4 * NS)
    bench.answer()
    assert bench.indices == [0, 4]
    assert count_causes(bench) == {NotSentCause.IN_FLIGHT_CAP: 3}


async def test_whether_a_late_loop_or_a_full_window_is_blamed() -> None:
    """There was room all the time."""
    bench = ScheduledBench(TEN_PER_S)
    bench.add(list_waves(bench.schedule)[0])
    bench.time.stall(1.5)
    assert count_causes(bench) == {NotSentCause.LATE: 5}
    assert bench.indices == list(range(5, 15))
    # A window that was full before is no excuse for a late loop.
    bench = ScheduledBench(TEN_PER_S, window=2)
    bench.add(list_waves(bench.schedule)[0])
    bench.time.turn(0.26)
    bench.answer()
    assert bench.indices == [0, 1, 2]
    bench.time.stall(1.44)
    assert count_causes(bench) == {NotSentCause.LATE: 1}
    # A window that was full before a pause is no excuse either.
    bench = ScheduledBench(TEN_PER_S, window=2)
    first, second = list_waves(bench.schedule)[:2]
    execution = bench.add(first)
    bench.time.turn(0.26)
    bench.feed.shorten(execution, 0)
    bench.answer()
    bench.add(second)
    bench.time.stall(3.1)
    assert count_causes(bench) == {NotSentCause.LATE: 1}
    # A window is not blamed once nothing that is due waits.
    bench = ScheduledBench(build_open_spec("1/s", 4.0, late=Late("500ms")), window=1)
    for wave in list_waves(bench.schedule):
        bench.add(wave)
    bench.time.turn(1.6)
    bench.time.now_ns = BOOTED_NS + round(2.05 * NS)
    bench.flights.clear()
    assert bench.feed.current is None
    bench.time.stall(3.2)
    assert count_causes(bench) == {NotSentCause.IN_FLIGHT_CAP: 1, NotSentCause.LATE: 1}


async def test_every_request_is_sent_if_the_spec_says_so() -> None:
    """However late."""
    bench = ScheduledBench(SEND_ALL, window=1)
    bench.add(list_waves(bench.schedule)[0])
    bench.time.turn(100.0)
    for _ in range(20):
        bench.answer(1)
    assert (bench.indices, count_causes(bench)) == (list(range(20)), {})
    assert bench.executions[0].finished.done()


async def test_a_limit_holds_back_what_lies_beyond_and_somebody_is_told() -> None:
    """It goes on when the limit has risen; what has become too late meanwhile is not sent."""
    bench = ScheduledBench(TEN_PER_S)
    execution = bench.add(list_waves(bench.schedule)[0], limit=3)
    assert bench.feed.find_starved() is None
    bench.time.turn(1.6)
    assert (bench.indices, bench.requests, bench.feed.find_starved()) == ([0, 1, 2], 1, execution)
    bench.feed.raise_limits({execution: 20})
    bench.time.turn(2.0)
    assert bench.indices == [0, 1, 2, *range(6, 20)]
    assert count_causes(bench) == {NotSentCause.LATE: 3}
    # A shortened lease ends where it was told to. What was taken stays.
    bench = ScheduledBench(TEN_PER_S)
    execution = bench.add(list_waves(bench.schedule)[0])
    bench.time.turn(0.3)
    bench.feed.shorten(execution, 5)
    bench.time.turn(9.0)
    assert bench.indices == [0, 1, 2, 3, 4]
    assert bench.feed.find_first() is None
    bench.answer()
    assert execution.finished.done()
    # A withdrawn lease is over at once. Others go on.
    bench = ScheduledBench(TEN_PER_S)
    [wave, _] = list_waves(bench.schedule, lanes=2)
    first, second = bench.add(wave, 0), bench.add(wave, 1)
    bench.feed.shorten(first, 0)
    bench.time.turn(2.0)
    assert first.finished.done()
    assert bench.indices == list(range(1, 20, 2))
    assert second.taken == 10


async def test_what_came_back_and_is_dealt_again_has_holes() -> None:
    """It keeps its wave and lane, and each coordinate its index and due time."""
    bench = ScheduledBench(TEN_PER_S)
    [wave, _] = list_waves(bench.schedule, lanes=2)
    bench.add(wave, 1, (11, 13), (15, 16))
    bench.time.turn(2.0)
    assert bench.indices == [3, 5, 11]
    assert [at_s for at_s, _ in bench.taken] == [0.35, 0.55, 1.15]
    # The clock of the schedule goes on where a pause left it.
    bench = ScheduledBench(TEN_PER_S)
    bench.add(list_waves(bench.schedule)[1], offset_s=2.0)
    bench.time.turn(0.05)
    assert bench.indices == [20]
    # Without the coordinators clock nothing is shown.
    bench = ScheduledBench(TEN_PER_S, is_known=False)
    bench.add(list_waves(bench.schedule)[0])
    bench.time.turn(0.5)
    bench.feed.refresh()
    assert bench.taken == []
    bench.time.tell()
    bench.feed.refresh()
    bench.time.turn(0.55)
    assert bench.indices == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("arrivals", list(Arrivals))
async def test_due_times_are_those_of_the_schedule(arrivals: Arrivals) -> None:
    """Also where they have to be drawn before they come."""
    bench = ScheduledBench(build_open_spec("3000/s", 4.0, arrivals=arrivals))
    bench.time.now_ns -= NS
    waves = list_waves(bench.schedule, lanes=2)
    for wave in waves:
        bench.add(wave, 1)
    expected = [
        (index, BOOTED_NS + due_ns)
        for wave in waves
        for index, due_ns in Lane(bench.schedule, wave, 1).iter_dues(*wave.lane_range(1))
    ]
    for step in range(-20, 82):
        await asyncio.sleep(0.05)
        bench.feed.refresh()
        bench.time.turn(step / 20)
    assert [(taken[2], taken[3]) for _, taken in bench.taken] == expected
    assert all(BOOTED_NS + round(at_s * NS) - taken[3] < NS // 20 for at_s, taken in bench.taken)


async def test_those_who_wait_are_woken_one_for_each_request_that_is_due() -> None:
    """A thousand idle slots do not all get up for one request."""
    bench = ScheduledBench(TEN_PER_S)
    bench.feed.attach(NO_TAKER)
    bench.add(list_waves(bench.schedule)[0])
    waiting = [asyncio.ensure_future(bench.feed.wait()) for _ in range(5)]
    await asyncio.sleep(0)
    bench.time.turn(0.05)
    await asyncio.sleep(0)
    assert [task.done() for task in waiting] == [True, False, False, False, False]
    bench.fill()
    bench.time.stall(0.27)
    await asyncio.sleep(0)
    assert [task.done() for task in waiting] == [True, True, True, False, False]
    for task in waiting:
        task.cancel()


async def test_each_request_counts_in_the_second_in_which_it_was_sent() -> None:
    """By the coordinator's clock, whatever the second in which it ends."""
    bench = ScheduledBench(TEN_PER_S)
    execution = bench.add(list_waves(bench.schedule)[0])
    bench.time.stall(1.0)
    bench.time.turn(2.0)
    start = round(STARTS_AT)
    assert execution.tally.sent_per_second == {start + 1: 20}
    # A lease of another lane is refused. It may be forged.
    bench = ScheduledBench(TEN_PER_S)
    [wave, _] = list_waves(bench.schedule, lanes=2)
    with pytest.raises(ValueError, match="not all in the lane"):
        bench.add(wave, 0, (5, 12))
    # The first position that is due at a time is known.
    bench = ScheduledBench(TEN_PER_S)
    [wave, _] = list_waves(bench.schedule, lanes=2)
    execution = bench.add(wave, 1, (11, 13), (15, 16))
    ends = [execution.find_end(round((STARTS_AT + at_s) * NS)) for at_s in (0.0, 0.35, 0.36, 0.56, 9.0)]
    assert ends == [0, 0, 1, 2, 3]


@pytest.mark.heavy
@pytest.mark.parametrize("targets", [(), TARGETS], ids=["one target", "two targets"])
@pytest.mark.parametrize("rate", ["10M/s", "1G/s"])
@pytest.mark.parametrize("arrivals", Arrivals)
def test_requests_that_cannot_be_sent_are_not_visited_one_by_one(
    arrivals: Arrivals, rate: str, targets: tuple[Target, ...]
) -> None:
    """Billions of requests are given up in some steps, and what there is room for is sent in time."""
    urls = () if targets else (Url("http://127.0.0.1/"),)
    spec = build_open_spec(rate, 3.0, arrivals=arrivals, targets=targets, urls=urls)

    async def play() -> ScheduledBench:
        bench = ScheduledBench(spec, window=10)
        for wave in list_waves(bench.schedule):
            bench.add(wave, limit=10**10)
        bench.time.tick_ns = 6 * NS // 1000  # after each step time is up
        for step in range(25):
            bench.time.turn(step / 5)
            bench.answer()
            bench.feed.refresh()
            await asyncio.sleep(0.1)  # in which due times are computed
        return bench

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        bench = runner.run(play())
    assert all(execution.finished.done() for execution in bench.executions)
    assert len(bench.taken) > 50
    assert sum(count_causes(bench).values()) == bench.schedule.requests - len(bench.taken)
    for at_s, (_, _, _, due_ns) in bench.taken:
        assert 0 <= at_s - (due_ns - BOOTED_NS) / NS < 1.0 + 5 * 0.006
    for tally in (tally for execution in bench.executions for tally in execution.tallies):
        assert len(tally.failures.build_reasons()) <= 2
        assert sum(map(len, tally.failures.build_failed().values())) <= 2 * MOST_FAILED_RANGES


async def test_requests_that_cannot_be_sent_are_counted_by_target() -> None:
    """The count of each target is exact, although its requests are not listed."""
    for arrivals in Arrivals:
        spec = build_open_spec("1G/s", 4.0, urls=(), targets=TARGETS, arrivals=arrivals)
        bench = ScheduledBench(spec, window=0)
        for wave in list_waves(bench.schedule, lanes=3):
            bench.add(wave, 1, limit=10**10)
        bench.time.turn(5.5)
        asked = [0, 0]
        for tally in (tally for execution in bench.executions for tally in execution.tallies):
            asked["ab".index(tally.name)] += sum(tally.not_sent)
            [count] = tally.failures.build_reasons()
            assert 0 <= count.first < 1000
            assert count.requests == sum(tally.not_sent)
        taken = sum(execution.taken for execution in bench.executions)
        assert sum(asked) == taken
        assert asked[0] == pytest.approx(taken * 3 / 4, abs=len(find_target_turns(spec)))


async def test_the_event_loop_serves_others_while_much_is_given_up() -> None:
    """However many leases are past, no turn of it takes longer than some milliseconds."""
    bench = ScheduledBench(build_open_spec("100/s", 2.0))
    [wave] = list_waves(bench.schedule, lanes=100)
    for lane in range(100):
        bench.add(wave, lane)
    bench.time.tick_ns = NS // 1000
    bench.time.now_ns += 5 * NS
    bench.time.timers[0].fire()
    assert 0 < sum(count_causes(bench).values()) < 100
    bench.time.turn(7.0)
    assert count_causes(bench) == {NotSentCause.LATE: 200}


def test_due_times_are_not_computed_without_end() -> None:
    """A worker that sends late has more that is due behind it than it could keep."""

    async def play() -> None:
        spec = build_open_spec("10M/s", 20.0, late=Late("send"))
        bench = ScheduledBench(spec, window=1)
        for wave in list_waves(bench.schedule):
            bench.add(wave, limit=10**10)
        for step in range(20):
            bench.time.turn(float(step))
            bench.feed.refresh()
            await asyncio.sleep(0.1)
        ready = [execution.fetched_chunks for execution in bench.executions]
        assert 100 < sum(ready) < 2000
        assert bench.feed.remaining <= sum(ready) * MOST_IN_CHUNK + len(ready) * MOST_IN_CHUNK

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        runner.run(play())


@pytest.mark.parametrize("arrivals", Arrivals)
def test_of_several_targets_it_is_listed_which_were_not_sent(arrivals: Arrivals) -> None:
    """As long as they are not very many: a lease that comes too late is counted request by request."""
    spec = build_open_spec("2000/s", 2.0, urls=(), targets=TARGETS, arrivals=arrivals)

    async def play() -> ScheduledBench:
        bench = ScheduledBench(spec)
        bench.time.now_ns += 5 * NS
        bench.add(list_waves(bench.schedule)[0])
        for step in range(5):
            bench.time.turn(6.0 + step)
            await asyncio.sleep(0.1)  # in which due times are computed
        return bench

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        [execution] = runner.run(play()).executions
    assert execution.finished.done()
    schedule = build_schedule(spec)
    lane = Lane(schedule, list_waves(schedule)[0], 0)
    indices = [index for index, _ in lane.iter_dues(lane.start, lane.stop)]
    turns = find_target_turns(spec)
    for place, tally in enumerate(execution.tallies):
        [packed] = tally.failures.build_failed().values()
        listed = {position for start, stop in iter_ranges(packed) for position in range(start, stop)}
        assert listed == {at for at, index in enumerate(indices) if turns[index % len(turns)] == place}
        assert sum(tally.not_sent) == len(listed)
