"""The schedules of runs in the ledger, as types: their periods, and the dealing of their waves."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from oku_core.accounting.index_ranges import Range
from oku_core.results.series import SeriesRow
from oku_core.schedule.wave import ActivePeriod, Wave


class PeriodRecord(NamedTuple):
    """A period of a schedule's clock; times are of the coordinator's steady clock.

    Attributes:
        starts_at: the Unix time of its start.
        offset_s: the time of the schedule's clock then.
        stop_s: its time at the end; None while unknown.
    """

    starts_at: float
    offset_s: float
    stop_s: float | None = None

    def measure_s(self, now: float) -> float:
        """The time of the schedule's clock at a Unix time; it stands still before and after the period."""
        return max(self.offset_s, self.count_s(now))

    def count_s(self, now: float) -> float:
        """The time of the schedule's clock at a Unix time, as if it also ran before the period.

        Requests that are due at the start of the period can still be in time before it.
        """
        running_s = self.offset_s + now - self.starts_at
        return running_s if self.stop_s is None else min(running_s, self.stop_s)

    def find_end(self) -> float | None:
        """The Unix time of its end; None while unknown."""
        return None if self.stop_s is None else self.build_period().unix_time(self.stop_s)

    def build_period(self) -> ActivePeriod:
        """The period in messages to workers."""
        return ActivePeriod(self.starts_at, self.offset_s)


class Course(NamedTuple):
    """The course of a run by the clock.

    Attributes:
        series: its seconds, in order of time.
        periods: its periods of activity, the oldest first.
        settled_to: the Unix time up to which workers have reported, or without a rate, up to which unsent
            requests were left; infinite for a run at rest that had some until its time limit.
    """

    series: Sequence[SeriesRow]
    periods: Sequence[PeriodRecord]
    settled_to: float


@dataclass(frozen=True, kw_only=True)
class Dealing:
    """The state of dealing of an open run.

    Attributes:
        waves: the unaccounted waves, in rising order.
        cut: the number of waves cut so far.
        next_block: the first block of the schedule that is in none of them.
        pending: the unleased coordinates in these waves.
    """

    waves: Sequence[Wave]
    cut: int
    next_block: int
    pending: Sequence[Range]


class PieceOrder(NamedTuple):
    """A lease of an open run to be dealt.

    Attributes:
        worker: the name of the worker.
        incarnation: its process.
        wave: the first coordinate of its wave.
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
    """Changes to the waves of an open run.

    Attributes:
        dropped: the first coordinates of waves to cut again.
        waves: the new waves.
        next_block: the first block of the schedule that is then in no wave.
        orders: the leases to deal.
    """

    dropped: Sequence[int]
    waves: Sequence[Wave]
    next_block: int
    orders: Sequence[PieceOrder]
