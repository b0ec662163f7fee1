import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.schedules import schedules

from oku_core.schedule.schedule import Schedule
from oku_core.schedule.stage import Stage


def build_flat(rate: Fraction | int, duration: Fraction | int) -> Schedule:
    """A schedule of one rate."""
    return Schedule([Stage("stage 1", Fraction(duration), Fraction(rate), Fraction(rate))])


def test_the_arrivals_are_what_the_integral_says_rounded_down() -> None:
    """No float rounds a third of a request up or down."""
    for rate, requests in [("0.333", 9), ("1/3", 10), ("0.999", 29)]:
        assert build_flat(Fraction(rate), 30).requests == requests
    # A rate for a time has as many arrivals as their product.
    assert build_flat(5000, 600).requests == 3_000_000
    # An arrival on a border is behind it.
    schedule = build_flat(Fraction(5, 2), 4)
    assert [schedule.count_before(second) for second in range(5)] == [0, 2, 5, 7, 10]


def test_the_rate_follows_its_stages() -> None:
    """A ramp, a plateau and a step; behind the schedule there is no rate."""
    shape = ((10, 0, 50), (5, 50, 50), (5, 80, 80))
    schedule = Schedule(
        [Stage(str(begin), *map(Fraction, (length, begin, end))) for length, begin, end in shape]
    )
    parts = ((0, 10), (4, 6), (9, 10), (10, 15), (14, 16), (15, 20), (20, 21))
    assert [schedule.mean_rate(*part) for part in parts] == [25, 25, 47.5, 50, 65, 80, None]
    assert schedule.peak_rate == 80
    assert schedule.mean_rate() == Fraction(250 + 250 + 400, 20)


@given(schedule=schedules(), data=st.data())
def test_the_count_rises_to_all_arrivals(schedule: Schedule, data: st.DataObject) -> None:
    """It never falls, it is 0 at the start, N at the end, and within half an arrival of the integral."""
    end = schedule.duration_s
    times = sorted(end * share for share in data.draw(st.lists(st.fractions(0, 1), max_size=20)))
    counts = [schedule.count_before(time) for time in [Fraction(0), *times, end]]
    assert counts == sorted(counts)
    assert counts[0] == 0
    assert counts[-1] == schedule.requests == math.floor((schedule.mean_rate() or 0) * end)
    for time in times:
        area = schedule.find_segment(time).area_before(time)
        assert -1 < schedule.count_before(time) - area <= Fraction(1, 2)


@given(schedules())
def test_phases_and_blocks_divide_the_time_and_the_arrivals(schedule: Schedule) -> None:
    """Each begins where the one before has ended."""
    phases = schedule.phases
    assert (phases[0].begin_s, phases[0].first) == (Fraction(0), 0)
    assert (phases[-1].end_s, phases[-1].stop) == (schedule.duration_s, schedule.requests)
    for before, after in pairwise(phases):
        assert (before.end_s, before.stop) == (after.begin_s, after.first)
    for phase in phases:
        assert phase.first == schedule.count_before(phase.begin_s)
        assert all(schedule.find_phase(index) == phase for index in range(phase.first, phase.stop))
    # Blocks are the seconds of each stage.
    begins = [schedule.block_begin_s(block) for block in range(schedule.blocks + 1)]
    assert (begins[0], begins[-1]) == (Fraction(0), schedule.duration_s)
    assert {segment.begin_s for segment in schedule.segments} <= set(begins)
    assert all(0 < end - begin <= 1 for begin, end in pairwise(begins))
    counts = [schedule.count_before_block(block) for block in range(schedule.blocks + 1)]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, schedule.requests)


def test_stages_of_one_name_are_one_phase() -> None:
    """A warm-up may be made of several stages."""
    lengths = (("warm-up", 2), ("warm-up", 3), ("soak", 5))
    one = Fraction(1)
    schedule = Schedule([Stage(name, Fraction(length), one, one) for name, length in lengths])
    assert [tuple(phase) for phase in schedule.phases] == [("warm-up", 0, 5, 0, 5), ("soak", 5, 10, 5, 10)]
    # A schedule has a stage. Without one there is nothing to do, and no time to do it in.
    with pytest.raises(ValueError, match="without a stage"):
        Schedule([])
