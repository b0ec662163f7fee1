"""Ticks go in, one a second; out comes how fast the run goes and how long it will still take."""

from collections import deque
from dataclasses import dataclass

from oku_core.accounting.run_state import RunState
from oku_core.messaging.progress import Tick

SHOWN_TICKS = 60
"""How many rates are kept to be drawn: a minute, for ticks come once a second."""
RECENT_TICKS = 10
"""Over how many ticks the rate is smoothed; an estimate must neither jump nor lie for long."""
FEWEST_TICKS = 3
"""With fewer there is no estimate: a run begins slowly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """How fast a run goes.

    Attributes:
        rates_rps: of the last minute, a second each, the newest last; None for a second without a tick.
        recent_rps: mean of the last ten ticks.
        average_rps: mean of all the time that the run has been active.
        left_s: estimate of the time left; None when nothing moves or too little is known.
    """

    rates_rps: tuple[float | None, ...]
    recent_rps: float
    average_rps: float
    left_s: float | None


class TrendTracker:
    """Makes a trend of each tick; remembers no more rates than are shown."""

    def __init__(self) -> None:
        self._shown: deque[float | None] = deque(maxlen=SHOWN_TICKS)
        self._recent: deque[float] = deque(maxlen=RECENT_TICKS)
        self._state: RunState | None = None
        self._at: float | None = None

    def add(self, tick: Tick) -> Trend:
        """Take in the newest tick."""
        covered = max(1, int(tick.seconds))
        missed = 0 if self._at is None else int(tick.at - self._at) - covered
        self._shown.extend([None] * min(missed, SHOWN_TICKS))
        self._shown.extend([tick.rate_rps] * min(covered, SHOWN_TICKS))
        self._at = tick.at
        if tick.state != self._state:
            self._recent.clear()  # what comes after a pause is not slower for it
        self._state = tick.state
        self._recent.append(tick.rate_rps)
        recent_rps = sum(self._recent) / len(self._recent)
        done = tick.accounted + tick.ended
        return Trend(
            rates_rps=tuple(self._shown),
            recent_rps=recent_rps,
            average_rps=done / tick.active_s if tick.active_s > 0 else 0.0,
            left_s=self._estimate_left_s(tick, recent_rps),
        )

    def _estimate_left_s(self, tick: Tick, rate_rps: float) -> float | None:
        if tick.state != RunState.RUNNING or len(self._recent) < FEWEST_TICKS or rate_rps <= 0:
            return None
        return max(0, tick.requests - tick.accounted - tick.ended) / rate_rps
