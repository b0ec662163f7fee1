"""The laws of dealing, over any schedule, any number of workers and any order of what comes back."""

import math
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.schedules import schedules

from oku_coordinator.leasing.waves.pieces import cut_pieces
from oku_coordinator.leasing.waves.wave_plan import AHEAD_S, LEAD_S, WavePlan
from oku_coordinator.ledger.storage.schedule_records import Deal, Dealing, PieceOrder
from oku_coordinator.workers.worker_state import WorkerState
from oku_core.accounting.index_ranges import Range
from oku_core.schedule.lane import Lane
from oku_core.schedule.schedule import Schedule
from oku_core.schedule.stage import Stage
from oku_core.schedule.wave import Wave, plan_wave


def build_takers(count: int) -> list[WorkerState]:
    """So many workers."""
    return [WorkerState(f"w{number}", f"b{number}", 0.0) for number in range(count)]


class Run:
    """An open run as the ledger would have it: which coordinates are in which state.

    Args:
        schedule: the schedule.
        late_s: how late its requests may be sent.
    """

    def __init__(self, schedule: Schedule, late_s: float) -> None:
        self.schedule = schedule
        self.plan = WavePlan(schedule, late_s)
        self.clock_s = 0.0
        self.waves: dict[int, Wave] = {}
        self.next_block = 0
        self.cut = 0
        self.pending = set(range(schedule.requests))
        self.leases: list[PieceOrder] = []
        self.done: set[int] = set()

    @property
    def dealing(self) -> Dealing:
        """How far it is dealt."""
        waves = [self.waves[begin] for begin in sorted(self.waves)]
        stop = waves[-1].stop if waves else 0
        pending = _join(sorted(coordinate for coordinate in self.pending if coordinate < stop))
        return Dealing(waves=waves, cut=self.cut, next_block=self.next_block, pending=pending)

    def deal(self, takers: Sequence[WorkerState]) -> Deal | None:
        """Deal what there is to deal."""
        deal = self.plan.plan(self.dealing, takers, self.clock_s)
        if deal is None:
            return None
        for begin in deal.dropped:
            wave = self.waves.pop(begin)
            assert self.pending >= set(range(wave.begin, wave.stop))
        self.waves |= {wave.begin: wave for wave in deal.waves}
        self.cut += len(deal.waves)
        self.next_block = deal.next_block
        for order in deal.orders:
            for coordinate in _list(order.ranges):
                self.pending.remove(coordinate)
            self.leases.append(order)
        return deal

    def account_past(self) -> set[int]:
        """Account what nobody has and can't be sent any more; gives it."""
        past = set(_list(self.plan.find_overdue(self.dealing, self.clock_s)))
        assert past <= self.pending
        self.pending -= past
        self.done |= past
        return past

    def find_due_s(self, coordinate: int) -> float:
        """When the request at a coordinate is due."""
        wave = next(wave for wave in self.waves.values() if wave.begin <= coordinate < wave.stop)
        lane = Lane(self.schedule, wave, wave.lane_of(coordinate))
        [(_, due_ns)] = lane.iter_dues(coordinate, coordinate + 1)
        return due_ns / 1e9


def _list(ranges: Sequence[Range]) -> list[int]:
    return [coordinate for start, stop in ranges for coordinate in range(start, stop)]


def _join(coordinates: Sequence[int]) -> list[Range]:
    ranges: list[Range] = []
    for coordinate in coordinates:
        if ranges and ranges[-1][1] == coordinate:
            ranges[-1] = (ranges[-1][0], coordinate + 1)
        else:
            ranges.append((coordinate, coordinate + 1))
    return ranges


def build_flat(rate: int, seconds: int) -> Schedule:
    """A schedule of one rate."""
    return Schedule([Stage("", Fraction(seconds), Fraction(rate), Fraction(rate))])


@pytest.mark.heavy
@given(schedules(), st.sampled_from([0.05, 1.0, 10.0, math.inf]), st.data())
def test_each_request_is_dealt_to_one_worker_at_a_time_and_none_after_its_time(
    schedule: Schedule, late_s: float, data: st.DataObject
) -> None:
    """Workers come and go, give back, die; in the end everything is done, and nothing twice."""
    run = Run(schedule, late_s)
    duration_s = float(schedule.duration_s)
    while run.clock_s < duration_s + 1:
        takers = build_takers(data.draw(st.integers(0, 4)))
        deal = run.deal(takers)
        for order in deal.orders if deal else ():
            wave = run.waves[order.wave]
            assert {wave.lane_of(coordinate) for coordinate in _list(order.ranges)} == {order.lane}
            earliest_s = min(run.find_due_s(coordinate) for coordinate in _list(order.ranges))
            assert earliest_s + late_s >= run.clock_s + LEAD_S - 1e-6
        for order in list(run.leases):
            fate = data.draw(st.sampled_from(["keeps", "finishes", "gives back", "does half"]))
            coordinates = _list(order.ranges)
            done = {"finishes": len(coordinates), "does half": len(coordinates) // 2}.get(fate, 0)
            if fate != "keeps":
                run.leases.remove(order)
                assert not run.done & set(coordinates[:done])
                run.done |= set(coordinates[:done])
                run.pending |= set(coordinates[done:])
        run.account_past()
        run.clock_s += data.draw(st.sampled_from([0.5, 0.5, 2.0, 20.0]))
    if late_s == math.inf:
        run.deal(build_takers(1))
    else:
        run.clock_s = duration_s + late_s + 1
        run.deal([])
        run.account_past()
    held = {coordinate for order in run.leases for coordinate in _list(order.ranges)}
    assert run.pending == set()
    assert run.done | held == set(range(schedule.requests))
    assert not run.done & held


@given(schedules(), st.lists(st.integers(1, 5), min_size=1, max_size=8))
def test_ten_seconds_are_dealt_ahead_and_their_lanes_are_all_of_them(
    schedule: Schedule, counts: list[int]
) -> None:
    """Whatever the number of workers is at each time."""
    run = Run(schedule, 1.0)
    for count in counts:
        run.deal(build_takers(count))
        wave = plan_wave(schedule, run.next_block, 1)
        assert wave is None or schedule.block_begin_s(wave.block) >= run.clock_s + AHEAD_S
        assert not run.dealing.pending
        run.clock_s += 1.5


def test_workers_take_turns_with_the_longer_lanes() -> None:
    """Of three requests in a wave two workers have two and one, and then one and two."""
    run = Run(build_flat(1, 60), 1.0)
    given_out = {"w0": 0, "w1": 0}
    while run.clock_s < 50:
        run.deal(build_takers(2))
        run.clock_s += 1.0
    for order in run.leases:
        given_out[order.worker] += len(_list(order.ranges))
    assert given_out["w0"] + given_out["w1"] == 60
    assert abs(given_out["w0"] - given_out["w1"]) <= 6


def test_a_wave_that_nobody_has_is_cut_anew_for_those_who_live() -> None:
    """After a pause there may be more workers; what one has taken up keeps its lanes."""
    run = Run(build_flat(60, 60), 1.0)
    run.deal(build_takers(2))
    assert {wave.lanes for wave in run.waves.values()} == {2}
    for order in run.leases:
        run.pending |= set(_list(order.ranges)[int(order.wave == 0) :])
    run.leases.clear()
    run.deal(build_takers(3))
    assert [wave.lanes for wave in run.dealing.waves] == [2, 3, 3, 3, 3]
    assert len(run.leases) == 2 + 4 * 3


def test_without_workers_a_wave_is_cut_once_it_is_due() -> None:
    """It has one lane, and whoever comes gets what is still in time."""
    run = Run(build_flat(10, 60), 1.0)
    assert run.deal([]) is None
    run.clock_s = 4.5
    run.deal([])
    assert [wave.lanes for wave in run.dealing.waves] == [1, 1, 1]
    assert len(run.account_past()) == 35
    run.deal(build_takers(1))
    assert min(map(run.find_due_s, _list(run.leases[0].ranges))) >= 4.5 + LEAD_S - 1.0


def test_a_piece_lies_in_one_lane() -> None:
    """Ranges of the ledger go across lanes and waves."""
    waves = [Wave(0, 10, 3, 0, (10,)), Wave(10, 4, 2, 1, (4,))]
    pieces = list(cut_pieces(waves, [(2, 5), (6, 12), (13, 20)]))
    assert [(piece.wave.begin, piece.lane, list(piece.ranges)) for piece in pieces] == [
        (0, 0, [(2, 4)]),
        (0, 1, [(4, 5), (6, 7)]),
        (0, 2, [(7, 10)]),
        (10, 0, [(10, 12)]),
        (10, 1, [(13, 14)]),
    ]


def test_what_has_come_back_is_dealt_again_once_it_is_soon_due() -> None:
    """The worker that had it may be there again by then."""
    run = Run(build_flat(10, 60), 1.0)
    run.deal(build_takers(2))
    for order in run.leases:
        if order.lane == 1:
            run.pending |= set(_list(order.ranges))
    deal = run.deal(build_takers(2))
    assert deal is not None
    assert [order.wave for order in deal.orders] == [0, 20, 40]
    run.clock_s = 1.5
    deal = run.deal(build_takers(3))
    assert deal is not None
    first = deal.orders[0]
    assert (first.wave, first.lane) == (60, 1)
