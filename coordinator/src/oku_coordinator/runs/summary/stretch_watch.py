"""Watches the thresholds over some seconds in a row of one run, as its seconds pass.

Rates and outcomes are judged by the series, once all workers have told of a second; so they are the same
after a crash. The times of requests are judged by what is seen live.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from oku_coordinator.ledger.rules.snapshots import StretchBasis
from oku_coordinator.ledger.storage.records import RunRecord, ThresholdRecord
from oku_coordinator.ledger.storage.schedule_records import PeriodRecord
from oku_core.accounting.run_state import RunState
from oku_core.results.active_seconds import SeriesSeconds, build_live, find_busy_to
from oku_core.results.sample import Sample
from oku_core.schedule.wave import ActivePeriod
from oku_core.spec.load_plan import build_load_plan
from oku_core.spec.spec import Spec
from oku_core.thresholds.stretches import SeenSecond, Stretch, looks_live

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


class Look(NamedTuple):
    """What is known of a run with a tick.

    Attributes:
        record: the run.
        sample: of the tick.
        basis: what the ledger has.
        told_to: the Unix time up to which the series is complete.
    """

    record: RunRecord
    sample: Sample
    basis: StretchBasis
    told_to: float


class StretchWatch:
    """The stretches of one run.

    Args:
        spec: of the run.
    """

    def __init__(self, spec: Spec) -> None:
        stretches = build_stretches(spec)
        self._plan = build_load_plan(spec)
        self._live = {number: each for number, each in stretches.items() if looks_live(each.threshold)}
        self._settled = {number: each for number, each in stretches.items() if number not in self._live}
        self._busy_to = -math.inf
        self._seconds = SeriesSeconds(self._plan)

    @property
    def since(self) -> int:
        """The Unix second from which the series is needed."""
        return self._seconds.since

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._live or self._settled)

    def update(self, look: Look, kept: Mapping[int, ThresholdRecord]) -> dict[int, ThresholdRecord]:
        """What is to be kept of thresholds for which that has changed, by their places in the spec.

        Args:
            look: at the run.
            kept: what is kept so far.
        """
        periods = list_periods(look.record, look.basis)
        seen = self._list_live(look, periods), self._list_settled(look, periods)
        changed = {}
        for stretches, seconds in zip((self._live, self._settled), seen, strict=True):
            for number, stretch in stretches.items():
                before = kept.get(number, ThresholdRecord())
                if (record := advance(stretch, seconds, before)) != before:
                    changed[number] = record
        return changed

    def _list_live(self, look: Look, periods: Periods) -> list[SeenSecond]:
        if not self._live or not periods or look.record.state != RunState.RUNNING:
            return []
        second = build_live(look.sample, periods[-1][0], self._plan)
        return [] if second is None else [second]

    def _list_settled(self, look: Look, periods: Periods) -> list[SeenSecond]:
        """The seconds that are new, and of which everything is known."""
        settled_to = look.told_to
        if not self._plan.has_rate:
            # It may run out of requests before its clock says so.
            told_to = settled_to if look.basis.untaken else -math.inf
            self._busy_to = max(self._busy_to, told_to, find_busy_to(look.sample))
            settled_to = min(settled_to, self._busy_to)
        if not self._settled or not periods:
            return []
        return self._seconds.take(look.basis.series, periods, settled_to)


def build_stretches(spec: Spec) -> dict[int, Stretch]:
    """Those of a run that has not begun, by the places of their thresholds in its spec."""
    return {
        number: Stretch(threshold)
        for number, threshold in enumerate(spec.thresholds)
        if threshold.over_s is not None
    }


def advance(stretch: Stretch, seconds: Iterable[SeenSecond], kept: ThresholdRecord) -> ThresholdRecord:
    """What is to be kept of a threshold after some more seconds of its run.

    Args:
        stretch: where it stands; takes in the seconds.
        seconds: those that follow.
        kept: what is kept of it so far.
    """
    worst, loss = kept.worst, kept.loss
    for second in seconds:
        seen = stretch.add(second)
        if seen is None:
            continue
        if worst is None or stretch.is_worse(seen.value, worst):
            worst = seen.value
        if loss is None and not seen.holds:
            loss = seen
    # How long a row was is only asked of one that was never long enough.
    longest_s = max(kept.longest_s, min(stretch.longest_s, float(stretch.threshold.over_s or 0)))
    return kept._replace(worst=worst, loss=loss, longest_s=longest_s)


def list_periods(record: RunRecord, basis: StretchBasis) -> Periods:
    """The periods of activity of a run that goes on."""
    if record.spec.has_clock:
        return list_ends(basis.periods)
    # Nothing is kept of the periods before, which were looked at in their time; nor is one that ends.
    if record.active_since is None or record.state != RunState.RUNNING:
        return []
    return [(ActivePeriod(record.active_since, record.active_s), math.inf)]
