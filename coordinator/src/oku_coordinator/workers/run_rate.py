"""How fast one worker gets through one run, from its heartbeats: pure state.

Answers may come in bursts, as when a hundred requests take thirty seconds each. So the rate is a mean over
the last ten seconds or over the time in which two windows are answered, whichever is longer; a run begins
with none.
"""

import math

_SPAN_S = 10.0
_SPAN_WINDOWS = 2.0
_SILENT_S = 3.0
"""A silence of this length bounds the rate."""


class RunRate:
    """The rate of one worker in one run.

    Args:
        run: the run.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self.taken = 0
        """How many indices the worker has taken of the run so far."""
        self._ended = 0.0
        self._seconds = 0.0
        self._in_flight_s = 0.0
        """The requests in flight, times the seconds of which that is known."""
        self._window = 1
        self._has_begun = False

    def record_taken(self, taken: int) -> None:
        """The worker says how many indices it has taken so far."""
        self.taken = max(self.taken, taken)

    def record_interval(self, ended: int, seconds: float, in_flight: int) -> None:
        """Take in a heartbeat interval in which the worker had leases of the run.

        The worker may have begun late in the first in which it sent anything, so that one does not count.

        Args:
            ended: the requests that ended in it.
            seconds: its length.
            in_flight: the requests in flight at its end.
        """
        if not ended and not in_flight:
            return  # it had nothing to do
        if not self._has_begun:
            self._has_begun = True
            return
        self._window = max(self._window, in_flight)
        rate_rps = self._ended / self._seconds if self._seconds else 0.0
        span_s = max(_SPAN_S, _SPAN_WINDOWS * self._window / rate_rps) if rate_rps else math.inf
        kept = math.exp(-seconds / span_s)
        self._ended = self._ended * kept + ended
        self._seconds = self._seconds * kept + seconds
        self._in_flight_s = self._in_flight_s * kept + in_flight * seconds

    @property
    def rate_rps(self) -> float | None:
        """Requests that end in a second; None until one has ended."""
        return self._ended / self._seconds if self._ended else None

    @property
    def mean_in_flight(self) -> float:
        """How many requests were in flight, in the mean over the same time."""
        return self._in_flight_s / self._seconds if self._seconds else 0.0

    def bound(self, window: int) -> float:
        """The most requests that can end in a second: while no answer has come, a window in that time."""
        if self._ended:
            return self._ended / self._seconds
        return window / self._seconds if self._seconds >= _SILENT_S else math.inf
