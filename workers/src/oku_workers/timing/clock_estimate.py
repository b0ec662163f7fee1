"""How far the monotonic clock of another machine is ahead of ours: pure rules, in nanoseconds.

Whoever asks another for its clock knows that it was read between the question and the answer, so that half of
the round trip bounds the error (F. Cristian, "Probabilistic clock synchronization", 1989, section 3). From
then on the two clocks drift apart.
"""

from collections import deque
from typing import NamedTuple

DRIFT_PPM = 200
"""How fast two clocks may drift apart, in parts per million: the rate that Spanner assumes of its machines
(J. Corbett et al., "Spanner: Google's globally-distributed database", 2012, section 3)."""
SLEW_PPM = 500
"""How fast an offset in use may change: as fast as the kernel's clock is corrected (D. Mills, RFC 5905,
appendix A.5.6; adjtime(3)), and faster than clocks drift."""
SAMPLES_LAST_NS = 60_000_000_000
"""How long a sample counts, as long as there is a newer one."""
LARGEST_SLEW_NS = 100_000_000
"""By more than this an offset is changed at once: it was wrong, and to mend it slowly would take minutes."""

_PPM = 1_000_000


class ClockSample(NamedTuple):
    """One question that was answered.

    Args:
        asked_ns: when we asked, by our clock.
        shown_ns: what the other clock showed when it was read.
        answered_ns: when we had the answer, by our clock.
    """

    asked_ns: int
    shown_ns: int
    answered_ns: int

    def estimate(self, now_ns: int) -> "ClockEstimate":
        """What it says at a later time."""
        middle_ns = (self.asked_ns + self.answered_ns) // 2
        drift_ns = (now_ns - self.asked_ns) * DRIFT_PPM // _PPM + 1
        half_trip_ns = (self.answered_ns - self.asked_ns) // 2 + 1
        return ClockEstimate(self.shown_ns - middle_ns, half_trip_ns + drift_ns)


class ClockEstimate(NamedTuple):
    """How far the other clock is ahead, and by how much that may be wrong at most."""

    offset_ns: int
    bound_ns: int


class ClockSamples:
    """The samples of the last minute, of which the best at each time counts."""

    def __init__(self) -> None:
        self._samples: deque[ClockSample] = deque()

    def add(self, sample: ClockSample) -> None:
        """Take in the newest; those that contradict it are forgotten: a clock stood still, as in a sleep."""
        now_ns = sample.answered_ns
        while self._samples and self._samples[0].asked_ns < now_ns - SAMPLES_LAST_NS:
            self._samples.popleft()
        newest = sample.estimate(now_ns)
        if (before := self.estimate(now_ns)) is not None and (
            abs(newest.offset_ns - before.offset_ns) > newest.bound_ns + before.bound_ns
        ):
            self._samples.clear()
        self._samples.append(sample)

    def estimate(self, now_ns: int) -> ClockEstimate | None:
        """What the sample with the smallest bound says; None if there is no sample."""
        estimates = (sample.estimate(now_ns) for sample in self._samples)
        return min(estimates, key=lambda estimate: estimate.bound_ns, default=None)


class SlewedOffset:
    """An offset that follows better ones without a jump: no due time is passed over or comes twice."""

    def __init__(self, offset_ns: int, now_ns: int) -> None:
        self._offset_ns = self._target_ns = offset_ns
        self._at_ns = now_ns

    def follow(self, target_ns: int, now_ns: int) -> None:
        """Approach another offset from now on; take it at once if it is far away."""
        self._offset_ns, self._at_ns = self.find(now_ns), now_ns
        self._target_ns = target_ns
        if abs(target_ns - self._offset_ns) > LARGEST_SLEW_NS:
            self._offset_ns = target_ns

    def find(self, now_ns: int) -> int:
        """The offset now."""
        reach_ns = (now_ns - self._at_ns) * SLEW_PPM // _PPM
        return self._offset_ns + max(-reach_ns, min(reach_ns, self._target_ns - self._offset_ns))
