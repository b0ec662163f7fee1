"""Computes from the ticks of a run how far it is, how fast it proceeds and how much time is left."""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from oku_core.accounting.histogram import merge
from oku_core.accounting.measured_time import LIVE_TIMES, Time
from oku_core.accounting.run_state import RunState
from oku_core.results.sample import Sample, build_quantiles_ms
from oku_core.spec.spec import OPEN_END
from oku_core.summary.request_summary import measure_rate
from oku_core.summary.tick import Tick

SHOWN_TICKS = 60
"""How many rates are kept for the sparkline: a minute, as ticks come once a second."""
RECENT_TICKS = 10
"""The rate is smoothed over this many ticks: an estimate must neither jump nor stay wrong for long."""
LATENCY_TICKS = 5
"""Quantiles are smoothed over this many ticks: single seconds jump."""
FEWEST_TICKS = 3
"""Fewer ticks give no estimate: a run starts slowly."""
_EARLY_S = 0.05


class Quantiles(NamedTuple):
    """The median and the 99th percentile of a distribution; None if it is empty."""

    p50_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Describes how fast a run proceeds.

    Attributes:
        rates_rps: the rate in each second of the last minute, newest last; None for a second without a tick.
        recent_rps: the mean rate of the last ten ticks.
        average_rps: the mean rate over the time that the run has been active.
        times: the quantiles of each of `LIVE_TIMES` in the last five ticks; in a run without a rate, those
            that count from when requests were due are empty.
        left_s: an estimate of the time left; None if nothing moves or too little is known.
    """

    rates_rps: tuple[float | None, ...]
    recent_rps: float
    average_rps: float
    times: Mapping[Time, Quantiles]
    left_s: float | None


class TrendTracker:
    """Computes the trend at each tick, and remembers no more rates than are shown."""

    def __init__(self) -> None:
        self._shown: deque[float | None] = deque(maxlen=SHOWN_TICKS)
        self._recent: deque[float] = deque(maxlen=RECENT_TICKS)
        self._distributions: deque[Sample] = deque(maxlen=LATENCY_TICKS)
        self._state: RunState | None = None
        self._at: float | None = None

    def add(self, tick: Tick) -> Trend:
        """Take in the newest tick and return the trend."""
        sample = tick.sample
        covered = max(1, round(sample.seconds))
        missed = 0 if self._at is None else _find_second(sample.at) - _find_second(self._at) - covered
        self._shown.extend([None] * min(missed, SHOWN_TICKS))
        self._shown.extend([sample.rate_rps] * min(covered, SHOWN_TICKS))
        self._at = sample.at
        if tick.state != self._state:
            self._recent.clear()  # a pause must not lower the rate after it
        self._state = tick.state
        self._recent.append(sample.rate_rps)
        self._distributions.append(sample)
        recent_rps = sum(self._recent) / len(self._recent)
        return Trend(
            rates_rps=tuple(self._shown),
            recent_rps=recent_rps,
            average_rps=measure_rate(sample.done, sample.active_s),
            times={time: self._measure(time) for time in LIVE_TIMES},
            left_s=self._estimate_left_s(tick, recent_rps),
        )

    def _measure(self, time: Time) -> Quantiles:
        quantiles = build_quantiles_ms(
            merge(sample.times[time] for sample in self._distributions if time in sample.times)
        )
        return Quantiles(quantiles["p50_ms"], quantiles["p99_ms"])

    def _estimate_left_s(self, tick: Tick, rate_rps: float) -> float | None:
        if tick.state != RunState.RUNNING:
            return None
        time_left_s = None
        if tick.clock_s is not None and tick.length_s is not None:
            time_left_s = tick.length_s - tick.clock_s
            if has_open_end(tick) or (time_left_s > 0 and not may_end_early(tick)):
                return time_left_s
        if len(self._recent) < FEWEST_TICKS or rate_rps <= 0:
            return time_left_s
        left_s = max(0, tick.sample.requests_total - tick.sample.done) / rate_rps
        return min(left_s, time_left_s) if time_left_s is not None and may_end_early(tick) else left_s


def _find_second(at: float) -> int:
    """The whole second at which a tick was due; it may be a little late, and a timer a little early."""
    return math.floor(at + _EARLY_S)


def has_open_end(tick: Tick) -> bool:
    """Whether only a time ends the run, so that it is not known how many requests it will have."""
    return tick.sample.requests_total >= OPEN_END


def has_rate(tick: Tick) -> bool:
    """Whether the run has a rate, and so a plan, due times and three distributions."""
    return tick.sample.requests_planned is not None


def may_end_early(tick: Tick) -> bool:
    """Whether a time ends the run as well as a number of requests, whichever comes first."""
    return tick.length_s is not None and not has_rate(tick) and not has_open_end(tick)


def measure_progress(tick: Tick) -> tuple[int, int, int]:
    """How much of a run is accounted, has ended, and is all of it: in requests, or in milliseconds.

    In milliseconds where only a time ends the run, or it is nearer than the last request.
    """
    sample = tick.sample
    if tick.clock_s is not None and tick.length_s is not None:
        passed_ms, length_ms = round(tick.clock_s * 1000), round(tick.length_s * 1000)
        is_nearer = passed_ms * sample.requests_total > sample.done * length_ms
        if has_open_end(tick) or (may_end_early(tick) and is_nearer):
            return passed_ms, passed_ms, length_ms
    return sample.accounted, sample.done, sample.requests_total
