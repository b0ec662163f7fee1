"""What came of requests of open and closed runs, as workers say it, for tests that fold accounts."""

from collections.abc import Sequence

import msgspec
from tests.kit.histograms import make_latency
from tests.kit.outcomes import make_counts, make_reasons

from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.measured_time import Time
from oku_core.messaging.checkpoint import Part


def build_histogram(values_us: Sequence[int]) -> HistogramSnapshot:
    """The distribution of these values."""
    return make_latency(values_us)


def build_times(**values_us: Sequence[int]) -> dict[Time, HistogramSnapshot]:
    """The distributions of times by their names, those without values left out."""
    return {Time(name): build_histogram(values) for name, values in values_us.items() if values}


def build_closed_part(latencies_us: Sequence[int], unanswered: int = 0) -> Part:
    """A part whose even latencies were ok and whose odd ones had another status, and came in two pieces.

    Each request that was not answered had a connection of its own.
    """
    odd = sum(latency_us % 2 for latency_us in latencies_us)
    even = len(latencies_us) - odd
    statuses = {status: count for status, count in [("200", even), ("404", odd)] if count}
    outcomes = make_counts(even, unexpected_status=odd, timeout=unanswered)
    return Part(
        outcomes=outcomes,
        reasons=make_reasons(outcomes),
        statuses=statuses,
        bytes_received=even,
        times=build_times(
            latency=latencies_us,
            connect=[200] * unanswered,
            split_latency=(split := [latency_us for latency_us in latencies_us if latency_us % 2]),
            split_first_byte=[latency_us // 3 for latency_us in split],
            transfer=[latency_us - latency_us // 3 for latency_us in split],
        ),
    )


def build_open_part(
    latencies_us: Sequence[int], unanswered: int = 0, not_sent: Sequence[int] = (0, 0, 0)
) -> Part:
    """The same with due times: each request was sent 10 ms late; of those that were not, the causes."""
    part = build_closed_part(latencies_us, unanswered)
    outcomes = [a + b for a, b in zip(part.outcomes, make_counts(not_sent=sum(not_sent)), strict=True)]
    return msgspec.structs.replace(
        part,
        outcomes=outcomes,
        reasons=make_reasons(outcomes),
        not_sent=list(not_sent),
        times=part.times
        | build_times(
            response_time=[latency_us + 10_000 for latency_us in latencies_us],
            lateness=[10_000] * (len(latencies_us) + unanswered),
        ),
    )
