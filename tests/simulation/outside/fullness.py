"""When the window of an engine was full."""

from collections import deque

_KEPT = 200
_ROUNDING_S = 0.002
"""What happens at one instant has an order that nobody outside can know."""


class Fullness:
    """Remembers when a window was full; times are in monotonic seconds."""

    def __init__(self) -> None:
        self._times: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        self._since: float | None = None

    def note(self, now: float, *, is_full: bool) -> None:
        """Take note of how it is now."""
        if is_full and self._since is None:
            self._since = now
            if self._times and self._times[-1][1] >= now:
                self._since = self._times.pop()[0]  # what has ended was followed by the next at once
        elif not is_full and self._since is not None:
            self._times.append((self._since, now))
            self._since = None

    def was_full_at(self, at: float) -> bool:
        """Whether it was full at a time, or just before or after it."""
        if self._since is not None and at >= self._since - _ROUNDING_S:
            return True
        return any(begin - _ROUNDING_S <= at <= end + _ROUNDING_S for begin, end in self._times)

    def has_been_full_since(self, at: float) -> bool:
        """Whether it was full from well before a time on until now."""
        return self._since is not None and self._since <= at - _ROUNDING_S
