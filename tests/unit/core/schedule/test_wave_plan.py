from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.schedules import list_waves, schedules

from oku_core.schedule.schedule import Schedule
from oku_core.schedule.stage import Stage
from oku_core.schedule.wave_plan import plan_wave


@given(schedule=schedules(), data=st.data())
def test_waves_follow_on_each_other(schedule: Schedule, data: st.DataObject) -> None:
    """Together they have all arrivals; each has one at least, and lies in one phase."""
    waves = list_waves(schedule, lambda: data.draw(st.integers(1, 500)))
    at = 0
    for wave in waves:
        assert wave.begin == at
        assert wave.count >= 1
        assert wave.begin == schedule.count_before_block(wave.block)
        assert wave.stop == schedule.count_before_block(wave.next_block)
        assert schedule.find_phase(wave.begin) == schedule.find_phase(wave.stop - 1)
        at = wave.stop
    assert at == schedule.requests


@pytest.mark.parametrize(("lanes", "lengths"), [(1, [2, 2, 3]), (250, [3, 4]), (10_000, [7])])
def test_a_wave_lasts_two_seconds_or_one_for_each_hundred_lanes(lanes: int, lengths: list[int]) -> None:
    """The last one of a stage takes what would be too short for one of its own."""
    schedule = Schedule([Stage("stage 1", Fraction(13, 2), Fraction(4), Fraction(4))])
    assert [len(wave.blocks) for wave in list_waves(schedule, lambda: lanes)] == lengths


def test_seconds_without_an_arrival_are_skipped() -> None:
    """A wave begins in the second of its first arrival, however long nothing was due before."""
    schedule = Schedule([Stage("stage 1", Fraction(7200), Fraction(1, 3600), Fraction(1, 3600))])
    waves = list_waves(schedule, lambda: 5)
    assert [(wave.begin, wave.block) for wave in waves] == [(0, 1800), (1, 5400)]
    assert plan_wave(schedule, waves[-1].next_block, 5) is None
