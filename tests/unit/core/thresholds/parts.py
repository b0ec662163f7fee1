"""Builds what thresholds are judged by, from a few numbers."""

from collections.abc import Iterable

from oku_core.accounting.account import Account
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import OUTCOMES, Outcome


def build_requests(latencies_ms: Iterable[float] = (), **outcomes: int) -> Account:
    """Requests that were ok with these latencies, and others by outcome."""
    latency = Histogram()
    for latency_ms in latencies_ms:
        latency.record(round(1000 * latency_ms))
    requests = Account(outcomes=[outcomes.get(outcome, 0) for outcome in OUTCOMES])
    requests.outcomes[OUTCOMES.index(Outcome.OK)] += latency.total
    if latency.total:
        requests.times[Time.LATENCY] = latency
    return requests
