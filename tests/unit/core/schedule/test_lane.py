import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.schedules import list_waves, schedules

from oku_core.schedule.block import MOST_DRAWN
from oku_core.schedule.lane import Lane
from oku_core.schedule.schedule import Schedule
from oku_core.schedule.stage import Arrivals, Stage
from oku_core.schedule.wave import Wave, plan_wave

LANES = st.integers(1, 7) | st.sampled_from([100, 250])


@pytest.fixture(params=[MOST_DRAWN, 3], ids=["one cell", "many cells"], autouse=True, scope="module")
def most_drawn(request: pytest.FixtureRequest) -> Iterator[None]:
    """Random arrivals are drawn all at a time that a block has, and a few at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("oku_core.schedule.block.MOST_DRAWN", request.param)
        yield


def list_lanes(schedule: Schedule, waves: list[Wave]) -> list[Lane]:
    """All lanes of some waves, in the order of their coordinates."""
    return [Lane(schedule, wave, number) for wave in waves for number in range(wave.lanes)]


def list_dues(schedule: Schedule, lanes: int) -> list[int]:
    """When each index is due, in the order of the indices."""
    waves = list_waves(schedule, lambda: lanes)
    dues = [due for lane in list_lanes(schedule, waves) for due in lane.iter_dues(lane.start, lane.stop)]
    return [due for _, due in sorted(dues)]


def pair(edges: Sequence[int]) -> list[tuple[int, int]]:
    """The ranges between each second edge and the next one."""
    return list(zip(edges[::2], edges[1::2], strict=False))


@given(schedule=schedules(), data=st.data())
def test_an_index_has_one_due_time(schedule: Schedule, data: st.DataObject) -> None:
    """It is the same to the nanosecond for any number of lanes."""
    lanes = data.draw(st.sampled_from([2, 3, 100]))
    assert list_dues(schedule, lanes) == list_dues(schedule, 1)


@given(schedule=schedules(), data=st.data())
def test_each_coordinate_has_one_index_and_due_time_inside_its_wave(
    schedule: Schedule, data: st.DataObject
) -> None:
    """Whatever the number of lanes of each wave: no index comes twice, none is missing."""
    waves = list_waves(schedule, lambda: data.draw(LANES))
    lanes = list_lanes(schedule, waves)
    edges = [0, *(lane.stop for lane in lanes)]
    assert [lane.start for lane in lanes] == edges[:-1]
    indices = [index for lane in lanes for index, _ in lane.iter_dues(lane.start, lane.stop)]
    assert sorted(indices) == list(range(schedule.requests))
    # A due time is inside its wave.
    for wave in list_waves(schedule, lambda: data.draw(LANES)):
        begin_ns = math.floor(schedule.block_begin_s(wave.block) * 10**9)
        end_ns = math.floor(schedule.block_begin_s(wave.next_block) * 10**9)
        for lane in list_lanes(schedule, [wave]):
            dues = [due for _, due in lane.iter_dues(lane.start, lane.stop)]
            assert dues == sorted(dues)
            assert all(begin_ns <= due < end_ns for due in dues)


@given(schedule=schedules(), data=st.data())
def test_a_lane_can_be_entered_anywhere(schedule: Schedule, data: st.DataObject) -> None:
    """What is dealt again, with holes or without, is due when it was due before."""
    wave = data.draw(st.sampled_from(list_waves(schedule, lambda: data.draw(LANES))))
    lane = Lane(schedule, wave, data.draw(st.integers(0, wave.lanes - 1)))
    edges = sorted(data.draw(st.sets(st.integers(lane.start, lane.stop), max_size=12)))
    ranges = pair(edges)
    whole = list(lane.iter_dues(lane.start, lane.stop))
    pieces = [due for start, stop in ranges for due in whole[start - lane.start : stop - lane.start]]
    chunks = lane.iter_chunks(ranges)
    assert [due for chunk in chunks for due in zip(chunk.indices, chunk.dues_ns, strict=True)] == pieces
    # What is past at a time is found. The coordinates before it are due earlier, all others then or later.
    dues = [due for _, due in lane.iter_dues(lane.start, lane.stop)]
    exact = st.sampled_from(dues) if dues else st.nothing()
    time_ns = data.draw(st.integers(-1, math.ceil(schedule.duration_s * 10**9)) | exact)
    assert lane.find_first_due(time_ns) == lane.start + bisect_left(dues, time_ns)


@given(schedules(Arrivals.EVEN))
def test_even_arrivals_are_due_where_the_integral_says(schedule: Schedule) -> None:
    """The arrival i is due when the area under the rate is i + ½, to the nanosecond."""
    for index, due_ns in enumerate(list_dues(schedule, 1)):
        segment = next(segment for segment in schedule.segments if index < segment.stop)
        before, after = (Fraction(due_ns + error_ns, 10**9) for error_ns in (-1, 2))
        assert segment.area_before(max(before, segment.begin_s)) <= index + Fraction(1, 2)
        assert segment.area_before(min(after, segment.end_s)) >= index + Fraction(1, 2)


def test_arrivals_stand_where_the_integral_says() -> None:
    """Four per second are due at an eighth of a second, and then every quarter."""
    schedule = Schedule([Stage("stage 1", Fraction(2), Fraction(4), Fraction(4))])
    assert list_dues(schedule, 1) == [125_000_000 + 250_000_000 * index for index in range(8)]
    # A ramp from nothing has its arrivals at the roots. With Λ(t) = t² the arrival i is due at √(i + ½).
    schedule = Schedule([Stage("stage 1", Fraction(10), Fraction(0), Fraction(20))])
    dues = list_dues(schedule, 3)
    assert len(dues) == 100
    assert dues == pytest.approx([math.sqrt(index + 0.5) * 1e9 for index in range(100)], abs=2)
    # A ramp to nothing mirrors one from nothing. The last arrivals have the largest distances.
    up, down = (
        list_dues(Schedule([Stage("stage 1", Fraction(10), Fraction(begin), Fraction(20 - begin))]), 1)
        for begin in (0, 20)
    )
    assert [10**10 - due for due in reversed(down)] == pytest.approx(up, abs=2)
    # Due times of a long schedule are as precise. After a month they are still exact to the nanosecond.
    month_s = 30 * 24 * 3600
    schedule = Schedule([Stage("stage 1", Fraction(month_s), Fraction(10**6), Fraction(10**6))])
    wave = plan_wave(schedule, month_s - 2, 3)
    assert wave is not None
    assert wave.stop == schedule.requests == 10**6 * month_s
    lane = Lane(schedule, wave, 2)
    index, due_ns = next(lane.iter_dues(lane.stop - 1, lane.stop))
    assert due_ns == index * 1000 + 500


def test_a_lane_must_be_one_of_its_wave() -> None:
    """A lease that says otherwise is refused, not sent at some other time."""
    schedule = Schedule([Stage("stage 1", Fraction(4), Fraction(5), Fraction(5))])
    with pytest.raises(ValueError, match=r"^a wave of 3 lanes has no lane 3$"):
        Lane(schedule, Wave(0, 10, 3, 0, (5, 10)), 3)
    for wave in (Wave(15, 6, 1, 2, (3, 6)), Wave(15, 5, 1, 3, (2, 5))):
        with pytest.raises(ValueError, match=r"behind the end$"):
            Lane(schedule, wave, 0)


@given(schedule=schedules(), data=st.data())
def test_indices_come_without_due_times(schedule: Schedule, data: st.DataObject) -> None:
    """Those of ranges, in the order of their coordinates, but for whole cells, which are not drawn."""
    lanes = data.draw(LANES)
    wave = list_waves(schedule, lambda: lanes)[0]
    lane = Lane(schedule, wave, data.draw(st.integers(0, lanes - 1)))
    edges = sorted(data.draw(st.sets(st.integers(lane.start, lane.stop), max_size=6)))
    ranges = pair(edges)
    at, wanted = 0, [index for start, stop in ranges for index, _ in lane.iter_dues(start, stop)]
    for indices in lane.iter_indices(ranges):
        mine = wanted[at : at + len(indices)]
        assert indices
        assert list(indices) == (sorted(mine) if isinstance(indices, range) else mine)
        at += len(indices)
    assert at == len(wanted)
    # A cell begins with what is past.
    wave = list_waves(schedule, lambda: 1)[0]
    lane = Lane(schedule, wave, 0)
    time_ns = data.draw(st.integers(-(10**9), math.ceil(schedule.duration_s * 10**9) + 10**9))
    start, first = lane.find_cell_start(time_ns), lane.find_first_due(time_ns)
    assert lane.start <= start <= first
    assert lane.is_random or start == first


@pytest.mark.parametrize("arrivals", Arrivals)
def test_a_billion_arrivals_in_a_second_are_found_at_once(arrivals: Arrivals) -> None:
    """Nothing that is asked takes a look at each of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("oku_core.schedule.block.MOST_DRAWN", MOST_DRAWN)
        stage = Stage("stage 1", Fraction(10), Fraction(10**9), Fraction(10**9))
        schedule = Schedule([stage], arrivals)
        wave = plan_wave(schedule, 0, 2)
        assert wave is not None
        lane = Lane(schedule, wave, 1)
        first = lane.find_first_due(500_000_000)
        assert abs(first - lane.start - 250_000_000) < 100_000
        [(index, due_ns)] = lane.iter_dues(first, first + 1)
        assert 500_000_000 <= due_ns < 500_001_000
        assert index in lane.indices
        some = list(lane.iter_indices([(first, lane.stop)]))
        assert sum(map(len, some)) == lane.stop - first
        assert len(some) < 10
