"""The first law, checked on the ledger at every commit and whenever a run is looked at.

Once this process has checked all of a run, and as long as nobody else writes, a commit is checked by what it
changed; otherwise, and at each change of state, by all rows of the run. A run that breaks the law fails.
"""

from collections.abc import Callable
from typing import TypeVar

from oku_coordinator.ledger.rules import lifecycle
from oku_coordinator.ledger.storage.records import BreachError
from oku_coordinator.ledger.storage.tally import Tally, check_worker_requests
from oku_coordinator.ledger.storage.transaction import LedgerFile, Transaction
from oku_coordinator.ledger.tables.account_table import fetch_account, sum_requests, write_accounts
from oku_coordinator.ledger.tables.lease_table import read_active_leases
from oku_coordinator.ledger.tables.run_table import fetch_run, fetch_state
from oku_coordinator.ledger.tables.slice_table import fetch_slices
from oku_core.accounting.interval import ConservationError, Lengths, SliceState, check_partition
from oku_core.accounting.run_state import ACTIVE_STATES

_T = TypeVar("_T")


def change(file: LedgerFile, work: Callable[[Transaction], _T], now: float) -> _T:
    """Do `work` in one transaction. On a `BreachError`, which is raised again, its run has failed."""
    try:
        return file.change(work)
    except BreachError as error:
        run, detail = error.run, error.detail
        file.change(lambda transaction: lifecycle.fail(transaction, run, detail, now))
        raise


def finish(transaction: Transaction) -> None:
    """End a change: write the accounts, and check every run that was touched or has changed."""
    write_accounts(transaction)
    changed = {run for run, tally in transaction.tallies.items() if tally.has_changed}
    for run in transaction.touched | changed:
        tally = transaction.tallies.get(run)
        if tally is None:
            _begin_tally(transaction, run)
        else:
            _check_changes(transaction, run, tally)
        if fetch_state(transaction, run) not in ACTIVE_STATES:
            # No more reports come for it, and one account takes as much memory as thousands of leases.
            transaction.accounts.pop(run, None)
            transaction.tallies.pop(run, None)


def _begin_tally(transaction: Transaction, run: str) -> None:
    lengths = check_run(transaction, run)
    leases = read_active_leases(transaction, run)
    transaction.tallies[run] = Tally(lengths, leases, sum_requests(transaction, run))


def _check_changes(transaction: Transaction, run: str, tally: Tally) -> None:
    try:
        fetch_account(transaction, run).check(tally.check())
    except BreachError:
        raise
    except ConservationError as error:
        raise BreachError(run, str(error)) from error


def check_run(transaction: Transaction, run: str) -> Lengths:
    """Check all rows of a run; gives how much of it is in each state.

    Raises:
        BreachError: the slices do not partition the request space, the leased ones do not match the active
            leases, or the account does not sum to what is accounted.
    """
    slices = fetch_slices(transaction, run)
    try:
        lengths = check_partition(slices, fetch_run(transaction, run).spec.requests)
        fetch_account(transaction, run).check(lengths)
        check_worker_requests(sum_requests(transaction, run), lengths)
    except BreachError:
        raise
    except ConservationError as error:
        raise BreachError(run, str(error)) from error
    leased = [(piece.start, piece.stop) for piece in slices if piece.state == SliceState.LEASED]
    active = sorted((lease.start, lease.stop) for lease in read_active_leases(transaction, run))
    if leased != active:
        raise BreachError(
            run, f"{len(leased)} ranges are leased and {len(active)} leases are active, but they differ"
        )
    return lengths
