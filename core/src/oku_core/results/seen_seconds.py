"""The seconds of a run as thresholds over some seconds look at them: by its series, or by a live sample.

The series has what was sent in each second, and what ended in it, exactly; only the times of requests are not
in it. A sample is made of what workers tell once a second, so it also has some of the second before.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

from oku_core.accounting.outcome import count_sent
from oku_core.results.active_seconds import ActiveSecond, find_whole_end, list_active
from oku_core.results.sample import Sample
from oku_core.results.series import SeriesRow
from oku_core.schedule.active_period import ActivePeriod
from oku_core.spec.load_plan import LoadPlan
from oku_core.thresholds.stretches import SeenSecond

LEFT_OUT_S = 2.0
"""After a start without a rate, and at each beginning of what is seen live, so many seconds are left out."""
_LATE_S = 0.1
"""Requests that are late by no more, in the second after theirs, count as sent in their own."""


def list_seen(
    rows: Iterable[SeriesRow],
    periods: Iterable[tuple[ActivePeriod, float]],
    plan: LoadPlan,
    settled_to: float = math.inf,
    since: float = -math.inf,
) -> Iterator[SeenSecond]:
    """The seconds of a run in which something was to be sent, by its series.

    Args:
        rows: the series, in order of time.
        periods: its periods of activity, each with what the clock of the run says at its end.
        plan: what was to be sent.
        settled_to: up to which Unix time the series is complete.
        since: where to begin, in Unix time.
    """
    kept = list(rows)
    sent = {row.second: row.sent for row in kept}
    length_s = math.inf if plan.length_s is None else plan.length_s
    for each in list_active(kept, periods, length_s, find_seen_to(plan, settled_to), since):
        if each.seconds > 1 or not plan.wants_load(each.begin_s, each.end_s):
            continue
        if plan.has_rate:
            yield _build_open(each, plan, sent.get(each.second + 1, 0))
        elif each.second - each.period.starts_at >= LEFT_OUT_S:
            yield _build(each, plan)


def find_seen_to(plan: LoadPlan, settled_to: float) -> float:
    """The Unix time up to which seconds can be looked at, if the series is complete up to another one.

    Of a run with a rate, the second behind each is needed, too.
    """
    return settled_to if math.isinf(settled_to) else find_whole_end(settled_to) - plan.has_rate


def build_live(sample: Sample, period: ActivePeriod, plan: LoadPlan) -> SeenSecond | None:
    """The second of a sample, with the times of requests; None if not all of it is one of the run.

    Args:
        sample: as it was made.
        period: the newest period of activity of the run.
        plan: what was to be sent.
    """
    first_at = sample.at - sample.seconds - LEFT_OUT_S
    begin_s, end_s = period.schedule_s(first_at), period.schedule_s(sample.at)
    length_s = math.inf if plan.length_s is None else plan.length_s
    is_over = end_s > length_s or not has_more(sample)
    if first_at < period.starts_at or is_over or not plan.wants_load(begin_s, end_s):
        return None
    return SeenSecond(
        at=sample.at,
        seconds=sample.seconds,
        clock_s=end_s,
        phases=plan.list_phases(begin_s, end_s),
        outcomes=sample.outcomes,
        latency=sample.latency,
        response_time=sample.response_time,
        lateness=sample.lateness,
    )


def has_more(sample: Sample) -> bool:
    """Whether requests were left to be sent at the end of a sample."""
    return sample.requests_total - sample.done > (sample.in_flight or 0)


def _build_open(each: ActiveSecond, plan: LoadPlan, sent_next: int) -> SeenSecond:
    begin, end, next_ = (plan.count_due(time_s) for time_s in (each.begin_s, each.end_s, each.end_s + 1))
    planned = end.number - begin.number
    late = min(sent_next - (next_.number - end.number), math.ceil(_LATE_S * planned))
    return replace(
        _build(each, plan),
        sent=each.sent,
        planned=planned,
        sent_late=max(0, math.floor(late)),
        variance=(begin.variance, end.variance),
    )


def _build(each: ActiveSecond, plan: LoadPlan) -> SeenSecond:
    return SeenSecond(
        at=float(each.second + each.seconds),
        seconds=float(each.seconds),
        clock_s=each.end_s,
        phases=plan.list_phases(each.begin_s, each.end_s),
        outcomes=each.outcomes,
        sent=count_sent(each.outcomes),
    )
