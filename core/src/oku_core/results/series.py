"""The series of a run: how many requests were sent and ended in each second, from accepted checkpoints alone.

It is folded in the transaction that accounts for the requests, so it sums to the account at every moment.
Samples are made from progress, which may be lost; their outcomes are taken from the series (`join_series`).
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from oku_core.accounting.counts import coarsen_times
from oku_core.accounting.outcome import build_no_counts
from oku_core.results.sample import Sample, build_rates


@dataclass(frozen=True, kw_only=True)
class SeriesRow:
    """Some seconds of a run.

    Attributes:
        second: the Unix time at which they begin, by the coordinator's clock.
        seconds: how many they are: one, or a whole step in which old seconds were merged.
        outcomes: the requests that ended in them, in the order of `OUTCOMES`.
        sent: how many requests were sent in them.
        is_new: of an increment, whether it is the first one.
    """

    second: int
    seconds: int = 1
    outcomes: Sequence[int]
    sent: int = 0
    is_new: bool = False


_MOST_LATE_S = 0.35
"""A tick comes at a whole second, or at most this much later; a later end is the rest of a run."""
_EARLY_S = 0.05
"""By how much a sample may begin before its first second: timers and rounding are a little early."""


def add_counts(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """The sum of two lists of counts."""
    return [a + b for a, b in zip(first, second, strict=True)]


def place(
    per_second: Mapping[int, Sequence[int]], *, started_at: float, cut_at: float, now: float
) -> dict[int, list[int]]:
    """Place the seconds of a worker's clock on the coordinator's clock.

    A lease begins after it was cut and nothing of it ends after now, so a worker's clock that contradicts
    this is wrong, and its seconds are shifted as far as they must be. Clocks that agree are left alone.

    Args:
        per_second: lists of counts by Unix seconds of the worker's clock.
        started_at: when the lease began, by the worker's clock; 0 if nothing of it was sent, or if the
            seconds are not of that clock.
        cut_at: when it was cut, by the coordinator's clock.
        now: by the coordinator's clock.
    """
    if not per_second:
        return {}
    first = math.floor(cut_at)
    last = max(first, math.floor(now))
    behind_s = max(0, first - math.floor(started_at)) if started_at else 0
    shift_s = min(behind_s, last - max(per_second))
    placed: dict[int, list[int]] = {}
    for second, counts in per_second.items():
        at = min(last, max(first, second + shift_s))
        placed[at] = add_counts(placed[at], counts) if at in placed else list(counts)
    return placed


def leave_to_series(sample: Sample) -> Sample:
    """A live sample as the ledger keeps it: without what the series counts exactly, and with coarse times.

    `join_series` and `add_rows` put the counts in again.
    """
    nothing = build_no_counts()
    return msgspec.structs.replace(
        sample,
        times=coarsen_times(sample.times),
        requests_sent=0,
        outcomes=nothing,
        **build_rates(sample.seconds, nothing),
    )


def add_rows(sample: Sample, rows: Iterable[SeriesRow], seconds: float | None = None) -> Sample:
    """A kept sample with the counts of these rows; it becomes this long if that is given."""
    outcomes, sent = sample.outcomes, sample.requests_sent
    for row in rows:
        outcomes, sent = add_counts(outcomes, row.outcomes), sent + row.sent
    seconds = sample.seconds if seconds is None else seconds
    return msgspec.structs.replace(
        sample, seconds=seconds, requests_sent=sent, outcomes=outcomes, **build_rates(seconds, outcomes)
    )


def find_seconds(samples: Sequence[Sample]) -> list[tuple[int, int]]:
    """The whole seconds `[first, stop)` that each of some samples, in order of time, stands for.

    Ticks are due at whole seconds, so a sample that follows another one stands for the seconds between them.
    One that nothing follows is a late tick as well, and the next second belongs to no sample; or it is the
    rest of a run or of a period of it, and stands for the second in which that ended.
    """
    seconds: list[tuple[int, int]] = []
    for place_, sample in enumerate(samples):
        follower = samples[place_ + 1] if place_ + 1 < len(samples) else None
        before = seconds[-1][1] if seconds else None
        if before is None or not _are_adjacent(samples[place_ - 1], sample):
            first = _find_first(sample) if before is None else max(before, _find_first(sample))
        else:
            first = before
        is_followed = follower is not None and _are_adjacent(sample, follower)
        stop = math.floor(sample.at + 0.5) if is_followed else _find_last_stop(first, sample.at)
        seconds.append((first, max(first, stop)))
    return seconds


def join_series(samples: Sequence[Sample], rows: Iterable[SeriesRow], requests: int) -> list[Sample]:
    """Add the counts of a series to the samples of their seconds; both are in order of time.

    Seconds without a sample, for which the coordinator was away, get samples with the known part. So all
    outcomes sum to the outcomes of the series and of the given samples.
    """
    spans = find_seconds(samples)
    seen, unseen = assign(spans, rows)
    joined = list(_fill(None, unseen.get(0, []), requests))
    for number, sample in enumerate(samples):
        before = joined[-1] if joined else None
        joined.append(_count(sample, seen.get(number, []), spans[number], before))
        joined += _fill(joined[-1], unseen.get(number + 1, []), requests)
    return joined


def assign(
    spans: Sequence[tuple[int, int]], rows: Iterable[SeriesRow]
) -> tuple[dict[int, list[SeriesRow]], dict[int, list[SeriesRow]]]:
    """The rows of a series for each span of seconds, and those before each span that are in none.

    Rows behind the last span have its number and one.
    """
    stops = [stop for _, stop in spans]
    seen: dict[int, list[SeriesRow]] = {}
    unseen: dict[int, list[SeriesRow]] = {}
    for row in rows:
        number = bisect_right(stops, row.second)
        is_seen = number < len(spans) and spans[number][0] < row.second + row.seconds
        (seen if is_seen else unseen).setdefault(number, []).append(row)
    return seen, unseen


def _are_adjacent(sample: Sample, follower: Sample) -> bool:
    """Whether no whole second lies between them."""
    return _find_first(follower) <= math.floor(sample.at + 0.5)


def _find_first(sample: Sample) -> int:
    """The second in which a sample begins by itself."""
    return math.floor(sample.at - sample.seconds + _EARLY_S)


def _find_last_stop(first: int, at: float) -> int:
    """Where the seconds of a sample end that begin with a first one and that no sample follows."""
    due = _find_due(at)
    return math.ceil(due if due > first else at)


def _count(sample: Sample, rows: Sequence[SeriesRow], span: tuple[int, int], before: Sample | None) -> Sample:
    """A sample with more outcomes; one after a late tick is as long as the seconds that it stands for."""
    return add_rows(sample, rows, _measure_s(sample, span, before)) if rows else sample


def _measure_s(sample: Sample, span: tuple[int, int], before: Sample | None) -> float:
    """The length of a sample that stands for whole seconds, as far as the run was active in them."""
    first, stop = span
    end = min(stop, sample.at)
    since, active_before_s = (0.0, 0.0) if before is None else (_find_due(before.at), before.active_s)
    idle_s = sample.at - (0.0 if before is None else before.at) - (sample.active_s - active_before_s)
    seconds = max(sample.seconds, min(end - first, end - since - idle_s))
    return min(seconds, stop - first) if stop > first else seconds


def _find_due(at: float) -> float:
    """When a tick was due."""
    whole = math.floor(at)
    return whole if at - whole <= _MOST_LATE_S else at


def _fill(before: Sample | None, rows: Iterable[SeriesRow], requests: int) -> Iterator[Sample]:
    """Samples of seconds of which nothing but the outcomes is known."""
    for row in rows:
        before = _build_unseen(before, row, requests)
        yield before


def _build_unseen(before: Sample | None, row: SeriesRow, requests: int) -> Sample:
    at, seconds = float(row.second + row.seconds), float(row.seconds)
    counted = list(row.outcomes)
    return Sample(
        at=at,
        seconds=seconds,
        requests_total=requests,
        accounted=before.accounted if before else 0,
        leased=before.leased if before else 0,
        pending=before.pending if before else requests,
        done=min(requests, (before.done if before else 0) + sum(counted)),
        resent_at_most=before.resent_at_most if before else 0,
        active_s=before.active_s + at - before.at if before else seconds,
        outcomes_so_far=add_counts(before.outcomes_so_far, counted) if before else counted,
        workers=None,
        in_flight=None,
        requests_sent=row.sent,
        outcomes=counted,
        lag_s=None,
        **build_rates(seconds, counted),
    )
