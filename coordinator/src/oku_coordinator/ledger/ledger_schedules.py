"""The schedules of a ledger: the periods in which their clocks run, and the waves that are dealt of them."""

from collections.abc import Callable

from oku_coordinator.ledger.rules import conservation, waves
from oku_coordinator.ledger.storage.records import LeaseRecord
from oku_coordinator.ledger.storage.schedule_records import Deal, Dealing, PeriodRecord
from oku_coordinator.ledger.storage.transaction import LedgerFile, Transaction
from oku_coordinator.ledger.tables import period_table, run_table, wave_table
from oku_core.accounting.run_state import RunState
from oku_core.schedule.wave import Wave

Decide = Callable[[Dealing], Deal | None]
"""Decides what to change in the waves of a run; None for nothing."""


class LedgerSchedules:
    """What can be done with the schedules of runs."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file

    def open_period(self, run: str, starts_at: float, offset_s: float) -> PeriodRecord | None:
        """Let the clock of a run's schedule run from a Unix time on; None if the run is not running.

        The period of activity is the same.
        """

        def open_period(transaction: Transaction) -> PeriodRecord | None:
            if run_table.fetch_state(transaction, run) != RunState.RUNNING:
                return None
            period_table.insert_period(transaction, run, starts_at, offset_s)
            run_table.open_period(transaction, run, starts_at)
            return period_table.fetch_period(transaction, run)

        return self._file.change(open_period)

    def fetch_period(self, run: str) -> PeriodRecord | None:
        """The newest period of a run, which may have ended; None when there was none yet."""
        return self._file.read(lambda transaction: period_table.fetch_period(transaction, run))

    def fetch_periods(self, run: str) -> list[PeriodRecord]:
        """All periods of a run, the oldest first."""
        return self._file.read(lambda transaction: period_table.fetch_periods(transaction, run))

    def fetch_waves(self, run: str) -> list[Wave]:
        """The waves of a run that are not accounted, in rising order."""
        return self._file.read(lambda transaction: wave_table.fetch_waves(transaction, run))

    def fetch_dealing(self, run: str) -> Dealing:
        """How far an open run is dealt."""
        return self._file.read(lambda transaction: waves.fetch_dealing(transaction, run))

    def deal(self, run: str, decide: Decide, now: float) -> list[LeaseRecord]:
        """Cut waves and deal leases of an open run, as is decided on what there is, in one transaction.

        There are none when the run is not running.
        """
        return conservation.change(
            self._file, lambda transaction: waves.deal(transaction, run, decide, now), now
        )

    def drop_accounted(self, run: str) -> None:
        """Forget the waves of a run that are accounted."""
        if finished := self._file.read(lambda transaction: waves.find_accounted(transaction, run)):
            self._file.change(lambda transaction: wave_table.delete_waves(transaction, run, finished))
