from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.schedule.wave import Wave

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


@given(WAVES)
def test_a_coordinate_knows_its_lane(wave: Wave) -> None:
    """It is the one whose range it is in."""
    for lane in range(wave.lanes):
        assert {wave.lane_of(coordinate) for coordinate in range(*wave.lane_range(lane))} <= {lane}


@given(wave=WAVES, data=st.data())
def test_arrivals_go_round_the_lanes(wave: Wave, data: st.DataObject) -> None:
    """Of the first arrivals of a wave each lane has every W-th one."""
    rank = data.draw(st.integers(0, wave.count))
    lane = data.draw(st.integers(0, wave.lanes - 1))
    assert wave.count_in_lane(lane, rank) == len(range(lane, rank, wave.lanes))
    assert wave.count_in_lane(lane, wave.count) == wave.lane_length(lane)


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
