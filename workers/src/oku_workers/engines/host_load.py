"""How busy the process is that an engine has beside its worker, and how many of its users have no work."""

from dataclasses import dataclass


@dataclass
class HostLoad:
    """What such a process has said of itself.

    Attributes:
        cpu_s: its processor time so far.
        busy_s: the same, and how long it waited for a processor.
        late_s: how late its event loop was at the worst since `take_late_s` was called.
        idle_users: how many of its users wait for an iteration that it has asked for and not got.
    """

    cpu_s: float = 0.0
    busy_s: float = 0.0
    late_s: float = 0.0
    idle_users: int = 0

    def take_late_s(self) -> float:
        """How late its event loop was at the worst since the last call of this."""
        late_s, self.late_s = self.late_s, 0.0
        return late_s
