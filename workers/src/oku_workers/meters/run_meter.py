"""How fast a worker is with a run, and whether it keeps its window full.

The rate counts answers while the worker had something to do. A worker that waits for leases, or for its last
slow answers, is not slow: such time does not count.

The window is judged in whole seconds in which the target answered, or was asked nothing; only over all of
them does it show why a window is not full. A second without requests to take is judged when the worker gets
more of the same run: then other workers had some to take.
"""

from collections import deque
from typing import NamedTuple

_SAMPLE_S = 0.5
_SHORTEST_S = 5.0
_FULL_SHARE = 0.5
"""From this share of its window in flight on, a worker is at work although it has nothing to take."""
UNDERFILLED_SHARE = 0.97
"""A second with a smaller share of the window in flight, on average, is underfilled."""
_WHOLE_S = 1.0


class _Sample(NamedTuple):
    seconds: float
    ended: int


class RunMeter:
    """The work of this process on one run.

    The rate covers the last five seconds of work, or longer, until a whole window has been answered: answers
    of half a minute come in step.

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
        """Record the changes since the last sample.

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


class WindowMeter:
    """Finds the seconds in which the window was not full although there was something to send.

    Args:
        now: monotonic seconds.
        needs_answers: whether only answers show that a window could be filled.
    """

    def __init__(self, now: float, *, needs_answers: bool = True) -> None:
        self._needs_answers = needs_answers
        self._sampled_at = now
        self._window = self._filled = self._ended = 0
        self._seconds = self._room = self._flown = 0.0
        self._had_untaken = True
        self._is_stopped = False
        self._gap_watched_s = self._gap_underfilled_s = 0.0
        self._watched_s = self._underfilled_s = 0.0

    def sample(self, now: float, window: int, filled: int, ended: int, *, has_untaken: bool) -> None:
        """Record the changes since the last sample.

        Args:
            now: monotonic seconds.
            window: how many requests may be in flight now.
            filled: how many are in flight, or are missing although there is something to take.
            ended: how many have ended since the last sample.
            has_untaken: whether the worker has anything left to take, now or once a limit allows it.
        """
        passed_s = now - self._sampled_at
        self._sampled_at = now
        self._seconds += passed_s
        self._room += passed_s * self._window
        self._flown += passed_s * self._filled
        self._ended += ended
        self._window, self._filled = window, filled
        if has_untaken:
            self._close_gap()
        if has_untaken != self._had_untaken:
            self._begin()
            self._had_untaken = has_untaken
        elif self._seconds >= _WHOLE_S:
            self._judge(is_gap=not has_untaken)
            self._begin()

    def stop(self) -> None:
        """The run was stopped: that there is nothing to take is as it should be, until there is again."""
        self._is_stopped = True
        self._gap_watched_s = self._gap_underfilled_s = 0.0

    def drain(self) -> tuple[float, float]:
        """The seconds watched and, of those, the underfilled ones, since the last call of this."""
        found = self._watched_s, self._underfilled_s
        self._watched_s = self._underfilled_s = 0.0
        return found

    def _begin(self) -> None:
        self._seconds = self._room = self._flown = 0.0
        self._ended = 0

    def _judge(self, *, is_gap: bool) -> None:
        if self._needs_answers and self._flown and not self._ended:
            return  # a target that does not answer can keep no window full
        lacking_s = self._seconds if self._flown < UNDERFILLED_SHARE * self._room else 0.0
        if is_gap and not self._is_stopped:
            self._gap_watched_s += self._seconds
            self._gap_underfilled_s += lacking_s
        elif not is_gap:
            self._watched_s += self._seconds
            self._underfilled_s += lacking_s

    def _close_gap(self) -> None:
        self._watched_s += self._gap_watched_s
        self._underfilled_s += self._gap_underfilled_s
        self._gap_watched_s = self._gap_underfilled_s = 0.0
        self._is_stopped = False
