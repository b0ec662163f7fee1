from fractions import Fraction
from functools import partial
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.schedules import list_waves, schedules

from oku_core.schedule.schedule import Schedule
from oku_core.schedule.stage import Stage
from oku_core.schedule.wave import Wave, plan_wave

WAVES = st.builds(
    lambda begin, count, lanes: Wave(begin, count, lanes, 0, (count,)),
    st.integers(0, 10**9), st.integers(1, 300), st.integers(1, 100),
)  # fmt: skip


@given(WAVES)
def test_lanes_cover_the_wave(wave: Wave) -> None:
    """Their coordinates follow on each other, and none has more than one arrival more than another."""
    ranges = [wave.lane_range(lane) for lane in range(wave.lanes)]
    assert ranges[0][0] == wave.begin
    assert ranges[-1][1] == wave.stop
    assert all(before[1] == after[0] for before, after in pairwise(ranges))
    lengths = {stop - start for start, stop in ranges}
    assert max(lengths) - min(lengths) <= 1
    # A coordinate knows its lane. It is the one whose range it is in.
    for lane in range(wave.lanes):
        assert {wave.lane_of(coordinate) for coordinate in range(*wave.lane_range(lane))} <= {lane}


@given(wave=WAVES, data=st.data())
def test_arrivals_go_round_the_lanes(wave: Wave, data: st.DataObject) -> None:
    """Of the first arrivals of a wave each lane has every W-th one."""
    rank = data.draw(st.integers(0, wave.count))
    lane = data.draw(st.integers(0, wave.lanes - 1))
    assert wave.count_in_lane(lane, rank) == len(range(lane, rank, wave.lanes))
    assert wave.count_in_lane(lane, wave.count) == len(range(*wave.lane_range(lane)))


@pytest.mark.parametrize(
    "body",
    ["[-1,2,1,0,[2]]", "[0,0,1,0,[0]]", "[0,2,0,0,[2]]", "[0,2,1,-1,[2]]", "[0,2,1,0,[]]", "[0,2,1,0,[3,2]]",
     "[0,2,1,0,[1]]"],
)  # fmt: skip
def test_a_wave_that_contradicts_itself_is_refused(body: str) -> None:
    """It may come from a message."""
    names = ("begin", "count", "lanes", "block", "blocks")
    wave = dict(zip(names, msgspec.json.decode(body), strict=True))
    with pytest.raises(msgspec.ValidationError, match="is not sound"):
        msgspec.convert(wave, Wave)


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


def test_a_wave_lasts_two_seconds_or_one_for_each_hundred_lanes() -> None:
    """The last one of a stage takes what would be too short for one of its own."""
    for lanes, lengths in [(1, [2, 2, 3]), (250, [3, 4]), (10_000, [7])]:
        schedule = Schedule([Stage("stage 1", Fraction(13, 2), Fraction(4), Fraction(4))])
        assert [len(wave.blocks) for wave in list_waves(schedule, partial(int, lanes))] == lengths
    # Seconds without an arrival are skipped.
    schedule = Schedule([Stage("stage 1", Fraction(7200), Fraction(1, 3600), Fraction(1, 3600))])
    waves = list_waves(schedule, lambda: 5)
    assert [(wave.begin, wave.block) for wave in waves] == [(0, 1800), (1, 5400)]
    assert plan_wave(schedule, waves[-1].next_block, 5) is None
