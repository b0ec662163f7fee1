"""Begins the run that has its turn, or gives the turn to the next.

A run begins once all workers that it asks for are there. It waits for them for a while; then it begins with
those that are there, and says how many are missing. If there is none, as in a cluster that never has room for
its pods, it goes to the end of the queue and gets another turn; as long as no other run waits, it keeps its
turn.
"""

import logging
from collections.abc import Callable

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import lifecycle
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables import run_table
from oku_coordinator.runs.file_preparation import find_files_within_s
from oku_coordinator.runs.readiness import Readiness
from oku_core.accounting.run_state import RunState
from oku_core.spec.values.quantity import format_duration

_log = logging.getLogger(__name__)

_SHORTEST_TURN_S = 1.0
_LAST_LOOK_S = 5.0
"""What a run needs beside workers is looked at when they are there, which takes a moment."""


class QueueWatch:
    """Watches the run that has its turn.

    Args:
        ledger: keeps the queue.
        readiness: knows which workers are there, and what else a run waits for.
        start_within_s: how long a run waits for its workers, unless its spec says so.
        clock: Unix time.
    """

    def __init__(
        self, ledger: Ledger, readiness: Readiness, start_within_s: float, clock: Callable[[], float]
    ) -> None:
        self._ledger = ledger
        self._readiness = readiness
        self._start_within_s = start_within_s
        self._clock = clock
        self._run: str | None = None
        self._since = 0.0
        """When it was first seen to have its turn, in monotonic seconds."""
        self._begun: tuple[str, int] = "", 0
        """The run that began last, and how many of its workers it began without."""

    def reset_timers(self, now: float) -> None:
        """Begin to count anew: no worker could come, or none could have been heard."""
        self._since = now

    def begin(self, run: RunRecord, now: float, wall_now: float) -> RunRecord | None:
        """Begin a pending run that has its turn, if it can; None while it waits.

        Args:
            run: the run.
            now: monotonic seconds.
            wall_now: Unix time.
        """
        waited_s = self._measure_turn_s(run, now)
        workers = self._readiness.count_workers(run)
        is_due = not workers.missing or waited_s >= self._find_start_within_s(run)
        if not workers.there or not is_due or not self._readiness.may_begin(run):
            return None
        if workers.missing:
            reason = f"{workers.describe()}, after it has waited for {format_duration(waited_s)}"
            _log.warning("run %s begins with %s", run.run, reason, extra={"run": run.run})
        else:
            reason = ""
            _log.info("run %s begins", run.run, extra={"run": run.run})
        self._run = None
        self._begun = run.run, workers.missing
        with self._ledger.change(wall_now) as t:
            return lifecycle.begin_run(t, run.run, wall_now, workers.missing, reason)

    def count_missing(self, run: RunRecord) -> int:
        """How many workers an active run lacks; it has waited long enough for those that it began without."""
        given_up = self._begun[1] if self._begun[0] == run.run else 0
        return max(0, self._readiness.count_workers(run).missing - given_up)

    def look(self, now: float) -> None:
        """Give the turn of a run that cannot begin to the next, at `now` in monotonic seconds."""
        with self._ledger.read() as t:
            run = run_table.fetch_current_run(t)
        if run is None or run.state != RunState.PENDING:
            self._run = None
            return
        waited_s = self._measure_turn_s(run, now)
        if waited_s >= self._find_turn_s(run) and self._readiness.count_queued() > 1:
            obstacle = self._readiness.find_obstacle(run)
            reason = f"it has not begun within {format_duration(waited_s)}{obstacle and f': {obstacle}'}"
            _log.warning("run %s gives its turn to the next: %s", run.run, reason, extra={"run": run.run})
            with self._ledger.change(self._clock()) as t:
                lifecycle.requeue(t, run.run, self._clock(), reason)
            self._run = None

    def _measure_turn_s(self, run: RunRecord, now: float) -> float:
        if run.run != self._run:
            self._run, self._since = run.run, now
        return now - self._since

    def _find_start_within_s(self, run: RunRecord) -> float:
        said = run.spec.start_within_s
        return (self._start_within_s if said is None else said) + find_files_within_s(run.spec)

    def _find_turn_s(self, run: RunRecord) -> float:
        """How long a run has its turn without beginning: it begins with one worker once it has waited."""
        turn_s = max(self._find_start_within_s(run), _SHORTEST_TURN_S)
        if not self._readiness.count_workers(run).there:
            return turn_s
        return max(turn_s, self._readiness.find_servers_within_s(run)) + _LAST_LOOK_S
