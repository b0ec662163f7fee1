"""Signals of a main loop that count how often it was woken."""

from oku_coordinator.event_loop import LoopSignals


class CountingSignals(LoopSignals):
    """Nobody waits for them."""

    def __init__(self) -> None:
        super().__init__()
        self.wakes = 0

    def wake(self) -> None:
        """Count it."""
        super().wake()
        self.wakes += 1
