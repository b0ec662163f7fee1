"""Gives the turn of a run that cannot begin to the next one, so that it does not hold up the others.

In a cluster there may never be room for its pods. The run goes to the end of the queue and gets another turn;
as long as no other run waits, it keeps its turn.
"""

import logging
from collections.abc import Callable

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import RunRecord
from oku_core.accounting.run_state import RunState
from oku_core.spec.values.quantity import format_duration

_log = logging.getLogger(__name__)


class QueueWatch:
    """Watches the run that has its turn.

    Args:
        ledger: keeps the queue.
        start_within_s: how long a run may have its turn without beginning.
        find_obstacle: why a run has not begun, in a line.
        clock: Unix time.
    """

    def __init__(
        self,
        ledger: Ledger,
        start_within_s: float,
        find_obstacle: Callable[[RunRecord], str],
        clock: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._start_within_s = start_within_s
        self._find_obstacle = find_obstacle
        self._clock = clock
        self._run: str | None = None
        self._since = 0.0
        """When it was first seen to have its turn, in monotonic seconds."""

    def reset_timers(self, now: float) -> None:
        """Begin to count anew: no worker could come, or none could have been heard."""
        self._since = now

    def look(self, now: float) -> None:
        """Look at the run that has its turn, at `now` in monotonic seconds."""
        run = self._ledger.runs.fetch_current()
        if run is None or run.state != RunState.PENDING:
            self._run = None
        elif run.run != self._run:
            self._run, self._since = run.run, now
        elif now - self._since >= self._start_within_s and self._ledger.runs.count_queued() > 1:
            waited = format_duration(self._start_within_s)
            obstacle = self._find_obstacle(run)
            reason = f"it has not begun within {waited}" + (f": {obstacle}" if obstacle else "")
            _log.warning("run %s gives its turn to the next: %s", run.run, reason, extra={"run": run.run})
            self._ledger.runs.requeue(run.run, self._clock(), reason)
            self._run = None
