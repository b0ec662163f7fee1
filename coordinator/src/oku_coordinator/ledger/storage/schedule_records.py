"""What the ledger keeps of the schedules of runs, as types: their periods, and how their waves are dealt."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from oku_core.accounting.index_ranges import Range
from oku_core.results.series import SeriesRow
from oku_core.schedule.wave import ActivePeriod, Wave


class PeriodRecord(NamedTuple):
    """A period in which the clock of a schedule runs; times are of the coordinator's steady clock.

    Attributes:
        starts_at: the Unix time at which it begins.
        offset_s: what the schedule's clock says then.
        stop_s: what it says at the end; None while that is not known.
    """

    starts_at: float
    offset_s: float
    stop_s: float | None = None

    def measure_s(self, now: float) -> float:
        """What the schedule's clock says at a Unix time; it stands still before the period and after it."""
        return max(self.offset_s, self.count_s(now))

    def count_s(self, now: float) -> float:
        """What the schedule's clock says at a Unix time, as if it went before the period, too.

        What is due when the period begins can still be in time before that.
        """
        running_s = self.offset_s + now - self.starts_at
        return running_s if self.stop_s is None else min(running_s, self.stop_s)

    def find_end(self) -> float | None:
        """The Unix time at which it ends; None while that is not known."""
        return None if self.stop_s is None else self.build_period().unix_time(self.stop_s)

    def build_period(self) -> ActivePeriod:
        """The period as workers get it."""
        return ActivePeriod(self.starts_at, self.offset_s)


class Course(NamedTuple):
    """How a run went by the clock.

    Attributes:
        series: its seconds, in order of time.
        periods: its periods of activity, the oldest first.
        settled_to: the Unix time up to which workers have told what they did, or without a rate, up to which
            requests were left to be sent; infinite for a run at rest that had some until its clock ended it.
    """

    series: Sequence[SeriesRow]
    periods: Sequence[PeriodRecord]
    settled_to: float


@dataclass(frozen=True, kw_only=True)
class Dealing:
    """How far an open run is dealt.

    Attributes:
        waves: those that are not accounted, in rising order.
        cut: how many waves were cut so far.
        next_block: the first block of the schedule that is in none of them.
        pending: the coordinates in these waves that nobody has.
    """

    waves: Sequence[Wave]
    cut: int
    next_block: int
    pending: Sequence[Range]


class PieceOrder(NamedTuple):
    """A lease of an open run that is to be dealt.

    Attributes:
        worker: the name of the worker.
        incarnation: its process.
        wave: the first coordinate of the wave that it lies in.
        lane: its lane of that wave.
        ranges: its coordinates; all of them are pending.
    """

    worker: str
    incarnation: str
    wave: int
    lane: int
    ranges: Sequence[Range]


@dataclass(frozen=True, kw_only=True)
class Deal:
    """What changes in the waves of an open run.

    Attributes:
        dropped: the first coordinates of waves that are cut anew.
        waves: those that are cut now.
        next_block: the first block of the schedule that is then in no wave.
        orders: the leases to deal.
    """

    dropped: Sequence[int]
    waves: Sequence[Wave]
    next_block: int
    orders: Sequence[PieceOrder]
