"""Pure builders of the lines for Loki on inner requests: those that user code makes within iterations.

The name of a run is a label; that of inner requests is the field `request`.
"""

from collections.abc import Iterable, Iterator

import msgspec

from oku_core.accounting.lease_state import LeaseSpan
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import build_outcome_counts
from oku_core.messaging.checkpoint import Part
from oku_core.results.lines import Fields, build_summary_quantiles
from oku_core.results.request_summary import InnerSummary
from oku_core.results.sample import build_latencies_ms


def build_inner_range_lines(lease: LeaseSpan, inner: Iterable[Part]) -> Iterator[Fields]:
    """A line for each phase and name of the inner requests of a closed lease."""
    for part in inner:
        yield {
            "lease": lease.id,
            "worker": lease.worker,
            "phase": part.phase or None,
            "request": part.name,
            "requests": sum(part.outcomes),
            **build_outcome_counts(part.outcomes),
            "bytes_received": part.bytes_received,
            **build_latencies_ms(part.times, [Time.LATENCY]),
        }


def build_inner_lines(inner: Iterable[InnerSummary]) -> Iterator[Fields]:
    """A line for each name of the inner requests of a run at rest."""
    for requests in inner:
        yield {
            "request": requests.name,
            "requests": requests.requests,
            "rate_rps": requests.rate_rps,
            **msgspec.to_builtins(requests.outcomes),
            "bytes_received": requests.bytes_received,
            **build_summary_quantiles(requests, [Time.LATENCY]),
        }
