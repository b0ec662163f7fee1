"""Judges thresholds over some seconds in a row, such as `rate >= 0.99 of plan over 10s`, second by second.

Only seconds in which the clock of the run goes on, and something is to be sent, are given to a stretch. It
begins anew behind all others.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from oku_core.accounting.counts import Counts
from oku_core.accounting.outcome import build_no_counts
from oku_core.spec.load import WARM_UP
from oku_core.spec.values.threshold import FigureKind, FigureUnit, Threshold
from oku_core.thresholds.counting import compare
from oku_core.thresholds.judging import judge
from oku_core.thresholds.measurement import Measurement

_LONGEST_GAP_S = 0.95
"""Seconds that are further apart than this are not in a row."""
_ROUNDED_S = 0.05
_DEVIATIONS = 4
"""Where the number due is an estimate, this many standard deviations are allowed."""
_LIVE_KINDS = frozenset({FigureKind.QUANTILE, FigureKind.MEAN})


@dataclass(frozen=True, kw_only=True)
class SeenSecond:
    """A second of a run.

    Attributes:
        at: the Unix time of its end.
        seconds: its length.
        clock_s: the time of the run's clock at its end.
        phases: the phases that it lies in, in their order.
        counts: of the requests that ended in it: their outcomes, and their times as far as they are known.
        sent: how many were sent in it.
        planned: how many were due in it; None without a rate.
        carried_in: how many requests sent in it count in the second before, for which they were only a little
            late.
        carried_out: how many requests sent in the next second count in this one.
        variance: the variances of the numbers due before its start and before its end, where these are
            estimates.
    """

    at: float
    seconds: float
    clock_s: float = 0.0
    phases: Sequence[str] = ("",)
    counts: Counts = field(default_factory=Counts)
    sent: int = 0
    planned: float | None = None
    carried_in: int = 0
    carried_out: int = 0
    variance: tuple[float, float] = (0.0, 0.0)


class StretchValue(NamedTuple):
    """The figure of some seconds in a row.

    Attributes:
        value: in the unit of the threshold; infinite for the time of a request without an answer.
        holds: whether it satisfies the limit.
        phase: that the last of them lies in.
        clock_s: the time of the run's clock at their end.
    """

    value: float
    holds: bool
    phase: str = ""
    clock_s: float = 0.0


@dataclass
class Stretch:
    """The last seconds of a run that a threshold looks at.

    Args:
        threshold: one with `over`.

    Attributes:
        longest_s: for how long the longest row of seconds was that it could look at.
    """

    threshold: Threshold
    longest_s: float = field(default=0.0, init=False)
    _seconds: deque[SeenSecond] = field(default_factory=deque, init=False)
    _row_s: float = field(default=0.0, init=False)
    _totals: "_Totals" = field(init=False)

    def __post_init__(self) -> None:
        """Begin with no second."""
        self._begin_anew()

    def add(self, second: SeenSecond) -> StretchValue | None:
        """Take in the next second of the run; give what the stretch that ends with it came to.

        Returns:
            None if there is nothing to judge: the stretch is not full, or nothing ended in it.
        """
        last = self._seconds[-1] if self._seconds else None
        is_meant = self._is_meant(second)
        if not is_meant or (last is not None and second.at - second.seconds - last.at > _LONGEST_GAP_S):
            self._begin_anew()
        if not is_meant:
            return None
        self._seconds.append(second)
        self._totals.add(second, 1)
        self._row_s += second.seconds
        self.longest_s = max(self.longest_s, self._row_s)
        wanted_s = float(self.threshold.over_s or 0) - _ROUNDED_S
        while self._totals.seconds - self._seconds[0].seconds >= wanted_s:
            self._totals.add(self._seconds.popleft(), -1)
        if self._totals.seconds < wanted_s:
            return None
        value = self._measure_rate() if self.threshold.kind is FigureKind.RATE else self._measure_ended()
        return value and value._replace(phase=second.phases[-1], clock_s=second.clock_s)

    def is_worse(self, value: float, other: float) -> bool:
        """Whether a value is worse than another one."""
        return value > other if self.threshold.comparison.is_upper else value < other

    def _is_meant(self, second: SeenSecond) -> bool:
        """Without a phase, a threshold covers all but the warm-up, which is not measured."""
        if self.threshold.phase is None:
            return WARM_UP not in second.phases
        return all(phase == self.threshold.phase for phase in second.phases)

    def _begin_anew(self) -> None:
        self._seconds.clear()
        self._row_s = 0.0
        self._totals = _Totals()

    def _measure_ended(self) -> StretchValue | None:
        """Measure the value by the requests that ended."""
        is_live = looks_live(self.threshold)
        parts = [second.counts for second in self._seconds] if is_live else [self._totals.build_counts()]
        summary = judge(self.threshold, Measurement(parts=parts, is_over=True))
        if summary.holds is None:
            return None
        return StretchValue(math.inf if summary.value is None else summary.value, summary.holds)

    def _measure_rate(self) -> StretchValue | None:
        totals = self._totals
        sent = totals.sent if totals.planned is None else self._excuse(totals.sent, totals.planned)
        base = totals.planned if self.threshold.unit is FigureUnit.OF_PLAN else totals.seconds
        if not base:
            return None
        value = Fraction(sent) / Fraction(base)
        return StretchValue(float(value), compare(value, self.threshold.comparison, self.threshold.limit))

    def _excuse(self, sent: int, planned: float) -> float:
        """How many were sent in time or a little late, and as many as an estimate may be wrong by."""
        first, last = self._seconds[0], self._seconds[-1]
        in_time = sent - first.carried_in + last.carried_out
        allowed = _DEVIATIONS * math.sqrt(first.variance[0] + last.variance[1])
        return min(planned, in_time + allowed) if in_time < planned else max(planned, in_time - allowed)


class _Totals:
    """What some seconds sum to; `planned` is None without a rate."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.outcomes = build_no_counts()
        self.sent = 0
        self.planned: float | None = None

    def add(self, second: SeenSecond, sign: int) -> None:
        """Add a second, or with a sign of -1 take it away."""
        self.seconds += sign * second.seconds
        self.sent += sign * second.sent
        for place, count in enumerate(second.counts.outcomes):
            self.outcomes[place] += sign * count
        if second.planned is not None:
            # Sums of estimates are rounded, so that adding and subtracting the same leaves zero.
            self.planned = round((self.planned or 0.0) + sign * second.planned, 6)

    def build_counts(self) -> Counts:
        """Their outcomes; times are not summed up."""
        return Counts(outcomes=list(self.outcomes))


def looks_live(threshold: Threshold) -> bool:
    """Whether a threshold over some seconds is judged by live samples: nothing else has their times."""
    return threshold.kind in _LIVE_KINDS
