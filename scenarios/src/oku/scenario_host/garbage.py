"""Collects garbage of user code where little of it holds much.

The collector of Python counts objects, not bytes: an exception that is kept in a variable of its own function
holds an answer of megabytes with a few dozen objects, and each iteration may leave one.
"""

import gc
from collections.abc import Callable

from oku_core.process.resources import measure_rss_mb

_GROWTH, _GROWTH_MB = 1.25, 64.0
"""Garbage is collected when memory has grown by this factor and so much more, so that it seldom is."""


class GarbageWatch:
    """Looks at the memory of this process now and then.

    Args:
        measure_mb: gives the memory of this process.
        collect: collects garbage.
    """

    def __init__(
        self, measure_mb: Callable[[], float] = measure_rss_mb, collect: Callable[[], object] = gc.collect
    ) -> None:
        self._measure_mb = measure_mb
        self._collect = collect
        self._lowest_mb = measure_mb()

    def look(self) -> None:
        """Collect garbage if memory has grown since the last time."""
        now_mb = self._measure_mb()
        if now_mb > self._lowest_mb * _GROWTH + _GROWTH_MB:
            self._collect()
            now_mb = self._lowest_mb = self._measure_mb()
        self._lowest_mb = min(self._lowest_mb, now_mb)
