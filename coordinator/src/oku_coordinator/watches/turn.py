"""The turn of a run: it starts, or passes the turn to the next run.

A run starts once all of its requested workers are there. It waits for them for a while; then it starts with
the present ones, and records how many are missing. Without any, as in a cluster that never has room for its
pods, it moves to the end of the queue and gets another turn; while no other run waits, it keeps its turn.
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
"""The check of delay servers and other needs once the workers are there takes a moment."""


class Turn:
    """The turn of one run, which waits `start_within_s` for its workers unless its spec sets a limit.

    `clock` is Unix time.
    """

    def __init__(self, ledger: Ledger, readiness: Readiness, start_within_s: float, clock: Clock) -> None:
        self._ledger = ledger
        self._readiness = readiness
        self._start_within_s = start_within_s
        self._clock = clock
        self._since: float | None = None
        """When the run was first seen waiting in its turn, in monotonic seconds."""
        self._begun_without = 0
        """How many of its workers were missing at the start."""

    def reset_timers(self, now: float) -> None:
        """Restart the timers after a time in which no worker could join or be reached."""
        if self._since is not None:
            self._since = now

    def start(self, run: RunRecord, now: float, wall_now: float) -> RunRecord | None:
        """Start a pending run that has its turn, if it can; None while it waits. `now` is monotonic."""
        waited_s = self._measure_turn_s(now)
        workers = self._readiness.count_workers(run)
        is_due = not workers.missing or waited_s >= self._find_start_within_s(run)
        if not workers.there or not is_due or not self._readiness.may_start(run):
            return None
        if workers.missing:
            reason = f"{workers.describe()}, after it has waited for {format_duration(waited_s)}"
            _log.warning("run %s starts with %s", run.run, reason, extra={"run": run.run})
        else:
            reason = ""
            _log.info("run %s starts", run.run, extra={"run": run.run})
        self._since = None
        self._begun_without = workers.missing
        with self._ledger.change(wall_now) as t:
            return lifecycle.start_run(t, run.run, wall_now, workers.missing, reason)

    def count_missing(self, run: RunRecord) -> int:
        """How many workers an active run lacks, without the ones that were missing at its start."""
        return max(0, self._readiness.count_workers(run).missing - self._begun_without)

    def expire(self, run: RunRecord, now: float) -> None:
        """Pass the turn of a run that cannot start to the next one, at `now` in monotonic seconds."""
        if run.state != RunState.PENDING:
            self._since = None
            return
        waited_s = self._measure_turn_s(now)
        if waited_s >= self._find_turn_s(run) and self._readiness.count_queued() > 1:
            obstacle = self._readiness.find_obstacle(run)
            reason = f"it did not start within {format_duration(waited_s)}{obstacle and f': {obstacle}'}"
            _log.warning("run %s passes its turn to the next: %s", run.run, reason, extra={"run": run.run})
            wall_now = self._clock()
            with self._ledger.change(wall_now) as t:
                lifecycle.requeue(t, run.run, wall_now, reason)
            self._since = None

    def _measure_turn_s(self, now: float) -> float:
        if self._since is None:
            self._since = now
        return now - self._since

    def _find_start_within_s(self, run: RunRecord) -> float:
        limit_s = run.spec.start_within_s
        return (self._start_within_s if limit_s is None else limit_s) + find_files_within_s(run.spec)

    def _find_turn_s(self, run: RunRecord) -> float:
        """The longest turn of a run without a start: after its wait, one worker is enough."""
        turn_s = max(self._find_start_within_s(run), _SHORTEST_TURN_S)
        if not self._readiness.count_workers(run).there:
            return turn_s
        return max(turn_s, self._readiness.find_servers_within_s(run)) + _LAST_CHECK_S
