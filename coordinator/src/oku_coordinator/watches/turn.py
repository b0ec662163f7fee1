"""The turn of a run: it begins, or it gives the turn to the next run.

A run begins once all workers that it asks for are there. It waits for them for a while; then it begins with
those that are there, and says how many are missing. If there is none, as in a cluster that never has room for
its pods, it goes to the end of the queue and gets another turn; as long as no other run waits, it keeps its
turn.
"""

import logging

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import lifecycle
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.runs.readiness import Readiness
from oku_coordinator.watches.file_preparation import find_files_within_s
from oku_core.accounting.run_state import RunState
from oku_core.process.clock import Clock
from oku_core.spec.values.quantity import format_duration

_log = logging.getLogger(__name__)

_SHORTEST_TURN_S = 1.0
_LAST_CHECK_S = 5.0
"""What a run needs beside workers is checked when they are there, which takes a moment."""


class Turn:
    """The turn of one run, which waits `start_within_s` for its workers unless its spec says otherwise.

    `clock` is Unix time.
    """

    def __init__(self, ledger: Ledger, readiness: Readiness, start_within_s: float, clock: Clock) -> None:
        self._ledger = ledger
        self._readiness = readiness
        self._start_within_s = start_within_s
        self._clock = clock
        self._since: float | None = None
        """When the run was first seen to wait in its turn, in monotonic seconds."""
        self._begun_without = 0
        """How many of its workers the run began without."""

    def reset_timers(self, now: float) -> None:
        """Begin to count anew: no worker could come, or none could have been heard."""
        if self._since is not None:
            self._since = now

    def start(self, run: RunRecord, now: float, wall_now: float) -> RunRecord | None:
        """Begin a pending run that has its turn, if it can; None while it waits. `now` is monotonic."""
        waited_s = self._measure_turn_s(now)
        workers = self._readiness.count_workers(run)
        is_due = not workers.missing or waited_s >= self._find_start_within_s(run)
        if not workers.there or not is_due or not self._readiness.may_start(run):
            return None
        if workers.missing:
            reason = f"{workers.describe()}, after it has waited for {format_duration(waited_s)}"
            _log.warning("run %s begins with %s", run.run, reason, extra={"run": run.run})
        else:
            reason = ""
            _log.info("run %s begins", run.run, extra={"run": run.run})
        self._since = None
        self._begun_without = workers.missing
        with self._ledger.change(wall_now) as t:
            return lifecycle.start_run(t, run.run, wall_now, workers.missing, reason)

    def count_missing(self, run: RunRecord) -> int:
        """How many workers an active run lacks; it has waited long enough for those that it began without."""
        return max(0, self._readiness.count_workers(run).missing - self._begun_without)

    def expire(self, run: RunRecord, now: float) -> None:
        """Give the turn of a run that cannot begin to the next, at `now` in monotonic seconds."""
        if run.state != RunState.PENDING:
            self._since = None
            return
        waited_s = self._measure_turn_s(now)
        if waited_s >= self._find_turn_s(run) and self._readiness.count_queued() > 1:
            obstacle = self._readiness.find_obstacle(run)
            reason = f"it has not begun within {format_duration(waited_s)}{obstacle and f': {obstacle}'}"
            _log.warning("run %s gives its turn to the next: %s", run.run, reason, extra={"run": run.run})
            wall_now = self._clock()
            with self._ledger.change(wall_now) as t:
                lifecycle.requeue(t, run.run, wall_now, reason)
            self._since = None

    def _measure_turn_s(self, now: float) -> float:
        if self._since is None:
            self._since = now
        return now - self._since

    def _find_start_within_s(self, run: RunRecord) -> float:
        said = run.spec.start_within_s
        return (self._start_within_s if said is None else said) + find_files_within_s(run.spec)

    def _find_turn_s(self, run: RunRecord) -> float:
        """How long a run has its turn without beginning: it begins with one worker once it has waited."""
        turn_s = max(self._find_start_within_s(run), _SHORTEST_TURN_S)
        if not self._readiness.count_workers(run).there:
            return turn_s
        return max(turn_s, self._readiness.find_servers_within_s(run)) + _LAST_CHECK_S
