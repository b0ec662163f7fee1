"""Has the workers of a run fetch its files, and load its user code, before they get leases.

Each is told again and again, for messages may be lost. Workers report in their progress what they have dealt
with, and no other worker can take leases: no second of a schedule passes while user code is loaded.
"""

import math
from collections.abc import Callable, Collection

from oku_coordinator.broker.sender import Broker
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables import run_table
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.preparation import find_setup
from oku_core.accounting.run_state import RunState
from oku_core.messaging.hook import SetupData
from oku_core.messaging.order import Fetch, UserCode
from oku_core.spec.files import list_files
from oku_core.spec.spec import Spec

_SLOWEST_BYTES_PER_S = 10_000_000
"""What a transfer takes at least; a run waits for its files that much longer."""
_UNPREPARED_EVERY_S, _PREPARED_EVERY_S = 2.0, 15.0
"""How often a worker is told. One that is not told for a minute lets go of the files."""


class FilePreparation:
    """Prepares the workers of one run at a time.

    Args:
        ledger: says which run has its turn.
        assignment: says which workers it has.
        broker: the way to the workers.
        build_ticket: makes what a worker fetches a file with, by its digest.
    """

    def __init__(
        self, ledger: Ledger, assignment: Assignment, broker: Broker, build_ticket: Callable[[str], str]
    ) -> None:
        self._ledger = ledger
        self._assignment = assignment
        self._broker = broker
        self._build_ticket = build_ticket
        self._subject: tuple[str, int | None] | None = None
        """The run that workers are told of, and the attempt at its setup; None for no user code."""
        self._told_at: dict[str, float] = {}
        """When each worker was told of that last, by its incarnation."""

    def look(self, now: float) -> None:
        """Tell workers what the run needs that has its turn, if it needs anything; `now` is monotonic."""
        with self._ledger.read() as t:
            run = run_table.fetch_current_run(t)
        if run is None or run.state not in (RunState.PENDING, RunState.RUNNING, RunState.TEARING_DOWN):
            self._subject = None
            return
        files = {file.digest: file for file in list_files(run.spec)}
        setup = find_setup(self._ledger, run)
        if not files and setup is None:
            return
        self._turn_to(run, setup)
        names = [str(file) for file in files.values()]
        preparing = {worker.incarnation for worker in self._assignment.find_preparing(run.run)}
        # The setup may have returned a lot.
        code = UserCode(spec=run.spec, setup=setup) if setup is not None and preparing else None
        due = self._find_due(run, preparing, now)
        tickets = {digest: self._build_ticket(digest) for digest in files} if due else {}
        self._broker.send_fetches(
            Fetch(
                incarnation=incarnation,
                run=run.run,
                files=names,
                tickets=tickets,
                code=code if incarnation in preparing else None,
            )
            for incarnation in due
        )

    def _turn_to(self, run: RunRecord, setup: SetupData | None) -> None:
        """Tell all workers anew when there is something new to tell."""
        subject = (run.run, None if setup is None else setup.attempt)
        if subject != self._subject:
            self._subject = subject
            self._told_at.clear()

    def _find_due(self, run: RunRecord, preparing: Collection[str], now: float) -> list[str]:
        """Those that are to be told now, by their incarnations."""
        told_at, self._told_at = self._told_at, {}
        due = []
        for worker in self._assignment.find_members(run.run):
            incarnation = worker.incarnation
            every_s = _UNPREPARED_EVERY_S if incarnation in preparing else _PREPARED_EVERY_S
            at = told_at.get(incarnation, -math.inf)
            if now - at >= every_s:
                due.append(incarnation)
                at = now
            self._told_at[incarnation] = at
        return due


def find_files_within_s(spec: Spec) -> float:
    """How many seconds workers may take to fetch the files of a run, in addition to coming."""
    return sum({file.digest: file.size for file in list_files(spec)}.values()) / _SLOWEST_BYTES_PER_S
