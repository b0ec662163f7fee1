"""The next leases of an open run, as its clock advances: a pure rule.

About ten seconds of the schedule are dealt ahead, so that the load continues while a coordinator restarts.
Each lane is a lease; longer lanes come first, so workers take turns. Returned work is dealt again if it can
still be on time. A wave that no worker holds yet is cut again for the live workers.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from oku_coordinator.leasing.waves.pieces import Piece, cut_pieces, measure_span, split_at
from oku_coordinator.ledger.storage.schedule_records import Deal, Dealing, PieceOrder
from oku_coordinator.workers.worker_state import WorkerState
from oku_core.accounting.index_ranges import Range
from oku_core.schedule.schedule import Schedule
from oku_core.schedule.wave import Wave, plan_wave
from oku_core.spec.load import build_schedule
from oku_core.spec.spec import Spec

AHEAD_S = 10.0
"""How much of the schedule is dealt ahead: a coordinator may be down for 8 s."""
REPEAT_AHEAD_S = 5.0
"""How much returned work is dealt ahead: its worker may soon be back."""
LEAD_S = 0.3
"""Work that is dealt again reaches its worker within this time."""
MOST_PLANS = 8
"""How many rules are cached; specs of more runs are rarely needed at a time."""


@dataclass(frozen=True)
class WavePlan:
    """The rule for one run.

    Attributes:
        schedule: when its requests are due.
        late_s: how late they may be sent; infinite without a limit.
    """

    schedule: Schedule
    late_s: float

    def plan(
        self, dealing: Dealing, takers: Sequence[WorkerState], clock_s: float, ahead_s: float = AHEAD_S
    ) -> Deal | None:
        """The next leases; None if none is due.

        Args:
            dealing: the state of dealing.
            takers: the workers that can take leases; without any, only past waves are cut.
            clock_s: the time of the schedule's clock.
            ahead_s: how much of the schedule is dealt ahead.
        """
        kept, next_block = self._keep(dealing, takers, clock_s)
        waves = list(self._cut(next_block, takers, clock_s + ahead_s if takers else clock_s))
        again = [wave for wave in kept if measure_span(self.schedule, wave)[0] < clock_s + REPEAT_AHEAD_S]
        pieces = [*cut_pieces(again, dealing.pending), *_list_lanes(waves)] if takers else []
        orders = list(self._order(pieces, takers, clock_s, turn=dealing.cut))
        dropped = [wave.begin for wave in dealing.waves[len(kept) :]]
        if not waves and not orders and not dropped:
            return None
        if waves:
            next_block = waves[-1].next_block
        return Deal(dropped=dropped, waves=waves, next_block=next_block, orders=orders)

    def find_overdue(self, dealing: Dealing, clock_s: float) -> list[Range]:
        """The coordinates that no worker holds and that are too late to send."""
        pieces = cut_pieces(dealing.waves, dealing.pending)
        return [each for piece in pieces for each in split_at(self.schedule, piece, clock_s - self.late_s)[0]]

    def find_lost(self, piece: Piece, clock_s: float) -> list[Range]:
        """The part of a dead worker's piece that is too late to deal again."""
        return split_at(self.schedule, piece, clock_s + LEAD_S - self.late_s)[0]

    def _keep(
        self, dealing: Dealing, takers: Sequence[WorkerState], clock_s: float
    ) -> tuple[Sequence[Wave], int]:
        """The waves that stay, and the first block after them."""
        kept, next_block = list(dealing.waves), dealing.next_block
        pending = list(dealing.pending)
        while takers and kept and pending and pending[-1][0] <= kept[-1].begin:
            wave = kept[-1]
            if pending[-1][1] < wave.stop or measure_span(self.schedule, wave)[0] < clock_s + LEAD_S:
                break
            kept.pop()
            next_block = wave.block
            pending[-1] = (pending[-1][0], wave.begin)
        return kept, next_block

    def _cut(self, block: int, takers: Sequence[WorkerState], until_s: float) -> Iterator[Wave]:
        """Cut the next waves, from a block on, that start before a time of the schedule."""
        while wave := plan_wave(self.schedule, block, max(1, len(takers))):
            if measure_span(self.schedule, wave)[0] >= until_s:
                return
            yield wave
            block = wave.next_block

    def _order(
        self, pieces: Iterable[Piece], takers: Sequence[WorkerState], clock_s: float, *, turn: int
    ) -> Iterator[PieceOrder]:
        """Order leases of the pieces that can be on time; the workers take turns."""
        earliest_s = clock_s + LEAD_S - self.late_s
        for number, piece in enumerate(pieces, turn):
            if ranges := split_at(self.schedule, piece, earliest_s)[1]:
                taker = takers[number % len(takers)]
                yield PieceOrder(
                    worker=taker.name,
                    incarnation=taker.incarnation,
                    wave=piece.wave.begin,
                    lane=piece.lane,
                    ranges=ranges,
                )


def _list_lanes(waves: Iterable[Wave]) -> Iterator[Piece]:
    for wave in waves:
        for lane in range(min(wave.lanes, wave.count)):
            yield Piece(wave, lane, [wave.lane_range(lane)])


@lru_cache(maxsize=MOST_PLANS)
def build_wave_plan(spec: Spec) -> WavePlan:
    """Build the rule for open runs of a spec."""
    late_s = spec.late.duration_s
    return WavePlan(build_schedule(spec), math.inf if late_s is None else late_s)
