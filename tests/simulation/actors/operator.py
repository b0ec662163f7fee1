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
        """Pause the run that has its turn."""
        if run := self._world.current:
            self._world.story.note_fault(f"somebody pauses {run}")
            self._try(lambda: self._world.coordinator.enter_state(run, RunState.PAUSING))

    def resume(self) -> None:
        """Resume all runs that wait for that."""
        for run in self._world.stopped:
            self._world.story.note(f"somebody resumes {run}")
            self._try(lambda run=run: self._world.coordinator.enter_state(run, RunState.PENDING))  # type: ignore[misc]

    def cancel(self, *, now: bool) -> None:
        """Cancel the run that has its turn."""
        if run := self._world.current:
            self._world.story.note_fault(f"somebody cancels {run}" + (" at once" if now else ""))
            self._try(lambda: self._world.coordinator.cancel(run, now=now))

    def _try(self, call: Callable[[], None], tries: int = _MOST_TRIES) -> None:
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
            self._world.scheduler.after(_TRIES_AGAIN_S, lambda: self._try(call, tries - 1))
