"""Flags an open run in which a worker does not know the clock of its schedule well enough."""

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables import work_table
from oku_coordinator.workers.assignment import Assignment
from oku_core.accounting.run_state import RunState
from oku_core.results.validity import MOST_SKEW_S

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
