"""The series of a run: how many requests ended in each second, by outcome, from accepted checkpoints alone.

It is folded in the transaction that accounts for the requests, so it sums to the account at every moment.
Samples are made from progress, which may be lost; their outcomes are taken from the series (`join`).
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from oku_core.accounting.outcome import build_no_counts
from oku_core.results.sample import Sample, build_rates

Series = Mapping[int, Sequence[int]]
"""Counts of outcomes in the order of `OUTCOMES`, by the Unix second in which the requests ended."""
_GAP_S = 0.75
"""Samples that are further apart than this do not share the second between them."""
_LATE_S = 3.0
"""A longer time from one sample to the next is no late tick, but a pause or a merged sample."""


def add(series: dict[int, list[int]], second: int, outcomes: Sequence[int]) -> None:
    """Add counts to a second."""
    series[second] = add_counts(series[second], outcomes) if second in series else list(outcomes)


def add_counts(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """The sum of two accounts of outcomes."""
    return [a + b for a, b in zip(first, second, strict=True)]


def place(series: Series, *, started_at: float, cut_at: float, now: float) -> dict[int, list[int]]:
    """Place seconds of a worker's clock on that of the coordinator.

    A lease begins after it was cut and nothing of it ends after now, so a worker's clock that contradicts
    this is wrong, and its seconds are shifted as far as they must be. Clocks that agree are left alone.

    Args:
        series: by the worker's clock.
        started_at: when the lease began, by the worker's clock; 0 if nothing of it was sent.
        cut_at: when it was cut, by the coordinator's clock.
        now: by the coordinator's clock.
    """
    if not series:
        return {}
    first, last = math.floor(cut_at), max(math.floor(cut_at), math.floor(now))
    behind_s = max(0, first - math.floor(started_at)) if started_at else 0
    shift_s = min(behind_s, last - max(series))
    placed: dict[int, list[int]] = {}
    for second, outcomes in series.items():
        add(placed, min(last, max(first, second + shift_s)), outcomes)
    return placed


def find_seconds(samples: Sequence[Sample]) -> list[tuple[int, int]]:
    """The whole seconds `[first, stop)` that each of some samples, in order of time, stands for.

    Ticks are due at whole seconds, so a sample that follows another one stands for the seconds between them.
    """
    seconds: list[tuple[int, int]] = []
    for place_, sample in enumerate(samples):
        follower = samples[place_ + 1] if place_ + 1 < len(samples) else None
        before = seconds[-1][1] if seconds else None
        if before is None or not _are_adjacent(samples[place_ - 1], sample):
            first = math.floor(sample.at - sample.seconds)
            first = first if before is None else max(before, first)
        else:
            first = before
        is_followed = follower is not None and _are_adjacent(sample, follower)
        stop = math.floor(sample.at + 0.5) if is_followed else math.ceil(sample.at)
        seconds.append((first, max(first, stop)))
    return seconds


def join(samples: Sequence[Sample], series: Series, requests: int) -> list[Sample]:
    """Add the counts of a series to the samples of the seconds in which the requests ended.

    Seconds without a sample, for which the coordinator was away, get samples with what is known of them. So
    all outcomes sum to those of the series and those that the samples had.

    Args:
        samples: of a run, in order of time.
        series: of the same run.
        requests: the size of its request space.
    """
    if not series:
        return list(samples)
    spans = find_seconds(samples)
    firsts = [first for first, _ in spans]
    by_sample: dict[int, list[int]] = {}
    unseen: dict[int, list[tuple[int, Sequence[int]]]] = {}
    for second in sorted(series):
        number = bisect_right(firsts, second) - 1
        if number >= 0 and second < spans[number][1]:
            by_sample.setdefault(number, build_no_counts())
            by_sample[number] = add_counts(by_sample[number], series[second])
        else:
            unseen.setdefault(number, []).append((second, series[second]))
    joined = list(_fill(None, unseen.get(-1, []), requests))
    for number, sample in enumerate(samples):
        joined.append(_count(sample, by_sample.get(number), spans[number], joined[-1] if joined else None))
        joined += _fill(joined[-1], unseen.get(number, []), requests)
    return joined


def _are_adjacent(sample: Sample, follower: Sample) -> bool:
    return follower.at - follower.seconds - sample.at < _GAP_S


def _count(
    sample: Sample, outcomes: Sequence[int] | None, span: tuple[int, int], before: Sample | None
) -> Sample:
    """A sample with more outcomes; one after a late tick is as long as the seconds that it stands for."""
    if outcomes is None:
        return sample
    total = add_counts(sample.outcomes, outcomes)
    since_s = math.inf if before is None else sample.at - before.at
    seconds = sample.seconds if since_s > _LATE_S else max(sample.seconds, min(since_s, span[1] - span[0]))
    return msgspec.structs.replace(sample, seconds=seconds, outcomes=total, **build_rates(seconds, total))


def _fill(
    before: Sample | None, unseen: Sequence[tuple[int, Sequence[int]]], requests: int
) -> Iterator[Sample]:
    """Samples of seconds of which nothing but the outcomes is known."""
    if before is None:
        before = Sample(
            at=-math.inf, seconds=0.0, requests_total=requests, accounted=0, leased=0, pending=requests,
            done=0, resent_at_most=0, workers=None, in_flight=None, lag_s=None,
        )  # fmt: skip
    for second, outcomes in unseen:
        passed_s = 1.0 if math.isinf(before.at) else second + 1 - before.at
        before = Sample(
            at=float(second + 1),
            seconds=1.0,
            requests_total=requests,
            accounted=before.accounted,
            leased=before.leased,
            pending=before.pending,
            done=min(requests, before.done + sum(outcomes)),
            resent_at_most=before.resent_at_most,
            active_s=before.active_s + passed_s,
            outcomes_so_far=add_counts(before.outcomes_so_far, outcomes),
            workers=None,
            in_flight=None,
            outcomes=list(outcomes),
            lag_s=None,
            **build_rates(1.0, outcomes),
        )
        yield before
