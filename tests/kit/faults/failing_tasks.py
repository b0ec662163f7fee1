"""Faults in supervised tasks: each fails once, in one of its rounds, and is to go on."""

from typing import Any

from oku_core.process.supervision import Health, Supervisor


class InjectedError(Exception):
    """What a test lets a task raise."""


class _FailingHealth(Health):
    """Lets its task fail in one of its rounds.

    Args:
        name: of the task.
        fails_at: the round, counted from 1.
        rest: of `Health`.
    """

    def __init__(self, name: str, fails_at: int, *rest: Any) -> None:
        super().__init__(name, *rest)
        self.rounds_left = fails_at
        self.rounds_since = 0

    def record_success(self) -> None:
        """A round of it went well, or is said to have failed."""
        self.rounds_left -= 1
        if self.rounds_left == 0:
            raise InjectedError(f"a fault of {self.name}")
        if self.rounds_left < 0:
            self.rounds_since += 1
        super().record_success()


class FailingSupervisor(Supervisor):
    """Every task and thread that it supervises fails once.

    Args:
        settings: of `Supervisor`.
        fails_at: in which round.
        named: of `Supervisor`, too.
    """

    def __init__(self, *settings: Any, fails_at: int = 2, **named: Any) -> None:
        super().__init__(*settings, **named)
        self._fails_at = fails_at
        self._all: list[_FailingHealth] = []

    def build_health(self, name: str, longest_pause_s: float = 10.0) -> Health:
        """One that lets its task fail."""
        health = _FailingHealth(name, self._fails_at, longest_pause_s, self._passing, self._clock)
        self._all.append(health)
        return health

    @property
    def recovered(self) -> dict[str, bool]:
        """Everything that has told of a round so far, and whether it failed and went on after it."""
        return {
            health.name: health.rounds_since > 0
            for health in self._all
            if health.rounds_left < self._fails_at
        }
