"""The whole seconds of a run in which its clock went on, as its plan and its thresholds look at them.

Seconds that a start, a pause or the end of the run cuts are left out, and those for which the clock was set
back, when a run went on. The series counts exactly the requests sent and ended in each second; only the
times of requests are not in it. A live sample is made from reports once a second, so it also has some
of the second before.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from oku_core.accounting.counts import Counts
from oku_core.accounting.outcome import build_no_counts, count_sent
from oku_core.results.sample import Sample
from oku_core.results.series import SeriesRow
from oku_core.schedule.wave import ActivePeriod
from oku_core.spec.load_plan import LoadPlan
from oku_core.thresholds.stretches import SeenSecond

_LONGEST_GAP_S = 3600
"""Seconds without any event are listed one by one, up to this many in a row."""
_ROUNDED_S = 1e-6
_DIGITS = 5
"""Unix times as floats are precise to a quarter of a microsecond; phases end at times that users wrote."""
LEFT_OUT_S = 2.0
"""Seconds left out after a start without a rate, and whenever live samples begin."""
_LATE_S = 0.25
"""Requests that are late by no more count as sent in the second in which they were due."""
_ROUNDED_TICK_S = 1e-3
_LATE_TICK_S = 0.25
"""Ticks are usually a few milliseconds late."""


class ActiveSecond(NamedTuple):
    """A second of a run, or some that were merged.

    Attributes:
        second: the Unix time at which it begins.
        seconds: how many they are.
        period: that they lie in.
        sent: how many requests were sent in them.
        outcomes: of the requests that ended in them, in the order of `OUTCOMES`.
    """

    second: int
    seconds: int
    period: ActivePeriod
    sent: int
    outcomes: Sequence[int]

    @property
    def begin_s(self) -> float:
        """The time of the run's clock at their start."""
        return round(self.period.schedule_s(self.second), _DIGITS)

    @property
    def end_s(self) -> float:
        """The time of the run's clock at their end."""
        return round(self.period.schedule_s(self.second + self.seconds), _DIGITS)


def list_active(
    rows: Iterable[SeriesRow],
    periods: Iterable[tuple[ActivePeriod, float]],
    length_s: float = math.inf,
    settled_to: float = math.inf,
    since: float = -math.inf,
) -> Iterator[ActiveSecond]:
    """The seconds of a run that lie in its periods of activity as a whole.

    Args:
        rows: its series, in order of time.
        periods: its periods of activity, each with the time of the run's clock at its end.
        length_s: how many seconds the run lasts by its clock.
        settled_to: up to which Unix time the reports of all workers are complete; finite unless each of the
            periods has an end, or the run has.
        since: where to begin, in Unix time.
    """
    kept = list(rows)
    reached_s = 0.0
    for period, stop_s in periods:
        begin_at = max(since, period.unix_time(max(reached_s, period.offset_s)))
        end_at = min(settled_to, period.unix_time(min(stop_s, length_s)))
        reached_s = max(reached_s, stop_s)
        first = math.ceil(begin_at - _ROUNDED_S)
        for row in _cut(range(first, max(first, find_whole_end(end_at))), kept):
            yield ActiveSecond(row.second, row.seconds, period, row.sent, row.outcomes)


def find_whole_end(at: float) -> int:
    """The end of the last whole second by a Unix time."""
    return math.floor(at + _ROUNDED_S)


def _cut(within: range, rows: Sequence[SeriesRow]) -> Iterator[SeriesRow]:
    """The seconds of a range, as the rows cut them."""
    at = within.start
    for row in rows:
        if row.second >= within.stop:
            break
        if row.second >= at:
            yield from _fill(at, row.second)
            if row.second + row.seconds > within.stop:
                return
            yield row
        at = max(at, row.second + row.seconds)
    yield from _fill(at, within.stop)


def _fill(start: int, stop: int) -> Iterator[SeriesRow]:
    """Seconds without a row: nothing was sent in them, and nothing ended."""
    if stop - start > _LONGEST_GAP_S:
        yield SeriesRow(second=start, seconds=stop - start, outcomes=build_no_counts())
    else:
        yield from (SeriesRow(second=second, outcomes=build_no_counts()) for second in range(start, stop))


class SeriesSeconds:
    """The seconds of one run in which something was to be sent, by its series.

    Args:
        plan: the planned load.

    Attributes:
        since: the Unix time from which the series is needed next.
    """

    def __init__(self, plan: LoadPlan) -> None:
        self._plan = plan
        self.since = 0
        self._period: ActivePeriod | None = None
        self._owed = 0.0
        """How many requests were due in the period by its last second, and neither sent nor given up."""
        self._carried = 0

    def list_new(
        self,
        rows: Iterable[SeriesRow],
        periods: Iterable[tuple[ActivePeriod, float]],
        settled_to: float = math.inf,
    ) -> list[SeenSecond]:
        """List the seconds that were not listed before, in order.

        Args:
            rows: the series from `since` on, in order of time.
            periods: the periods of activity, each with the time of the run's clock at its end.
            settled_to: up to which Unix time the series is complete; minus infinity if that is unknown.
        """
        if settled_to == -math.inf:
            return []
        kept = list(rows)
        # Of a run with a rate, the second behind each is needed, too.
        until = settled_to - self._plan.has_rate
        length_s = math.inf if self._plan.length_s is None else self._plan.length_s
        sent = {row.second: row.sent for row in kept}
        seconds = [
            seen
            for each in list_active(kept, periods, length_s, until, self.since)
            if (seen := self._see(each, sent.get(each.second + 1, 0))) is not None
        ]
        if math.isfinite(until):
            self.since = max(self.since, find_whole_end(until))
        return seconds

    def _see(self, each: ActiveSecond, sent_next: int) -> SeenSecond | None:
        plan = self._plan
        if not plan.has_rate:
            is_left_out = each.second - each.period.starts_at < LEFT_OUT_S
            seen = None if is_left_out else _build(each, plan)
        else:
            seen = self._see_planned(each, sent_next)
        # Merged samples belong to a time that was judged long ago.
        return seen if each.seconds == 1 and plan.wants_load(each.begin_s, each.end_s) else None

    def _see_planned(self, each: ActiveSecond, sent_next: int) -> SeenSecond:
        if each.period is not self._period and each.period != self._period:
            self._period, self._owed, self._carried = each.period, 0.0, 0
        begin, end = (self._plan.count_due(time_s) for time_s in (each.begin_s, each.end_s))
        planned = end.number - begin.number
        given_up = sum(each.outcomes) - count_sent(each.outcomes)
        self._owed = max(0.0, self._owed + planned - each.sent - given_up)
        carried_in = self._carried
        self._carried = min(math.floor(self._owed), math.ceil(_LATE_S * planned), sent_next)
        return replace(
            _build(each, self._plan),
            sent=each.sent,
            planned=planned,
            carried_in=carried_in,
            carried_out=self._carried,
            variance=(begin.variance, end.variance),
        )


def build_live(sample: Sample, period: ActivePeriod, plan: LoadPlan) -> SeenSecond | None:
    """The second of a sample, with the times of requests; None if not all of it is in the newest period."""
    first_at = sample.at - sample.seconds - LEFT_OUT_S
    begin_s, end_s = period.schedule_s(first_at), period.schedule_s(sample.at)
    length_s = math.inf if plan.length_s is None else plan.length_s
    is_over = end_s > length_s + _LATE_TICK_S or not _has_more(sample)
    if first_at < period.starts_at or is_over or not plan.wants_load(begin_s, end_s):
        return None
    return SeenSecond(
        at=sample.at,
        seconds=sample.seconds,
        clock_s=end_s,
        phases=plan.list_phases(begin_s, end_s),
        counts=Counts(outcomes=sample.outcomes, times=sample.times),
    )


def find_busy_end(sample: Sample) -> float:
    """Up to when requests were certainly left to be sent, as a sample shows; minus infinity if it does not.

    It is made of reports that are up to a second old.
    """
    return math.floor(sample.at + _ROUNDED_TICK_S) - 1.0 if _has_more(sample) else -math.inf


def _has_more(sample: Sample) -> bool:
    """Whether requests were left to be sent at the end of a sample."""
    return sample.requests_total - sample.done > (sample.in_flight or 0)


def _build(each: ActiveSecond, plan: LoadPlan) -> SeenSecond:
    return SeenSecond(
        at=float(each.second + each.seconds),
        seconds=float(each.seconds),
        clock_s=each.end_s,
        phases=plan.list_phases(each.begin_s, each.end_s),
        counts=Counts(outcomes=list(each.outcomes)),
        sent=count_sent(each.outcomes),
    )
