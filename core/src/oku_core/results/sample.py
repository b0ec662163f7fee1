"""The history of a run, as the ledger keeps it for reports and dashboards: moments and events.

Moments are made of progress, which may be lost: they show how a run went, they are not its account. A long
run has fewer and longer ones (`merge_steps`): what they count is merged, never sampled.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

import msgspec

from oku_core.accounting import histogram
from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.outcome import build_no_counts
from oku_core.accounting.run_state import RunState

MOST_SAMPLES = 3600
"""How many moments of a run are kept; an hour of seconds."""


QUANTILES = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99, "p99_9_ms": 0.999, "max_ms": 1.0}
"""What is shown of latencies over time, by name."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A second of a run, or several of them merged.

    Attributes:
        at: Unix time of its end, by the coordinator's clock.
        seconds: how long it was.
        state: of the run at its end.
        accounted: requests in the ledger at its end.
        leased: requests in active leases at its end.
        pending: requests in no lease at its end.
        done: accounted, and those of active leases that have ended as far as progress says.
        resent_at_most: at its end.
        in_flight: over all workers; of several seconds the mean.
        workers: how many lived at its end.
        outcomes: of requests that ended in it, in the order of `OUTCOMES`.
        bytes_received: in it.
        lag_s: largest lateness of any worker's event loop in it.
        latency: of the requests answered in it, known to 1 part in 32 (`coarsen`).
        p50_ms: of the same, as long as it is a single second known to three digits; None without answers.
        p90_ms: likewise.
        p99_ms: likewise.
        p99_9_ms: likewise.
        max_ms: likewise.
    """

    at: float
    seconds: float
    state: RunState
    accounted: int
    leased: int
    pending: int
    done: int
    resent_at_most: int
    in_flight: float
    workers: int
    outcomes: list[int] = msgspec.field(default_factory=build_no_counts)
    bytes_received: int = 0
    lag_s: float = 0.0
    latency: HistogramSnapshot = HistogramSnapshot()
    p50_ms: float | None = None
    p90_ms: float | None = None
    p99_ms: float | None = None
    p99_9_ms: float | None = None
    max_ms: float | None = None

    @property
    def ended(self) -> int:
        """How many requests ended in it."""
        return sum(self.outcomes)

    @property
    def rate_rps(self) -> float:
        """How many requests ended in a second of it."""
        return self.ended / self.seconds


def choose_step_s(ends: Sequence[float], most: int) -> int:
    """Along which steps of time to merge moments that end then, so that at most half of `most` are left.

    The shortest power of two of a second from 2 on. What was merged along shorter ones fits.
    """
    step_s = 2
    while len({int(end // step_s) for end in ends}) > most // 2:
        step_s *= 2
    return step_s


def merge_steps(samples: Iterable[Sample], step_s: int) -> list[Sample]:
    """The same moments, in order of time, with those merged that end in the same step."""
    return [merge(list(group)) for _, group in groupby(samples, lambda sample: int(sample.at // step_s))]


def merge(samples: Sequence[Sample]) -> Sample:
    """Several moments, in order of time, as one; its quantiles are those of the merged latencies."""
    if len(samples) == 1:
        return samples[0]
    latency = histogram.merge(sample.latency for sample in samples)
    seconds = sum(sample.seconds for sample in samples)
    largest_ms = max((sample.max_ms for sample in samples if sample.max_ms is not None), default=None)
    return msgspec.structs.replace(
        samples[-1],
        seconds=seconds,
        in_flight=sum(sample.in_flight * sample.seconds for sample in samples) / seconds,
        outcomes=_sum_up(sample.outcomes for sample in samples),
        bytes_received=sum(sample.bytes_received for sample in samples),
        lag_s=max(sample.lag_s for sample in samples),
        latency=latency,
        **build_quantiles_ms(latency) | {"max_ms": largest_ms},
    )


def build_quantiles_ms(latency: HistogramSnapshot) -> dict[str, float | None]:
    """The quantiles of a moment by their names; all None when nothing was answered."""
    if not latency.buckets:
        return dict.fromkeys(QUANTILES)
    values = latency.quantiles_us(QUANTILES.values())
    return {name: value / 1000 for name, value in zip(QUANTILES, values, strict=True)}


def _sum_up(rows: Iterable[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*rows, strict=True)]
