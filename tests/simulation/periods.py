"""The periods in which the clock of a run goes, as the file of the ledger has them, and the laws of them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from tests.simulation.laws import LawBrokenError

_REWIND_S = 15.0
"""The clock of a run with a rate is set back by so much at most when it goes on."""
_OPENED_AHEAD_S, _SURELY_AHEAD_S = 2.1, 0.3
"""A period starts so long after it was opened: at most, and at least."""
_ROUNDING_S = 1e-5
"""What floating point does to Unix times."""


class Period(NamedTuple):
    """A time in which the clock of a run goes.

    Attributes:
        starts_at: its start, in Unix time.
        offset_s: what the clock says then.
        stop_s: what it says when the period ends; None while that is not known.
    """

    starts_at: float
    offset_s: float
    stop_s: float | None

    def measure_s(self, now: float) -> float:
        """What the clock says at a Unix time, in the period or behind it."""
        return self.offset_s + now - self.starts_at

    def find_reached_s(self, now: float) -> float:
        """How far the clock has come at a Unix time."""
        running_s = self.offset_s + max(0.0, now - self.starts_at)
        return running_s if self.stop_s is None else min(running_s, self.stop_s)


class Moment(NamedTuple):
    """When a worker takes a request.

    Attributes:
        now: true Unix time of the coordinator's steady clock.
        bound_s: how wrong the worker may be about that.
    """

    now: float
    bound_s: float

    @property
    def slack_s(self) -> float:
        """By how much a time may differ without a breach."""
        return self.bound_s + _ROUNDING_S


def check_periods(periods: Sequence[Period], *, may_rewind: bool) -> None:
    """Check that a clock goes on where it was, or a little before that, and is stopped in between."""
    for before, after in pairwise(periods):
        if before.stop_s is None:
            raise LawBrokenError("a period begins before the one before it has ended")
        back_s = before.stop_s - after.offset_s
        if not -_ROUNDING_S <= back_s <= (_REWIND_S if may_rewind else 0.0) + _ROUNDING_S:
            raise LawBrokenError(f"the clock of a run goes on {back_s:.6f} s before where it was")


def choose_periods(periods: Sequence[Period], dealt_at: float | None) -> Sequence[Period]:
    """Those of which a lease may be that was dealt at a Unix time; all if that is not known."""
    starts = [period.starts_at for period in periods]
    if dealt_at is None or starts != sorted(starts):
        return periods  # the clock was set back while the run was paused
    opened = [period for period in periods if period.starts_at <= dealt_at + _OPENED_AHEAD_S]
    is_sure = bool(opened) and opened[-1].starts_at <= dealt_at + _SURELY_AHEAD_S
    return (opened[-1:] if is_sure else opened[-2:]) or periods
