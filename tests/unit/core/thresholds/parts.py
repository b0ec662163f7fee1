"""Builds what thresholds are judged by, from a few numbers."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from oku_core.accounting.histogram import Histogram
from oku_core.accounting.outcome import OUTCOMES, Outcome


@dataclass
class Requests:
    """What some requests sum to.

    Attributes:
        outcomes: in the order of `OUTCOMES`.
        latency: of those that were answered.
        response_time: of the same.
        lateness: of those that were sent.
    """

    outcomes: list[int]
    latency: Histogram = field(default_factory=Histogram)
    response_time: Histogram = field(default_factory=Histogram)
    lateness: Histogram = field(default_factory=Histogram)


def build_requests(latencies_ms: Iterable[float] = (), **outcomes: int) -> Requests:
    """Requests that were ok with these latencies, and others by outcome."""
    requests = Requests([outcomes.get(outcome, 0) for outcome in OUTCOMES])
    for latency_ms in latencies_ms:
        requests.outcomes[OUTCOMES.index(Outcome.OK)] += 1
        requests.latency.record(round(1000 * latency_ms))
    return requests
