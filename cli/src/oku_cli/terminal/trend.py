"""Computes the rate of a run and an estimate of the time left from its ticks, one a second."""

from collections import deque
from dataclasses import dataclass

from oku_core.accounting.histogram import HistogramSnapshot, merge
from oku_core.accounting.run_state import RunState
from oku_core.results.sample import build_latencies_ms
from oku_core.results.tick import Tick

SHOWN_TICKS = 60
"""How many rates are kept for the sparkline: a minute, as ticks come once a second."""
RECENT_TICKS = 10
"""The rate is smoothed over this many ticks: an estimate must neither jump nor stay wrong for long."""
LATENCY_TICKS = 5
"""Quantiles are smoothed over this many ticks: those of one second jump."""
FEWEST_TICKS = 3
"""Fewer ticks give no estimate: a run starts slowly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Describes how fast a run proceeds.

    Attributes:
        rates_rps: the rate in each second of the last minute, newest last; None for a second without a tick.
        recent_rps: the mean rate of the last ten ticks.
        average_rps: the mean rate over the time that the run has been active.
        p50_5s_ms: the median latency of the last five ticks; None if nothing was answered.
        p99_5s_ms: the 99th percentile of the same latencies.
        left_s: an estimate of the time left; None if nothing moves or too little is known.
    """

    rates_rps: tuple[float | None, ...]
    recent_rps: float
    average_rps: float
    p50_5s_ms: float | None
    p99_5s_ms: float | None
    left_s: float | None


class TrendTracker:
    """Computes the trend at each tick, and remembers no more rates than are shown."""

    def __init__(self) -> None:
        self._shown: deque[float | None] = deque(maxlen=SHOWN_TICKS)
        self._recent: deque[float] = deque(maxlen=RECENT_TICKS)
        self._latencies: deque[HistogramSnapshot] = deque(maxlen=LATENCY_TICKS)
        self._state: RunState | None = None
        self._at: float | None = None

    def add(self, tick: Tick) -> Trend:
        """Take in the newest tick and return the trend."""
        sample = tick.sample
        covered = max(1, int(sample.seconds))
        missed = 0 if self._at is None else int(sample.at - self._at) - covered
        self._shown.extend([None] * min(missed, SHOWN_TICKS))
        self._shown.extend([sample.rate_rps] * min(covered, SHOWN_TICKS))
        self._at = sample.at
        if tick.state != self._state:
            self._recent.clear()  # a pause must not lower the rate after it
        self._state = tick.state
        self._recent.append(sample.rate_rps)
        self._latencies.append(sample.latency)
        recent_rps = sum(self._recent) / len(self._recent)
        quantiles = build_latencies_ms(merge(self._latencies))
        return Trend(
            rates_rps=tuple(self._shown),
            recent_rps=recent_rps,
            average_rps=sample.done / sample.active_s if sample.active_s > 0 else 0.0,
            p50_5s_ms=quantiles["p50_ms"],
            p99_5s_ms=quantiles["p99_ms"],
            left_s=self._estimate_left_s(tick, recent_rps),
        )

    def _estimate_left_s(self, tick: Tick, rate_rps: float) -> float | None:
        if tick.state != RunState.RUNNING or len(self._recent) < FEWEST_TICKS or rate_rps <= 0:
            return None
        return max(0, tick.sample.requests_total - tick.sample.done) / rate_rps
