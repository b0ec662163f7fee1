"""The laws of the feed of an open run, whatever the target, the window and the event loop do."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.workers.scheduled_bench import BOOTED_NS, NS, ScheduledBench, build_open_spec, list_waves
from tests.kit.workers.simulated_loop import SimulatedLoop

from oku_core.accounting.index_ranges import iter_ranges
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import NOT_DEALT
from oku_core.schedule.lane import Lane
from oku_core.schedule.stage import Arrivals
from oku_core.spec.request_template import find_target_turns
from oku_core.spec.target import Target
from oku_core.spec.values.load_values import Late
from oku_core.spec.values.url import Url
from oku_workers.executions.scheduled_execution import ScheduledExecution

RATE, DURATION_S = "25/s", 4.0
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["turn", "stall", "answer", "window", "shorten", "limit", "look"]),
        st.floats(0.0, 1.5),
        st.integers(0, 60),
    ),
    max_size=40,
)


class Story:
    """One run on one worker.

    Args:
        lanes: among how many workers the run is divided; the leases of two of them are here.
        arrivals: how they follow the rate.
        late: how late a request may be sent.
        window: how many may be in flight at first.
        limit: the limit of each lease at first.
        weights: those of its targets; none for a run that names no target.
    """

    def __init__(
        self, lanes: int, arrivals: Arrivals, late: str, window: int, limit: int, weights: Sequence[int]
    ) -> None:
        self.late_s = Late(late).duration_s
        targets = tuple(
            Target(name=f"t{weight}", url=Url("http://127.0.0.1/"), weight=weight) for weight in weights
        )
        changes = {"urls": (), "targets": targets} if targets else {}
        spec = build_open_spec(RATE, DURATION_S, arrivals=arrivals, late=Late(late), **changes)
        self.turns = find_target_turns(spec)
        self.bench = ScheduledBench(spec, window)
        self.dues: dict[int, tuple[int, int]] = {}
        self.now_s = 0.0
        for wave in list_waves(self.bench.schedule, lanes):
            for number in range(min(2, lanes)):
                self.bench.add(wave, number, limit=limit)
                lane = Lane(self.bench.schedule, wave, number)
                coordinates = range(*wave.lane_range(number))
                dues = lane.iter_dues(coordinates.start, coordinates.stop)
                self.dues |= dict(zip(coordinates, dues, strict=True))

    def tell(self, event: str, seconds: float, number: int) -> None:
        """Something happens."""
        bench = self.bench
        execution = bench.executions[number % len(bench.executions)]
        if event in ("turn", "stall"):
            self.now_s += seconds
            getattr(bench.time, event)(self.now_s)
        elif event == "answer":
            bench.answer(number)
        elif event == "window":
            bench.window = number
            bench.fill()
        elif event == "shorten":
            bench.feed.shorten(execution, number)
        elif event == "limit":
            bench.feed.raise_limits({execution: number})
        else:
            bench.feed.refresh()

    async def end(self) -> None:
        """All limits rise, all is answered, and time goes by until nothing is left."""
        bench = self.bench
        bench.window = 10**9
        bench.feed.raise_limits(dict.fromkeys(bench.executions, 10**9))
        bench.fill()
        while bench.feed.find_first() is not None:
            self.now_s += 1.0
            bench.time.turn(self.now_s)
            await asyncio.sleep(0.01)  # in which due times are computed
            bench.feed.refresh()
        bench.answer()

    def check(self) -> None:
        """Each request was taken once or given up, each at its time, and the sums are true."""
        bench = self.bench
        sent = [taken[1] for _, taken in bench.taken]
        assert len(set(sent)) == len(sent)
        for at_s, (tally, coordinate, index, due_ns) in bench.taken:
            assert (index, due_ns - BOOTED_NS) == self.dues[coordinate]
            assert tally.execution.ranges.position_of(coordinate) < tally.execution.taken
            lateness_s = at_s - (due_ns - BOOTED_NS) / NS
            assert -1e-6 < lateness_s < (1e9 if self.late_s is None else self.late_s + 1e-6)
        for execution in bench.executions:
            assert execution.finished.done()
            assert sum(execution.outcomes) == execution.taken == execution.end
            counts = [
                sum(of_one)
                for of_one in zip([0, 0, 0], *(each.not_sent for each in execution.tallies), strict=True)
            ]
            self.check_targets(execution)
            assert execution.sent + sum(counts) == execution.taken
            assert counts[NOT_DEALT] == 0
            assert sum(counts) == 0 or self.late_s is not None
            sent_here = 0
            for tally in execution.tallies:
                sent_here += sum(tally.sent_per_second.values())
                lateness = tally.times[Time.LATENESS].build_snapshot()
                assert (lateness.find_fault(), lateness.total) == (None, sum(tally.sent_per_second.values()))
            assert sent_here == execution.sent

    def check_targets(self, execution: ScheduledExecution) -> None:
        """Each target has as many as its indices, and its reasons lie among them."""
        taken = execution.ranges.cut(0, execution.taken)
        indices = [self.dues[coordinate][0] for start, stop in taken for coordinate in range(start, stop)]
        asked = Counter(self.turns[index % len(self.turns)] for index in indices)
        for place, tally in enumerate(execution.tally.by_target if taken else ()):
            assert sum(tally.outcomes) == asked[place]
            failed = {
                position
                for span in tally.failures.build_failed().values()
                for start, stop in iter_ranges(span)
                for position in range(start, stop)
            }
            assert len(failed) <= sum(tally.not_sent)
            assert len(execution.tallies) > 1 or len(failed) == sum(tally.not_sent)
            assert all(self.turns[indices[position] % len(self.turns)] == place for position in failed)
            for count in tally.failures.build_reasons():
                assert 0 <= count.first <= count.last < execution.taken


@given(
    lanes=st.integers(1, 3),
    arrivals=st.sampled_from(Arrivals),
    late=st.sampled_from(["200ms", "1s", "send"]),
    window=st.integers(0, 20),
    limit=st.integers(0, 60),
    weights=st.sampled_from([(), (1, 2), (3, 1, 1)]),
    chunk=st.sampled_from([2, 7, 256]),
    events=EVENTS,
)
def test_what_was_due_is_sent_in_time_or_given_up(
    events: list[tuple[str, float, int]], chunk: int, **plan: Any
) -> None:
    """Nothing is sent before it is due, later than it may be, or twice, and nothing is missed.

    Where few due times are computed at a time, what is too late is passed over without them.
    """

    async def play() -> None:
        story = Story(**plan)
        for event in events:
            story.tell(*event)
            await asyncio.sleep(0.001)
        await story.end()
        story.check()

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner, pytest.MonkeyPatch.context() as patch:
        patch.setattr("oku_core.schedule.lane.MOST_IN_CHUNK", chunk)
        patch.setattr("oku_core.schedule.lane._MEAN_IN_CLASS", chunk)
        patch.setattr("oku_core.schedule.block.MOST_DRAWN", 2 * chunk)
        patch.setattr("oku_workers.executions.scheduled_execution.MOST_IN_CHUNK", chunk)
        patch.setattr("oku_workers.executions.scheduled_execution._MOST_LISTED", 2 * chunk)
        patch.setattr("oku_workers.executions.scheduled_execution._FASTEST_DRAWN_RPS", chunk)
        runner.run(play())
