"""Schedules that hypothesis draws, and the waves that cover one."""

from collections.abc import Callable
from fractions import Fraction

from hypothesis import strategies as st

from oku_core.schedule.schedule import Schedule
from oku_core.schedule.stage import Arrivals, Stage
from oku_core.schedule.wave import Wave, plan_wave


def fractions(least: Fraction | int, most: Fraction | int) -> st.SearchStrategy[Fraction]:
    """Fractions as users write them, and odd ones."""
    return st.one_of(
        st.integers(int(least) + 1, int(most)).map(Fraction),
        st.fractions(least, most, max_denominator=997),
    )


@st.composite
def stages(draw: st.DrawFn) -> list[Stage]:
    """A few stages of a few seconds each: up, down, flat, from 0, to 0, with jumps, with no rate at all."""
    rates = st.one_of(st.just(Fraction(0)), fractions(0, 40))
    drawn: list[Stage] = []
    for number in range(draw(st.integers(1, 4))):
        follows = draw(st.booleans())
        begin = drawn[-1].end if drawn and follows else draw(rates)
        end = draw(st.one_of(st.just(begin), rates))
        drawn.append(Stage(f"stage {number + 1}", draw(fractions(Fraction(1, 50), 9)), begin, end))
    return drawn


def schedules(*arrivals: Arrivals) -> st.SearchStrategy[Schedule]:
    """Schedules of such stages with one arrival at least; of any kind, or of those given."""
    kinds = st.sampled_from(arrivals or tuple(Arrivals))
    drawn = st.builds(Schedule, stages(), kinds, st.integers(0, 2**64))
    return drawn.filter(lambda schedule: schedule.requests > 0)


def list_waves(schedule: Schedule, choose_lanes: Callable[[], int]) -> list[Wave]:
    """All waves of a schedule, each with a number of lanes of its own."""
    waves: list[Wave] = []
    block = 0
    while wave := plan_wave(schedule, block, choose_lanes()):
        waves.append(wave)
        block = wave.next_block
    return waves
