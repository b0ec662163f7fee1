"""How fast a worker is with a run: the rate of answers while it had something to do.

A worker that waits for leases, or for its last slow answers, is not slow: such time does not count.
"""

from collections import deque
from typing import NamedTuple

_SAMPLE_S = 0.5
_SHORTEST_S = 5.0
_FULL_SHARE = 0.5
"""From this share of its window in flight on, a worker is at work although it has nothing to take."""


class _Sample(NamedTuple):
    seconds: float
    ended: int


class RunMeter:
    """What this process has done of one run.

    The rate is that of the last five seconds of work, or longer, until a whole window has been answered:
    answers of half a minute come in step.

    Args:
        now: monotonic seconds.

    Attributes:
        taken: how many indices were taken.
    """

    def __init__(self, now: float) -> None:
        self.taken = 0
        self._window = 0
        self._sampled_at = now
        self._is_working = True
        self._seconds, self._ended = 0.0, 0
        self._samples: deque[_Sample] = deque()

    @property
    def rate_rps(self) -> float:
        """Requests that end in a second of work; 0 while it is unknown."""
        seconds = self._seconds + sum(sample.seconds for sample in self._samples)
        ended = self._ended + sum(sample.ended for sample in self._samples)
        return ended / seconds if seconds > 0 else 0.0

    def sample(
        self, now: float, window: int, taken: int, ended: int, in_flight: int, *, has_work: bool
    ) -> None:
        """Record what is new since the last sample.

        Args:
            now: monotonic seconds.
            window: how many requests may be in flight.
            taken: how many indices were taken since the last sample.
            ended: how many requests have ended since the last sample.
            in_flight: how many requests of the run are in flight.
            has_work: whether there is an index that may be taken.
        """
        self.taken += taken
        self._window = window
        if self._is_working or taken:
            self._seconds += now - self._sampled_at
            self._ended += ended
            if self._seconds >= _SAMPLE_S:
                self._keep_sample()
        self._sampled_at = now
        self._is_working = has_work or in_flight >= self._window * _FULL_SHARE

    def _keep_sample(self) -> None:
        samples = self._samples
        samples.append(_Sample(self._seconds, self._ended))
        self._seconds, self._ended = 0.0, 0
        seconds, ended = sum(each.seconds for each in samples), sum(each.ended for each in samples)
        while seconds - samples[0].seconds >= _SHORTEST_S and ended - samples[0].ended >= self._window:
            oldest = samples.popleft()
            seconds, ended = seconds - oldest.seconds, ended - oldest.ended
