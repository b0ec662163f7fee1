"""What of an open run is dealt to whom, as its clock goes on: a pure rule.

About ten seconds of the schedule are dealt ahead, so that the load goes on while a coordinator restarts. Each
lane is a lease; the longer lanes come first, so the workers take turns. What has come back is dealt again as
far as it can still be in time. A wave that nobody has yet is cut anew for the workers that live now.
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
"""So much of the schedule is dealt ahead: a coordinator may be away for 8 s."""
REPEAT_AHEAD_S = 5.0
"""So much of what has come back is dealt again: the worker that had it may soon be there again."""
LEAD_S = 0.3
"""What is dealt again reaches its worker within this time."""
MOST_PLANS = 8
"""How many rules are kept; the specs of more runs than these are seldom needed at a time."""


@dataclass(frozen=True)
class WavePlan:
    """The rule for one run.

    Attributes:
        schedule: when its requests are due.
        late_s: how late they may be sent; infinite if they are sent however late.
    """

    schedule: Schedule
    late_s: float

    def plan(
        self, dealing: Dealing, takers: Sequence[WorkerState], clock_s: float, ahead_s: float = AHEAD_S
    ) -> Deal | None:
        """What is to be dealt now; None if nothing is.

        Args:
            dealing: how far the run is dealt.
            takers: the workers that can take leases; without any, waves are cut once they are past.
            clock_s: what the schedule's clock says.
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

    def find_past(self, dealing: Dealing, clock_s: float) -> list[Range]:
        """What nobody has and cannot be sent in time any more, as coordinates."""
        pieces = cut_pieces(dealing.waves, dealing.pending)
        return [each for piece in pieces for each in split_at(self.schedule, piece, clock_s - self.late_s)[0]]

    def find_lost(self, piece: Piece, clock_s: float) -> list[Range]:
        """What of a piece that a dead worker had cannot be dealt again in time."""
        return split_at(self.schedule, piece, clock_s + LEAD_S - self.late_s)[0]

    def _keep(
        self, dealing: Dealing, takers: Sequence[WorkerState], clock_s: float
    ) -> tuple[Sequence[Wave], int]:
        """The waves that stay as they are, and the first block behind them."""
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
        """The next waves, from a block on, that begin before a time of the schedule."""
        while wave := plan_wave(self.schedule, block, max(1, len(takers))):
            if measure_span(self.schedule, wave)[0] >= until_s:
                return
            yield wave
            block = wave.next_block

    def _order(
        self, pieces: Iterable[Piece], takers: Sequence[WorkerState], clock_s: float, *, turn: int
    ) -> Iterator[PieceOrder]:
        """Leases of the pieces, as far as they can be in time; the workers take turns."""
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
