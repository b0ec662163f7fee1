"""Caches the answer of `/metrics` for a second: callers need no token, and building it takes time."""

import asyncio
import time

from oku_coordinator.telemetry import protobuf_format
from oku_coordinator.telemetry.metrics import Metrics
from oku_core.process.clock import Clock

LIFETIME_S = 1.0
_SHARE = 0.1
"""Building each format takes at most this share of the time: a large answer is kept for longer."""


class MetricsCache:
    """Metrics that are at most a second old, unless building them takes long.

    Args:
        metrics: builds them.
        clock: monotonic seconds.
    """

    def __init__(self, metrics: Metrics, clock: Clock = time.monotonic) -> None:
        self._metrics = metrics
        self._clock = clock
        self._lock = asyncio.Lock()
        self._kept: dict[bool, tuple[float, tuple[bytes, str]]] = {}
        """By format: until when it is kept, and what `Metrics.expose` gave."""

    async def fetch(self, accept: str) -> tuple[bytes, str]:
        """The same as `expose`, built in a thread; callers that come meanwhile get the same answer."""
        until, kept = self._kept.get(protobuf_format.is_accepted(accept), (0.0, (b"", "")))
        if self._clock() < until:
            return kept
        async with self._lock:
            return await asyncio.to_thread(self.expose, accept)

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
