"""What happened in the last second: the difference between two looks at the executions in hand.

Nothing is recorded twice in the hot path for this; once a second two histograms are subtracted.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from oku_core.accounting.histogram import HIGHEST_US, HistogramSnapshot, bucket_bounds_us
from oku_core.accounting.outcome import build_no_counts
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

    outcomes: list[int] = field(default_factory=build_no_counts)
    bytes_received: int = 0
    sum_us: int = 0
    counts: dict[int, int] = field(default_factory=dict)


class ProgressMeter:
    """Takes the differences; an execution that leaves between two looks is looked at once more.

    Args:
        measure_cpu_s: processor time of this process.
        clock: monotonic seconds.
    """

    def __init__(self, measure_cpu_s: Callable[[], float], clock: Callable[[], float]) -> None:
        self._measure_cpu_s = measure_cpu_s
        self._clock = clock
        self._seen: dict[Execution, _Seen] = {}
        self._left: list[Execution] = []
        self._cpu_s = self._at = 0.0

    def start(self) -> None:
        """Begin to measure."""
        self._cpu_s, self._at = self._measure_cpu_s(), self._clock()

    def forget(self, execution: Execution) -> None:
        """An execution leaves; the next look is the last at it."""
        self._left.append(execution)

    def take(self, executions: Iterable[Execution]) -> ProgressDelta:
        """What happened since the last call of this."""
        outcomes = build_no_counts()
        counts: dict[int, int] = {}
        received = sum_us = 0
        for execution in (*executions, *self._left):
            seen = self._seen.setdefault(execution, _Seen())
            if seen.outcomes == execution.outcomes:
                continue
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
        cpu_s, at = self._measure_cpu_s(), self._clock()
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
    for bucket, count in execution.list_counts():
        if new := count - seen.get(bucket, 0):
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
