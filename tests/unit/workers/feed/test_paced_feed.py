"""How fast the feed of a closed run with a highest rate shows what it has."""

import asyncio
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

from tests.kit.workers.scheduled_bench import BOOTED_NS, NS, FakeTiming

from oku_workers.executions.execution import Execution
from oku_workers.feed.feed_protocol import NO_TAKER
from oku_workers.feed.paced_feed import PacedFeed

BuildExecution = Callable[..., Execution]


class PacedBench:
    """A feed of ten requests a second, with an engine that takes all that it shows."""

    def __init__(self) -> None:
        self.time = FakeTiming()
        self.feed = PacedFeed(self.time.timing, Fraction(10))
        self.feed.attach(self)
        self.is_free = True
        self.taken_s: list[float] = []

    def has_room(self) -> bool:
        """Whether it takes anything now."""
        return self.is_free

    def take_due(self) -> bool:
        """Take it at once."""
        self.fill()
        return True

    def fill(self) -> None:
        """Take what there is to take."""
        while self.is_free and self.feed.current is not None:
            self.feed.pop()
            self.taken_s.append(round((self.time.now_ns - BOOTED_NS) / NS, 6))


async def test_the_workers_of_a_run_use_its_slots_in_turn(build_execution: BuildExecution) -> None:
    """Together they are as even as one."""
    benches = [PacedBench(), PacedBench()]
    for rank, bench in enumerate(benches):
        bench.feed.share((rank, 2))
        bench.feed.add(build_execution((0, 100)))
        bench.time.turn(2.0)
    merged = sorted(benches[0].taken_s + benches[1].taken_s)
    gaps = {round(after - before, 4) for before, after in pairwise(merged)}
    assert (len(merged), gaps) == (20, {0.1})


async def test_slots_are_used_in_turn_or_lost(build_execution: BuildExecution) -> None:
    """Others may have all slots."""
    bench = PacedBench()
    bench.feed.add(build_execution((0, 100)))
    bench.time.turn(5.0)
    assert bench.taken_s == []
    assert bench.feed.find_first() is not None
    bench.feed.share((0, 1))
    bench.time.turn(6.0)
    assert len(bench.taken_s) == 10
    # Slots that were not used are lost. A window that was full for a time is no reason for a burst.
    bench = PacedBench()
    bench.feed.share((0, 1))
    bench.feed.add(build_execution((0, 100)))
    bench.is_free = False
    bench.time.turn(3.0)
    bench.is_free = True
    bench.fill()
    assert len(bench.taken_s) == 1
    bench.time.turn(4.0)
    assert 10 <= len(bench.taken_s) <= 11
    # A limit and the end of a lease hold as ever. Slots go by meanwhile.
    bench = PacedBench()
    bench.feed.share((0, 1))
    first, second = build_execution((0, 9), limit=2), build_execution((10, 13))
    bench.feed.add(first)
    bench.time.turn(5.0)
    assert (len(bench.taken_s), bench.feed.find_starved()) == (2, first)
    bench.feed.raise_limits({first: 4})
    bench.time.turn(10.0)
    assert len(bench.taken_s) == 4
    bench.feed.shorten(first, 0)
    bench.feed.add(second)
    bench.time.turn(15.0)
    assert (first.taken, second.taken, bench.feed.find_first()) == (4, 3, None)
    # Work is lacking when a slot has come for which there is none.
    bench = PacedBench()
    bench.feed.share((0, 1))
    execution = build_execution((0, 100), limit=2)
    bench.feed.add(execution)
    bench.time.turn(0.2)
    assert (len(bench.taken_s), bench.feed.lacks_work) == (2, False)
    bench.time.turn(0.3)
    assert bench.feed.lacks_work
    bench.feed.raise_limits({execution: 50})
    assert not bench.feed.lacks_work
    bench.is_free = False
    bench.time.turn(5.0)
    assert not bench.feed.lacks_work


async def test_those_who_wait_are_woken_one_for_each_slot(build_execution: BuildExecution) -> None:
    """Whoever finds nothing waits for the next one."""
    bench = PacedBench()
    bench.feed.attach(NO_TAKER)
    bench.feed.share((0, 1))
    bench.feed.add(build_execution((0, 100)))
    waiting = [asyncio.ensure_future(bench.feed.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    bench.time.turn(0.06)
    await asyncio.sleep(0)
    assert [task.done() for task in waiting] == [True, False, False]
    for task in waiting:
        task.cancel()
    # The same share once more takes no slot away.
    bench = PacedBench()
    bench.feed.share((0, 1))
    bench.feed.add(build_execution((0, 100)))
    bench.is_free = False
    bench.time.turn(0.055)
    bench.feed.share((0, 1))
    bench.is_free = True
    bench.fill()
    assert len(bench.taken_s) == 1
