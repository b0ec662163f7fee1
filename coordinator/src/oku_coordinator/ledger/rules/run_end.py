"""The end of a closed run whose time has passed: what nobody has taken is left unused."""

from oku_coordinator.ledger.rules.lifecycle import follow_up, leave_rest_unused
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables.lease_table import has_open_leases
from oku_coordinator.ledger.tables.run_table import fetch_run, fetch_state
from oku_core.accounting.run_state import FINAL_STATES, SENDING_STATES


def end_time(transaction: Transaction, run: str, now: float) -> bool:
    """Complete an active run that is bounded by time: as many requests as are accounted were all of it.

    Returns:
        Whether the run is over. It is not as long as leases are open, and nothing has changed then; nor is it
        before its teardown has been called.
    """
    record = fetch_run(transaction, run)
    if record.state not in SENDING_STATES or not record.spec.is_timed or has_open_leases(transaction, run):
        return record.state in FINAL_STATES
    leave_rest_unused(transaction, run)
    follow_up(transaction, run, now)
    return fetch_state(transaction, run) in FINAL_STATES
