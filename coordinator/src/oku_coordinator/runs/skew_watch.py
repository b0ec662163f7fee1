"""Flags open runs in which a worker does not know the clock of their schedule well enough."""

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.tables import run_table, work_table
from oku_coordinator.workers.assignment import Assignment
from oku_core.accounting.run_state import RunState
from oku_core.results.validity import MOST_SKEW_S

_WORTH_NOTING = 1.1
"""A bound that has grown by less is not written down again."""


class SkewWatch:
    """Looks at the bounds that workers tell of.

    Args:
        ledger: keeps the flags.
        assignment: the workers of the run.
    """

    def __init__(self, ledger: Ledger, assignment: Assignment) -> None:
        self._ledger = ledger
        self._assignment = assignment
        self._noted: tuple[str, float] = ("", 0.0)
        """A run, and the largest bound in it that the ledger knows."""

    def look(self) -> None:
        """Flag the run that is active, if it has a schedule and a bound is too large."""
        with self._ledger.read() as t:
            run = run_table.fetch_current_run(t)
        if run is None or run.state != RunState.RUNNING or not run.spec.is_open:
            return
        known_s = self._noted[1] if self._noted[0] == run.run else 0.0
        worst_s = self._assignment.clock_bound_s
        if worst_s > max(MOST_SKEW_S, _WORTH_NOTING * known_s):
            with self._ledger.change() as t:
                work_table.note_clock_skew(t, run.run, worst_s)
            self._noted = (run.run, worst_s)
