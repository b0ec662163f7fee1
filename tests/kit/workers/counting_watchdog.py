"""A watchdog that counts what it learns, and ends nothing."""

from oku_workers.health.watchdogs import IdleWatchdog


class CountingWatchdog(IdleWatchdog):
    """Counts messages."""

    def __init__(self) -> None:
        super().__init__(float("inf"))
        self.messages = 0

    def record_message(self) -> None:
        """Count one."""
        self.messages += 1
