from bisect import bisect_left
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.runs.planned_seconds import list_dues_s
from tests.kit.schedules import schedules

from oku_core.schedule.block import MOST_DRAWN
from oku_core.schedule.due_counts import DueCounts
from oku_core.schedule.schedule import Schedule
from oku_core.schedule.stage import Arrivals, Stage


def build(*shape: tuple[str, int, int], arrivals: Arrivals = Arrivals.EVEN) -> Schedule:
    """Stages of a duration, with a rate at the start and at the end."""
    stages = [
        Stage(str(place), Fraction(duration), Fraction(begin), Fraction(end))
        for place, (duration, begin, end) in enumerate(shape)
    ]
    return Schedule(stages, arrivals, seed=7)


@given(schedule=schedules(), share=st.fractions(0, 1))
def test_even_arrivals_are_counted_as_the_schedule_counts_them(schedule: Schedule, share: Fraction) -> None:
    """Floats may put an arrival that is due at that very time before it or behind it, and no other."""
    time_s = float(schedule.duration_s * share)
    counted = DueCounts(schedule).count_before(time_s)
    if schedule.arrivals is Arrivals.EVEN:
        assert abs(counted.number - schedule.count_before(Fraction(time_s))) <= 1
        assert counted.variance == 0
    assert 0 <= counted.number <= schedule.requests


def test_each_second_of_a_ramp_has_what_is_due_in_it() -> None:
    """From 0 to 10/s in 4 s, the integral is 1.25, 5, 11.25 and 20."""
    dues = DueCounts(build(("4", 0, 10), ("1/2", 10, 10)))
    assert [dues.count_before(second).number for second in range(5)] == [0, 1, 5, 11, 20]
    assert dues.count_before(-1).number == 0
    assert dues.count_before(4.5).number == dues.count_before(100).number == 25
    assert (dues.duration_s, dues.peak_rps) == (4.5, 10)
    # An arrival on a border is behind it. It can't be sent before it is due.
    assert DueCounts(build(("9", 1, 1))).count_before(0.5).number == 0
    assert DueCounts(build(("9", 1, 1))).count_before(0.51).number == 1


def test_random_arrivals_are_counted_as_lanes_have_them() -> None:
    """There their number is known, whatever the seed has made of it."""
    schedule = build(("5/2", 100, 100), ("3", 100, 0), arrivals=Arrivals.POISSON)
    dues = DueCounts(schedule)
    for block in range(schedule.blocks + 1):
        counted = dues.count_before(float(schedule.block_begin_s(block)))
        assert counted == (schedule.count_before_block(block), 0)
    # Inside a block random arrivals are counted as lanes have them.
    schedule = build(
        ("5/2", 100, 300), ("3", 100, 0), ("1/2", 0, 0), ("3/2", 50, 50), arrivals=Arrivals.POISSON
    )
    dues, dues_s = DueCounts(schedule), list_dues_s(schedule)
    for tenth in range(76):
        time_s = tenth / 10 + 0.0123
        assert dues.count_before(time_s) == (bisect_left(dues_s, time_s), 0), time_s
    # Inside a block the number of very many random arrivals is an estimate.
    schedule = build(("2", 2 * MOST_DRAWN, 2 * MOST_DRAWN), arrivals=Arrivals.POISSON)
    counted = DueCounts(schedule).count_before(0.25)
    number = schedule.count_before_block(1)
    assert counted.number == pytest.approx(number / 4)
    assert counted.variance == pytest.approx(number * 3 / 16)


@given(schedule=schedules())
def test_all_arrivals_are_due_before_the_end(schedule: Schedule) -> None:
    """Floats lose none of them."""
    assert DueCounts(schedule).count_before(float(schedule.duration_s)) == (schedule.requests, 0)
