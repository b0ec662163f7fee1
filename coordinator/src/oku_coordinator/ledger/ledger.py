"""The ledger: the durable record of every run, and the only place where a request becomes accounted.

Its methods stand in rooms, one for each subject. Every method that changes something is one transaction
that ends with a check of the first law for each run that it touched. A breach rolls it back, and the run
fails.
"""

from pathlib import Path

from oku_coordinator.ledger.ledger_deletions import LedgerDeletions
from oku_coordinator.ledger.ledger_failures import LedgerFailures
from oku_coordinator.ledger.ledger_files import LedgerFiles
from oku_coordinator.ledger.ledger_history import LedgerHistory
from oku_coordinator.ledger.ledger_hooks import LedgerHooks
from oku_coordinator.ledger.ledger_keys import LedgerKeys
from oku_coordinator.ledger.ledger_leases import LedgerLeases
from oku_coordinator.ledger.ledger_outbox import LedgerOutbox
from oku_coordinator.ledger.ledger_runs import LedgerRuns
from oku_coordinator.ledger.ledger_schedules import LedgerSchedules
from oku_coordinator.ledger.rules import conservation
from oku_coordinator.ledger.storage.schema import BUSY_TIMEOUT_S
from oku_coordinator.ledger.storage.storage_health import StorageHealth
from oku_coordinator.ledger.storage.transaction import LedgerFile
from oku_coordinator.ledger.tables.account_table import fetch_account
from oku_core.accounting.interval import Lengths


class Ledger:
    """An open ledger. Safe to call from several threads; every time is Unix time, given by the caller.

    Methods that change something raise `BreachError`, a `ConservationError`, when the account of a run would
    not balance, and `StorageError` when the file cannot be written. Both leave the ledger as it was, except
    that the run has failed after a breach.

    Args:
        path: where its file is.
        read_only: whether another process may write it.
        publishes: whether lines of the runs that are created or resumed here are kept for Loki.
        storage: records whether the file can be used.
        busy_timeout_s: how long to wait for another process that writes.

    Attributes:
        runs: their records and states.
        leases: what is dealt, accounted and taken back.
        schedules: the clocks and waves of runs whose requests have due times.
        history: samples and events.
        failures: which requests are not ok.
        hooks: what is called once for a run, before its first lease and after its last one.
        outbox: lines that wait for Loki.
        deletions: runs that are being removed.
        keys: with which runs were submitted.
        files: which run uses which file.
        file: the transactions behind the rooms, for what no room offers.
        storage: whether the file can be used.
    """

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        publishes: bool = False,
        storage: StorageHealth | None = None,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
    ) -> None:
        self._path = path
        self.storage = storage or StorageHealth()
        self.file = LedgerFile(
            path, conservation.finish, self.storage, read_only=read_only, busy_timeout_s=busy_timeout_s
        )
        self.runs = LedgerRuns(self.file, publishes=publishes)
        self.leases = LedgerLeases(self.file)
        self.schedules = LedgerSchedules(self.file)
        self.history = LedgerHistory(self.file)
        self.failures = LedgerFailures(self.file)
        self.hooks = LedgerHooks(self.file)
        self.outbox = LedgerOutbox(self.file)
        self.deletions = LedgerDeletions(self.file)
        self.keys = LedgerKeys(self.file)
        self.files = LedgerFiles(self.file)

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def open_reader(self) -> "Ledger":
        """Open the same ledger to read much of it: the reader waits for nobody, and nobody for the reader."""
        return Ledger(self._path, read_only=True)

    def check(self, run: str) -> Lengths:
        """How much of a run is pending, leased and accounted; `BreachError` when it does not balance."""
        return self.file.read(
            lambda transaction: conservation.check_run(transaction, run, fetch_account(transaction, run))
        )
