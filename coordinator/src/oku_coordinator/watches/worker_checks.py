"""Checks the workers of a run: whether they can confine its user code, and know its clock well enough.

The kernel of a worker without Landlock cannot confine. Its run has an event, and a notice that stays when it
is over.
"""

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import history
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables.accounts import work_table
from oku_coordinator.runs.notices import UNCONFINED, list_unconfined
from oku_coordinator.workers.assignment import Assignment
from oku_core.accounting.run_state import RunState
from oku_core.process.clock import Clock
from oku_core.results.event import Event, EventType
from oku_core.summary.validity import MOST_SKEW_S


class ConfinementWatch:
    """Checks the workers that belong to one run.

    Args:
        ledger: keeps the events.
        assignment: the workers of the run.
        clock: gives Unix time.
    """

    def __init__(self, ledger: Ledger, assignment: Assignment, clock: Clock) -> None:
        self._ledger = ledger
        self._assignment = assignment
        self._clock = clock
        self._recorded: set[str] = set()
        """The workers that have an event."""

    def check(self, run: RunRecord) -> None:
        """Record those that have no event yet; call it whenever a worker may have been assigned."""
        names = list_unconfined(self._assignment, run)
        if new := [name for name in names if name not in self._recorded]:
            at, type_ = self._clock(), EventType.WORKER_UNCONFINED
            events = [
                Event(at=at, type=type_, text=f"worker {name} {UNCONFINED}", worker=name) for name in new
            ]
            with self._ledger.change() as t:
                history.keep_events(t, run.run, events)
            self._recorded.update(new)


_WORTH_RECORDING = 1.1
"""A bound that has grown by less is not written down again."""


class SkewWatch:
    """Checks the bounds that the workers of one run report.

    Args:
        ledger: keeps the flags.
        assignment: the workers of the run.
    """

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
                work_table.note_clock_skew(t, run.run, worst_s)
            self._recorded_s = worst_s
