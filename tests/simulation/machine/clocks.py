"""The clocks of one machine: the monotonic one drifts, and the wall clock can be set."""

from collections.abc import Callable

EPOCH = 1_800_000_000.0
"""The Unix time at which each simulation begins."""


class MachineClock:
    """The clocks of one machine.

    Args:
        true_now: gives the true time.
        rate: how many of its seconds pass in a true one.
        offset_s: how far its wall clock is ahead when the simulation begins.
        booted_s: what the monotonic clock shows then.
    """

    def __init__(
        self,
        true_now: Callable[[], float],
        rate: float = 1.0,
        offset_s: float = 0.0,
        booted_s: float = 1000.0,
    ) -> None:
        self._true_now = true_now
        self._rate = rate
        self._booted_s = booted_s
        self._wall_offset_s = EPOCH - booted_s + offset_s

    def monotonic(self) -> float:
        """Seconds that never jump."""
        return self._booted_s + self._rate * self._true_now()

    def wall(self) -> float:
        """Unix time, as somebody has set it."""
        return self.monotonic() + self._wall_offset_s

    def find_true(self, monotonic: float) -> float:
        """The true time at which the monotonic clock shows this."""
        return (monotonic - self._booted_s) / self._rate

    def set_forward(self, seconds: float) -> None:
        """Set the wall clock forward, or back if negative."""
        self._wall_offset_s += seconds
