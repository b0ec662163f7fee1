"""What happened in the last second: the difference between two looks at the executions under way.

Nothing is recorded twice in the hot path for this; once a second two histograms are subtracted.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from oku_core.accounting.histogram import HIGHEST_US, HistogramSnapshot, bucket_bounds_us
from oku_core.accounting.outcome import OUTCOMES
from oku_workers.executions.execution import Execution

_SHORTEST_S = 1e-6


@dataclass
class ProgressDelta:
    """What is new since the look before; the smallest and the largest latency are bounds of their buckets."""

    seconds: float
    cpu_share: float
    outcomes: list[int]
    bytes_received: int
    latency: HistogramSnapshot


@dataclass
class _Seen:
    """What was counted of an execution at the last look."""

    outcomes: list[int] = field(default_factory=lambda: [0] * len(OUTCOMES))
    bytes_received: int = 0
    sum_us: int = 0
    counts: dict[int, int] = field(default_factory=dict)


class ProgressMeter:
    """Takes the differences; an execution that leaves between two looks is looked at once more."""

    def __init__(self) -> None:
        self._seen: dict[Execution, _Seen] = {}
        self._left: list[Execution] = []
        self._cpu_s = self._at = 0.0

    def start(self) -> None:
        """Begin to measure."""
        self._cpu_s, self._at = time.process_time(), time.monotonic()

    def forget(self, execution: Execution) -> None:
        """An execution leaves; the next look is the last at it."""
        self._left.append(execution)

    def take(self, executions: Iterable[Execution]) -> ProgressDelta:
        """What happened since the last call of this."""
        outcomes = [0] * len(OUTCOMES)
        counts: dict[int, int] = {}
        received = sum_us = 0
        for execution in (*executions, *self._left):
            seen = self._seen.setdefault(execution, _Seen())
            for index, count in enumerate(execution.outcomes):
                outcomes[index] += count - seen.outcomes[index]
            received += execution.bytes_received - seen.bytes_received
            sum_us += execution.sum_us - seen.sum_us
            seen.outcomes, seen.bytes_received, seen.sum_us = (
                list(execution.outcomes),
                execution.bytes_received,
                execution.sum_us,
            )
            _add_new_counts(counts, execution, seen.counts)
        for execution in self._left:
            self._seen.pop(execution, None)
        self._left.clear()
        return self._take_times(outcomes, received, _build_latency(counts, sum_us))

    def _take_times(self, outcomes: list[int], received: int, latency: HistogramSnapshot) -> ProgressDelta:
        cpu_s, at = time.process_time(), time.monotonic()
        seconds = max(at - self._at, _SHORTEST_S)
        delta = ProgressDelta(
            seconds=seconds,
            cpu_share=(cpu_s - self._cpu_s) / seconds,
            outcomes=outcomes,
            bytes_received=received,
            latency=latency,
        )
        self._cpu_s, self._at = cpu_s, at
        return delta


def _add_new_counts(counts: dict[int, int], execution: Execution, seen: dict[int, int]) -> None:
    buckets = execution.bucket_range()
    for bucket, count in zip(buckets, execution.counts[buckets.start : buckets.stop], strict=True):
        if count and (new := count - seen.get(bucket, 0)):
            counts[bucket] = counts.get(bucket, 0) + new
            seen[bucket] = count


def _build_latency(counts: dict[int, int], sum_us: int) -> HistogramSnapshot:
    if not counts:
        return HistogramSnapshot()
    buckets: list[int] = []
    for bucket in sorted(counts):
        buckets += (bucket, counts[bucket])
    return HistogramSnapshot(
        buckets=buckets,
        sum_us=sum_us,
        min_us=bucket_bounds_us(buckets[0])[0],
        max_us=min(bucket_bounds_us(buckets[-2])[1], HIGHEST_US),
    )
