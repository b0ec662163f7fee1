"""The first law, checked on the ledger: at every commit, and whenever a run is looked at."""

from oku_coordinator.ledger.account_table import fetch_account, write_accounts
from oku_coordinator.ledger.lease_table import fetch_active_leases
from oku_coordinator.ledger.record import BreachError
from oku_coordinator.ledger.run_table import fetch_run
from oku_coordinator.ledger.slice_table import fetch_slices
from oku_coordinator.ledger.transaction import Transaction
from oku_core.interval import ConservationError, Lengths, SliceState, check_partition


def finish(transaction: Transaction) -> None:
    """The end of every change: write the accounts, check every run that was touched."""
    write_accounts(transaction)
    for run in transaction.touched:
        check_run(transaction, run)


def check_run(transaction: Transaction, run: str) -> Lengths:
    """How much of a run is in each state.

    Raises:
        BreachError: the slices are no partition of the request space, the leased ones are not the active
            leases, or the account does not sum to what is accounted.
    """
    slices = fetch_slices(transaction, run)
    try:
        lengths = check_partition(slices, fetch_run(transaction, run).spec.requests)
        fetch_account(transaction, run).check(lengths)
    except BreachError:
        raise
    except ConservationError as error:
        raise BreachError(run, str(error)) from error
    leased = [(piece.start, piece.stop) for piece in slices if piece.state == SliceState.LEASED]
    active = sorted((lease.start, lease.stop) for lease in fetch_active_leases(transaction, run))
    if leased != active:
        raise BreachError(
            run, f"{len(leased)} ranges are leased, {len(active)} leases are active, not the same"
        )
    rows = transaction.select("SELECT coalesce(sum(requests), 0) FROM workers WHERE run = ?", run)
    if rows[0][0] != lengths.accounted:
        raise BreachError(
            run, f"the workers' requests sum to {rows[0][0]}, accounted are {lengths.accounted}"
        )
    return lengths
