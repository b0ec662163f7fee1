"""The law of conservation, checked at every commit and whenever a run is read.

Once this process has checked all rows of a run, and while no other process writes, a commit is checked by its
changes; otherwise, and at each change of state, by all rows of the run. A run that breaks the law fails.
"""

from collections.abc import Iterable, Mapping

from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.storage.records import breaching
from oku_coordinator.ledger.storage.row_tally import (
    RowTally,
    check_lease,
    check_worker_requests,
    move_covered,
)
from oku_coordinator.ledger.storage.run_account import RunAccount
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables.accounts.account_table import fetch_account, write_accounts
from oku_coordinator.ledger.tables.accounts.series_table import sum_series, write_series
from oku_coordinator.ledger.tables.accounts.work_table import sum_requests
from oku_coordinator.ledger.tables.lease_table import read_open_leases, sum_parts
from oku_coordinator.ledger.tables.run_table import fetch_live_runs, fetch_run, fetch_spec, fetch_state
from oku_coordinator.ledger.tables.slice_table import fetch_slices
from oku_core.accounting.interval import ConservationError, Lengths, SliceState, check_partition
from oku_core.accounting.run_state import ACTIVE_STATES


def finish(transaction: Transaction) -> None:
    """Finish a change: write accounts and seconds, and check every run that was touched or has changed."""
    write_accounts(transaction)
    write_series(transaction)
    changed = {run for run, tally in transaction.tallies.items() if tally.has_changed}
    for run in transaction.touched | changed:
        tally = transaction.tallies.get(run)
        if tally is None:
            _start_tally(transaction, run)
        else:
            _check_changes(transaction, run, tally)
        if fetch_state(transaction, run) not in ACTIVE_STATES:
            _unload(transaction, run)


def _unload(transaction: Transaction, run: str) -> None:
    """Unload the accounts of runs that get no more checkpoints.

    Two accounts of inactive runs stay: that of the given run, because its summary is due, and that of the run
    that has its turn and is about to start.
    """
    transaction.tallies.pop(run, None)
    kept = {run, *fetch_live_runs(transaction)[:1]}
    for other in transaction.accounts.keys() - kept:
        if fetch_state(transaction, other) not in ACTIVE_STATES:
            del transaction.accounts[other]


def _start_tally(transaction: Transaction, run: str) -> None:
    lengths, leases = _check_rows(transaction, run, fetch_account(transaction, run))
    covered = sum(lease.covered for lease in leases)
    transaction.tallies[run] = RowTally(
        move_covered(lengths, -covered),
        leases,
        parts=sum_parts(transaction, run),
        worker_requests=sum_requests(transaction, run),
        series=sum_series(transaction, run),
    )


def _check_changes(transaction: Transaction, run: str, tally: RowTally) -> None:
    with breaching(run):
        account = fetch_account(transaction, run)
        spec, changed = fetch_spec(transaction, run), transaction.folded.get(run, ())
        account.check(tally.check(), tally.series, spec, changed)
        check_worker_requests(tally.worker_requests, account.seen)


def check_run(transaction: Transaction, run: str, account: RunAccount) -> Lengths:
    """Check all rows of a run against its account; returns how much of it is in each state.

    Raises:
        BreachError: the slices do not partition the request space, the leased ones do not match the open
            leases, an open lease contradicts itself, or the account does not sum to what is accounted.
    """
    return _check_rows(transaction, run, account)[0]


def fetch_lengths(transaction: Transaction, run: str, account: RunAccount) -> Lengths:
    """The same, but by changes while the commits of this process are checked that way."""
    tally = transaction.tallies.get(run)
    return check_run(transaction, run, account) if tally is None else tally.lengths


def _check_rows(transaction: Transaction, run: str, account: RunAccount) -> tuple[Lengths, list[LeaseRecord]]:
    with breaching(run):
        leases = read_open_leases(transaction, run)
        slices = fetch_slices(transaction, run)
        record = fetch_run(transaction, run)
        lengths = check_partition(slices, record.spec.requests)
        if lengths.unused != record.spec.requests - record.requests:
            raise ConservationError(
                f"{lengths.unused} are unused, but the run has {record.requests} of {record.spec.requests}"
            )
        lengths = move_covered(lengths, sum(lease.covered for lease in leases))
        changed = transaction.folded.get(run, ()) if account.is_checked else None
        account.check(lengths, sum_series(transaction, run), record.spec, changed)
        check_worker_requests(sum_requests(transaction, run), account.seen)
        _check_leases(leases, sum_parts(transaction, run))
        leased = [(piece.start, piece.stop) for piece in slices if piece.state == SliceState.LEASED]
        held = sorted(piece for lease in leases for piece in lease.ranges.cut(0, lease.end))
        if leased != held:
            raise ConservationError(
                f"{len(leased)} ranges are leased and open leases have {len(held)}, but they differ"
            )
    return lengths, leases


def _check_leases(leases: Iterable[LeaseRecord], parts: Mapping[str, int]) -> None:
    left = dict(parts)
    for lease in leases:
        check_lease(lease.id, lease, left.pop(lease.id, 0))
    for name, requests in left.items():
        check_lease(name, None, requests)
