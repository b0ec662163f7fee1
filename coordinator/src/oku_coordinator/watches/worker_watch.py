"""Cancels a run that has had no worker for as long as its `give-up-after`, queued or in the middle.

The time in which a run waits behind others counts, for no worker is there for it. Time in which no worker
could be heard does not count. The count is kept in memory: a restarted coordinator begins anew.
"""

import contextlib
import logging
import math
from dataclasses import dataclass

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import NO_WORKER
from oku_coordinator.ledger.tables import run_table
from oku_coordinator.runs.readiness import Readiness
from oku_coordinator.runs.runs import Runs
from oku_coordinator.watches.target_watch import format_limit
from oku_core.accounting.run_state import RunState, TransitionError

_log = logging.getLogger(__name__)

_ENDED_STATES = frozenset({RunState.PENDING, RunState.RUNNING, RunState.TEARING_DOWN})
"""In the other states a run comes to rest by itself."""


@dataclass
class _Wait:
    """How long a run may have no worker, None for ever, and how long it has had none."""

    limit_s: float | None
    waited_s: float = 0.0


class WorkerWatch:
    """Watches whether the runs that are not at rest have workers.

    Args:
        ledger: knows the runs.
        runs: cancels them.
        readiness: knows which workers are there, and what keeps others away.
    """

    def __init__(self, ledger: Ledger, runs: Runs, readiness: Readiness) -> None:
        self._ledger = ledger
        self._runs = runs
        self._readiness = readiness
        self._waits: dict[str, _Wait] = {}
        self._checked_at = math.inf
        """In monotonic seconds; not before the first look."""
        self._hears_since = math.inf

    def reset_timers(self, now: float) -> None:
        """Leave out the time since the last look: no worker could have been heard."""
        self._checked_at = self._hears_since = now

    def cancel_abandoned(self, now: float) -> None:
        """Cancel each run whose time is up, at `now` in monotonic seconds."""
        self._hears_since = min(self._hears_since, now)
        passed_s, self._checked_at = max(0.0, now - self._checked_at), now
        with self._ledger.read() as t:
            live = run_table.fetch_live_runs(t)
        known = self._waits
        self._waits = {run: known.get(run) or self._begin(run) for run in live}
        for run, wait in self._waits.items():
            if run in known:  # a new run is younger than the time that has passed
                wait.waited_s = 0.0 if self._readiness.has_worker(run) else wait.waited_s + passed_s
        # Workers that have not been heard for so long are dead.
        if now - self._hears_since >= self._readiness.roster.worker_timeout_s:
            for run, wait in self._waits.items():
                if wait.limit_s is not None and wait.waited_s >= wait.limit_s:
                    self._give_up(run, wait.limit_s)

    def _begin(self, run: str) -> _Wait:
        with self._ledger.read() as t:
            return _Wait(run_table.fetch_run(t, run).spec.give_up_after_s)

    def _give_up(self, run: str, limit_s: float) -> None:
        with self._ledger.read() as t:
            record = run_table.fetch_run(t, run)
        if record.state not in _ENDED_STATES:
            return
        reason = f"{NO_WORKER}{format_limit(limit_s)}"
        if record.state != RunState.TEARING_DOWN:  # its reason says more
            obstacle = self._readiness.find_worker_obstacle(record)
            reason += f"{obstacle and f': {obstacle}'}; --give-up-after says how long to wait"
        with contextlib.suppress(TransitionError):  # it ends already
            self._runs.cancel(run, reason=reason)
            _log.error("run %s ends: %s", run, reason, extra={"run": run})
