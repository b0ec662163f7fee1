"""Watches the thresholds of one run that cover several consecutive seconds.

Rates and outcomes are judged by the series, once all workers have reported a second; so the result is the
same after a crash. Latencies are judged live.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from oku_coordinator.ledger.rules.snapshots import StretchBasis
from oku_coordinator.ledger.storage.records import RunRecord, ThresholdRecord
from oku_coordinator.ledger.storage.schedule_records import PeriodRecord
from oku_core.accounting.run_state import RunState
from oku_core.results.active_seconds import SeriesSeconds, build_live, find_busy_end
from oku_core.results.sample import Sample
from oku_core.schedule.wave import ActivePeriod
from oku_core.spec.load_plan import build_load_plan
from oku_core.spec.spec import Spec
from oku_core.thresholds.stretches import SeenSecond, Stretch, looks_live

Periods = Sequence[tuple[ActivePeriod, float]]
"""Periods of activity, each with the time of the run's clock at its end; infinite for the current one."""


def list_ends(periods: Sequence[PeriodRecord], *, is_complete: bool = False) -> Periods:
    """The periods with their ends, oldest first.

    Args:
        periods: the periods in the ledger.
        is_complete: whether all requests are accounted; then the second of the last one is complete and
            counts as a whole.
    """
    ends = [(each.build_period(), math.inf if each.stop_s is None else each.stop_s) for each in periods]
    if ends and is_complete:
        period, stop_s = ends[-1]
        ends[-1] = (period, _round_up(period, stop_s))
    return ends


def _round_up(period: ActivePeriod, stop_s: float) -> float:
    """Round up to the time of the schedule's clock at the end of the Unix second that contains `stop_s`."""
    return stop_s if math.isinf(stop_s) else period.schedule_s(math.ceil(period.unix_time(stop_s)))


class StretchView(NamedTuple):
    """The state of a run at a tick.

    Attributes:
        record: the run.
        sample: the sample of the tick.
        basis: the data from the ledger.
        settled_to: the Unix time up to which the series is complete.
    """

    record: RunRecord
    sample: Sample
    basis: StretchBasis
    settled_to: float


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
        """Whether the run has such thresholds."""
        return bool(self._live or self._settled)

    def update(self, view: StretchView, kept: Mapping[int, ThresholdRecord]) -> dict[int, ThresholdRecord]:
        """Advance to a new tick; returns the changed records of thresholds, by their places in the spec.

        Args:
            view: the state of the run.
            kept: the records so far.
        """
        periods = list_periods(view.record, view.basis)
        seen = self._list_live(view, periods), self._list_settled(view, periods)
        changed = {}
        for stretches, seconds in zip((self._live, self._settled), seen, strict=True):
            for number, stretch in stretches.items():
                before = kept.get(number, ThresholdRecord())
                if (record := advance(stretch, seconds, before)) != before:
                    changed[number] = record
        return changed

    def _list_live(self, view: StretchView, periods: Periods) -> list[SeenSecond]:
        if not self._live or not periods or view.record.state != RunState.RUNNING:
            return []
        second = build_live(view.sample, periods[-1][0], self._plan)
        return [] if second is None else [second]

    def _list_settled(self, view: StretchView, periods: Periods) -> list[SeenSecond]:
        """The new seconds that are complete."""
        settled_to = view.settled_to
        if not self._plan.has_rate:
            # It may run out of requests before its time is over.
            reported_to = settled_to if view.basis.untaken else -math.inf
            self._busy_to = max(self._busy_to, reported_to, find_busy_end(view.sample))
            settled_to = min(settled_to, self._busy_to)
        if not self._settled or not periods:
            return []
        return self._seconds.list_new(view.basis.series, periods, settled_to)


def build_stretches(spec: Spec) -> dict[int, Stretch]:
    """Build the stretches of a run that has not started, by the places of their thresholds in its spec."""
    return {
        number: Stretch(threshold)
        for number, threshold in enumerate(spec.thresholds)
        if threshold.over_s is not None
    }


def advance(stretch: Stretch, seconds: Iterable[SeenSecond], kept: ThresholdRecord) -> ThresholdRecord:
    """The record of a threshold after some more seconds of its run.

    Args:
        stretch: the state of the stretch, which is updated.
        seconds: the next seconds.
        kept: the record so far.
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
    # The longest row matters only if none was long enough.
    longest_s = max(kept.longest_s, min(stretch.longest_s, float(stretch.threshold.over_s or 0)))
    return kept._replace(worst=worst, loss=loss, longest_s=longest_s)


def list_periods(record: RunRecord, basis: StretchBasis) -> Periods:
    """The open period of activity of a run."""
    if record.spec.has_clock:
        return list_ends(basis.periods)
    # Earlier periods were judged in their time, and an ending one is judged at rest.
    if record.active_since is None or record.state != RunState.RUNNING:
        return []
    return [(ActivePeriod(record.active_since, record.active_s), math.inf)]
