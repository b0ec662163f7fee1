"""Makes the workers of a run fetch its files, and load its user code, before they get leases.

The order is repeated, since messages may be lost. Workers report the handled files and code in their
progress, and other workers cannot take leases: no second of a schedule passes while user code is loaded.
"""

import math
from collections.abc import Collection

from oku_coordinator.broker.sender import Broker
from oku_coordinator.files.file_access import FileAccess
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.workers.assignment import Assignment, find_setup
from oku_core.accounting.run_state import RunState
from oku_core.messaging.order import Fetch, UserCode
from oku_core.spec.files import list_files
from oku_core.spec.spec import Spec

_SLOWEST_BYTES_PER_S = 10_000_000
"""The slowest expected transfer; a run waits that much longer for its files."""
_UNPREPARED_EVERY_S, _PREPARED_EVERY_S = 2.0, 15.0
"""The interval of orders to a worker. Without an order for a minute, it releases the files."""


class FilePreparation:
    """Prepares the workers of one run."""

    def __init__(
        self, ledger: Ledger, assignment: Assignment, broker: Broker, file_access: FileAccess
    ) -> None:
        self._ledger = ledger
        self._assignment = assignment
        self._broker = broker
        self._file_access = file_access
        self._attempt: int | None = None
        """The attempt at the setup in the orders; None without user code."""
        self._sent_at: dict[str, float] = {}
        """When each process last got that order, by its incarnation."""

    def send_needs(self, run: RunRecord, now: float) -> None:
        """Send workers the needs of the run, if it has any, at `now` in monotonic seconds."""
        if run.state not in (RunState.PENDING, RunState.RUNNING, RunState.TEARING_DOWN):
            self._sent_at.clear()
            return
        files = {file.digest: file for file in list_files(run.spec)}
        setup = find_setup(self._ledger, run)
        if not files and setup is None:
            return
        attempt = None if setup is None else setup.attempt
        if attempt != self._attempt:  # the order is new
            self._attempt = attempt
            self._sent_at.clear()
        names = [str(file) for file in files.values()]
        preparing = {worker.incarnation for worker in self._assignment.find_preparing(run.run)}
        # The setup may have returned much data.
        code = UserCode(spec=run.spec, setup=setup) if setup is not None and preparing else None
        due = self._find_due(run, preparing, now)
        tickets = self._file_access.build_tickets(files) if due else {}
        self._broker.send(
            Fetch(
                incarnation=incarnation,
                run=run.run,
                files=names,
                tickets=tickets,
                code=code if incarnation in preparing else None,
            )
            for incarnation in due
        )

    def _find_due(self, run: RunRecord, preparing: Collection[str], now: float) -> list[str]:
        """The processes that are due for an order, by incarnation."""
        sent_at, self._sent_at = self._sent_at, {}
        due = []
        for worker in self._assignment.find_members(run.run):
            incarnation = worker.incarnation
            every_s = _UNPREPARED_EVERY_S if incarnation in preparing else _PREPARED_EVERY_S
            at = sent_at.get(incarnation, -math.inf)
            if now - at >= every_s:
                due.append(incarnation)
                at = now
            self._sent_at[incarnation] = at
        return due


def find_files_within_s(spec: Spec) -> float:
    """How many seconds workers may take to fetch the files of a run, in addition to their start."""
    return sum({file.digest: file.size for file in list_files(spec)}.values()) / _SLOWEST_BYTES_PER_S
