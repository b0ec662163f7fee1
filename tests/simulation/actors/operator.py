"""Who uses Oku: pauses, resumes and cancels the run, and tries again when that fails."""

import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulation.machine.process import KilledError

from oku_core.accounting.run_state import RunState, TransitionError

if TYPE_CHECKING:
    from tests.simulation.world import World

_TRIES_AGAIN_S = 0.7
_MOST_TRIES = 100


class Operator:
    """Uses the commands of a coordinator.

    Args:
        world: where the coordinator is.
    """

    def __init__(self, world: "World") -> None:
        self._world = world

    def pause(self) -> None:
        """Pause the run."""
        self._world.story.note_fault("somebody pauses the run")
        self._try("pause", lambda: self._world.coordinator.enter_state(RunState.PAUSING))

    def resume(self) -> None:
        """Resume the run."""
        self._world.story.note("somebody resumes the run")
        self._try("resume", lambda: self._world.coordinator.enter_state(RunState.PENDING))

    def cancel(self, *, now: bool) -> None:
        """Cancel the run."""
        self._world.story.note_fault("somebody cancels the run" + (" at once" if now else ""))
        self._try("cancel", lambda: self._world.coordinator.cancel(now=now))

    def _try(self, what: str, call: Callable[[], None], tries: int = _MOST_TRIES) -> None:
        coordinator = self._world.coordinator
        process = coordinator.process
        if process.is_alive and not process.is_frozen:
            try:
                process.enter(call)
            except TransitionError:
                return
            except (sqlite3.Error, KilledError):
                pass
            else:
                return
        if tries > 1:
            self._world.scheduler.after(_TRIES_AGAIN_S, lambda: self._try(what, call, tries - 1))
