"""Keeps what `/metrics` answers for a second: whoever asks needs no token, and making it takes time.

It is made in the event loop, so callers that come meanwhile wait and share it.
"""

import time
from collections.abc import Callable

from oku_coordinator.telemetry import protobuf_format
from oku_coordinator.telemetry.metrics import Metrics

LIFETIME_S = 1.0
_SHARE = 0.1
"""Making it takes at most this share of the time for each format: a large one is kept for longer."""


class MetricsCache:
    """Metrics as they were a second ago at most, where making them does not take long.

    Args:
        metrics: makes them.
        clock: monotonic seconds.
    """

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._metrics = metrics
        self._clock = clock
        self._kept: dict[bool, tuple[float, tuple[bytes, str]]] = {}
        """By format: until when it is kept, and what `Metrics.expose` gave."""

    def expose(self, accept: str) -> tuple[bytes, str]:
        """All metrics and their content type, as `Metrics.expose` gives them."""
        began = self._clock()
        key = protobuf_format.is_accepted(accept)
        until, kept = self._kept.get(key, (0.0, (b"", "")))
        if began < until:
            return kept
        kept = self._metrics.expose(accept)
        ended = self._clock()
        self._kept[key] = (ended + max(LIFETIME_S, (ended - began) / _SHARE), kept)
        return kept
