"""The periods of activity of a run as the ledger keeps them, each with what its clock says at the end."""

import math
from collections.abc import Sequence

from oku_coordinator.ledger.storage.schedule_records import PeriodRecord
from oku_core.schedule.wave import ActivePeriod

Periods = Sequence[tuple[ActivePeriod, float]]
"""Periods of activity, each with what the clock of the run says at its end; infinite for one that goes on."""


def list_ends(periods: Sequence[PeriodRecord], *, is_complete: bool = False) -> Periods:
    """The periods with their ends, the oldest first.

    Args:
        periods: those that the ledger keeps.
        is_complete: whether all requests are accounted; then nothing more is due in the second in which the
            last one was over, so that this second counts as a whole.
    """
    ends = [(each.build_period(), math.inf if each.stop_s is None else each.stop_s) for each in periods]
    if ends and is_complete:
        period, stop_s = ends[-1]
        ends[-1] = (period, _round_up(period, stop_s))
    return ends


def _round_up(period: ActivePeriod, stop_s: float) -> float:
    """What the clock of the schedule says at the end of the second of Unix time in which it says `stop_s`."""
    return stop_s if math.isinf(stop_s) else period.schedule_s(math.ceil(period.unix_time(stop_s)))
