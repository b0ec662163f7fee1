"""Judges thresholds over some seconds in a row, such as `rate >= 0.99 of plan over 10s`, second by second.

What is judged is what was seen live. Seconds that nobody saw, because the coordinator was away, are not
judged; so these verdicts are neither certain before the end nor exact over a crash.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.spec.load import WARM_UP
from oku_core.spec.values.threshold import FigureKind, Threshold, Unit
from oku_core.thresholds.counting import compare
from oku_core.thresholds.judging import judge
from oku_core.thresholds.measurement import Measurement

_GAP_S = 1.0
"""Seconds that are further apart than this are not in a row."""
_NONE = HistogramSnapshot()
_ROUNDED_S = 0.05
_SETTLING = 2
"""So many seconds after a start are left out: workers tell of a second in the next one. What was sent is also
compared with what was planned up to so many seconds earlier, for the same reason."""


@dataclass(frozen=True, kw_only=True)
class SeenSecond:
    """A second of a run as it was seen live.

    Attributes:
        at: the Unix time of its end.
        seconds: its length.
        phase: the phase in which it begins.
        outcomes: of the requests that ended in it, in the order of `OUTCOMES`.
        sent: how many were sent in it.
        planned: how many were planned; None without a rate.
        latency: of the requests that were answered in it.
        response_time: of the same ones.
        lateness: of those that were sent and ended in it.
        is_busy: whether requests were left to be sent at its end; the end of a run is not judged.
    """

    at: float
    seconds: float
    phase: str
    outcomes: Sequence[int]
    sent: int
    planned: int | None
    latency: HistogramSnapshot = _NONE
    response_time: HistogramSnapshot = _NONE
    lateness: HistogramSnapshot = _NONE
    is_busy: bool = True


class StretchValue(NamedTuple):
    """What some seconds in a row came to.

    Attributes:
        value: in the unit of the threshold; infinite for the time of a request without an answer.
        holds: whether it is as it must be.
    """

    value: float
    holds: bool


@dataclass
class Stretch:
    """The last seconds of a run that a threshold looks at.

    Args:
        threshold: one with `over`.
    """

    threshold: Threshold
    _seconds: deque[SeenSecond] = field(default_factory=deque, init=False)
    _left_out: int = field(default=0, init=False)

    def add(self, second: SeenSecond) -> StretchValue | None:
        """Take in the next second of the run; give what the stretch that ends with it came to.

        Returns:
            None if there is nothing to judge: the stretch is not full, or nothing ended in it.
        """
        wanted, phase = self.threshold.phase, second.phase
        is_meant = second.is_busy and (phase == wanted if wanted is not None else phase != WARM_UP)
        is_gap = self._seconds and second.at - second.seconds - self._seconds[-1].at > _GAP_S
        if is_gap or not is_meant:
            self._seconds.clear()
            self._left_out = 0
        if not is_meant:
            return None
        if self._left_out < _SETTLING:
            self._left_out += 1
            return None
        self._seconds.append(second)
        recent = self._cut()
        return None if recent is None else self._measure(recent)

    def is_worse(self, value: float, other: float) -> bool:
        """Whether a value is further from what is wanted than another one."""
        return value > other if self.threshold.comparison.is_upper else value < other

    def _cut(self) -> list[SeenSecond] | None:
        """The stretch that ends with the last second; older seconds are forgotten. None if it is not full."""
        length_s, recent = 0.0, 0
        for second in reversed(self._seconds):
            if length_s >= float(self.threshold.over_s or 0) - _ROUNDED_S:
                break
            length_s += second.seconds
            recent += 1
        if length_s < float(self.threshold.over_s or 0) - _ROUNDED_S:
            return None
        while len(self._seconds) > recent + _SETTLING:
            self._seconds.popleft()
        return list(self._seconds)[-recent:]

    def _measure(self, recent: Sequence[SeenSecond]) -> StretchValue | None:
        if self.threshold.kind is FigureKind.RATE:
            return self._measure_rate(recent)
        summary = judge(self.threshold, Measurement(parts=recent, is_over=True))
        if summary.holds is None:
            return None
        return StretchValue(math.inf if summary.value is None else summary.value, summary.holds)

    def _measure_rate(self, recent: Sequence[SeenSecond]) -> StretchValue | None:
        sent = sum(second.sent for second in recent)
        if self.threshold.unit is Unit.OF_PLAN:
            planned = self._find_planned(len(recent), sent)
            value = Fraction(sent, planned) if planned else None
        else:
            value = Fraction(sent) / Fraction(sum(second.seconds for second in recent))
        if value is None:
            return None
        return StretchValue(float(value), compare(value, self.threshold.comparison, self.threshold.limit))

    def _find_planned(self, recent: int, sent: int) -> int:
        """What was planned for the stretch, or for one up to some seconds earlier, whichever fits best."""
        planned = [second.planned or 0 for second in self._seconds]
        last = len(planned) - recent
        sums = (sum(planned[begin : begin + recent]) for begin in range(last + 1))
        return min(sums, key=lambda total: abs(total - sent))
