"""Watches the workers of runs: their presence, their sandbox for user code, and the error of their clocks.

A run without a worker for its `give-up-after`, queued or active, is cancelled. Waiting behind other runs
counts, since it has no worker then; an outage of the link to the workers does not. The count is in memory: a
restarted coordinator starts again.

A worker whose kernel lacks Landlock cannot sandbox. Its run gets an event, and a notice that stays after its
end.
"""

import contextlib
import logging
import math
from dataclasses import dataclass

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import history
from oku_coordinator.ledger.storage.records import NO_WORKER, RunRecord
from oku_coordinator.ledger.tables import run_table
from oku_coordinator.ledger.tables.accounts import work_table
from oku_coordinator.runs.notices import UNCONFINED, list_unconfined
from oku_coordinator.runs.readiness import Readiness
from oku_coordinator.runs.runs import Runs
from oku_coordinator.watches.target_watch import format_limit
from oku_coordinator.workers.assignment import Assignment
from oku_core.accounting.run_state import RunState, TransitionError
from oku_core.process.clock import Clock
from oku_core.results.event import Event, EventType
from oku_core.summary.validity import MOST_SKEW_S, Flag

_log = logging.getLogger(__name__)

_ENDED_STATES = frozenset({RunState.PENDING, RunState.RUNNING, RunState.TEARING_DOWN})
"""In all other states a run comes to rest by itself."""
_WORTH_RECORDING = 1.1
"""A bound that has grown by less is not recorded again."""


@dataclass
class _Wait:
    """How long a run may be without a worker, None for ever, and how long it has been."""

    limit_s: float | None
    waited_s: float = 0.0


class WorkerWatch:
    """Watches whether the runs that are not at rest have workers."""

    def __init__(self, ledger: Ledger, runs: Runs, readiness: Readiness) -> None:
        self._ledger = ledger
        self._runs = runs
        self._readiness = readiness
        self._waits: dict[str, _Wait] = {}
        self._checked_at = math.inf
        """In monotonic seconds; infinite before the first check."""
        self._connected_since = math.inf

    def reset_timers(self, now: float) -> None:
        """Skip the time since the last check: no worker could be reached."""
        self._checked_at = self._connected_since = now

    def cancel_abandoned(self, now: float) -> None:
        """Cancel each run whose time is up, at `now` in monotonic seconds."""
        self._connected_since = min(self._connected_since, now)
        passed_s, self._checked_at = max(0.0, now - self._checked_at), now
        with self._ledger.read() as t:
            live = run_table.fetch_live_runs(t)
        known = self._waits
        self._waits = {run: known.get(run) or self._start_wait(run) for run in live}
        for run, wait in self._waits.items():
            if run in known:  # a new run is younger than that
                wait.waited_s = 0.0 if self._readiness.has_worker(run) else wait.waited_s + passed_s
        # Workers that were silent for this long are dead.
        if now - self._connected_since >= self._readiness.roster.worker_timeout_s:
            for run, wait in self._waits.items():
                if wait.limit_s is not None and wait.waited_s >= wait.limit_s:
                    self._give_up(run, wait.limit_s)

    def _start_wait(self, run: str) -> _Wait:
        with self._ledger.read() as t:
            return _Wait(run_table.fetch_run(t, run).spec.give_up_after_s)

    def _give_up(self, run: str, limit_s: float) -> None:
        with self._ledger.read() as t:
            record = run_table.fetch_run(t, run)
        if record.state not in _ENDED_STATES:
            return
        reason = f"{NO_WORKER}{format_limit(limit_s)}"
        if record.state != RunState.TEARING_DOWN:  # its reason is more specific
            obstacle = self._readiness.find_worker_obstacle(record)
            reason += f"{obstacle and f': {obstacle}'}; --give-up-after sets the limit"
        with contextlib.suppress(TransitionError):  # it is ending already
            self._runs.cancel(run, reason=reason)
            _log.error("run %s ends: %s", run, reason, extra={"run": run})


class ConfinementWatch:
    """Finds the workers of one run that cannot sandbox its user code."""

    def __init__(self, ledger: Ledger, assignment: Assignment, clock: Clock) -> None:
        self._ledger = ledger
        self._assignment = assignment
        self._clock = clock
        self._recorded: set[str] = set()
        """The workers that have an event."""

    def check(self, run: RunRecord) -> None:
        """Record workers without an event; call it whenever a worker may have been assigned."""
        names = list_unconfined(self._assignment, run)
        if new := [name for name in names if name not in self._recorded]:
            at, type_ = self._clock(), EventType.WORKER_UNCONFINED
            events = [
                Event(at=at, type=type_, text=f"worker {name} {UNCONFINED}", worker=name) for name in new
            ]
            with self._ledger.change() as t:
                history.keep_events(t, run.run, events)
            self._recorded.update(new)


class SkewWatch:
    """Checks the clock errors of the workers of one run."""

    def __init__(self, ledger: Ledger, assignment: Assignment) -> None:
        self._ledger = ledger
        self._assignment = assignment
        self._recorded_s = 0.0
        """The largest bound that this coordinator has recorded."""

    def check(self, run: RunRecord) -> None:
        """Flag the run if it has a schedule and a bound is too large."""
        if run.state != RunState.RUNNING or not run.spec.is_open:
            return
        worst_s = self._assignment.clock_bound_s
        if worst_s > max(MOST_SKEW_S, _WORTH_RECORDING * self._recorded_s):
            with self._ledger.change() as t:
                work_table.add_flag(t, run.run, Flag.CLOCK_SKEW, 0, worst_s)
            self._recorded_s = worst_s
