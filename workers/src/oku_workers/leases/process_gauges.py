"""What a worker reads of its own process: clocks, processor time, memory."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from oku_core.process.memory import measure_peak_rss_mb, measure_rss_mb


@dataclass(frozen=True, kw_only=True)
class ProcessGauges:
    """The gauges of this process; a simulation has its own.

    Args:
        monotonic: seconds that never jump.
        cpu_s: processor time so far.
        rss_mb: resident memory now.
        peak_rss_mb: the most resident memory so far.
    """

    monotonic: Callable[[], float] = time.monotonic
    cpu_s: Callable[[], float] = time.process_time
    rss_mb: Callable[[], float] = measure_rss_mb
    peak_rss_mb: Callable[[], float] = measure_peak_rss_mb
