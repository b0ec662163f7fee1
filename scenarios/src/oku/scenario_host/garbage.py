"""Collects garbage of user code where little of it holds much.

The collector of Python counts objects, not bytes: an exception that is kept in a variable of its own function
holds an answer of megabytes with a few dozen objects, and each iteration may leave one.
"""

import gc

from oku_core.process.resources import measure_rss_mb

_GROWTH, _GROWTH_MB = 1.25, 64.0
"""Garbage is collected when memory has grown by this factor and this many MB more, so that it seldom is."""


class ProcessMemory:
    """The memory of this process."""

    def measure_mb(self) -> float:
        """Measure the resident memory."""
        return measure_rss_mb()

    def collect(self) -> None:
        """Collect garbage."""
        gc.collect()


class GarbageWatch:
    """Collects garbage when memory has grown.

    Args:
        memory: of this process.
    """

    def __init__(self, memory: ProcessMemory) -> None:
        self._memory = memory
        self._lowest_mb = memory.measure_mb()

    def poll(self) -> None:
        """Collect garbage if memory has grown since the last time."""
        now_mb = self._memory.measure_mb()
        if now_mb > self._lowest_mb * _GROWTH + _GROWTH_MB:
            self._memory.collect()
            now_mb = self._lowest_mb = self._memory.measure_mb()
        self._lowest_mb = min(self._lowest_mb, now_mb)
