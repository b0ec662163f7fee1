"""How the waves of an open run are cut, leased and forgotten."""

from collections.abc import Callable

from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.storage.schedule_records import Deal, Dealing, PeriodRecord
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import lease_table, run_table, schedule_table, slice_table
from oku_coordinator.ledger.tables.run_table import fetch_state
from oku_core.accounting.run_state import RunState

Decide = Callable[[Dealing], Deal | None]
"""Decides what to change in the waves of a run; None for nothing."""


def fetch_dealing(transaction: Transaction, run: str) -> Dealing:
    """How far an open run is dealt."""
    waves = schedule_table.fetch_waves(transaction, run)
    cut, next_block = schedule_table.fetch_cut(transaction, run)
    # What is before the first wave is accounted, and what is behind the last one is in none.
    stop = waves[-1].stop if waves else 0
    pending = slice_table.fetch_pending(transaction, run, stop)
    return Dealing(waves=waves, cut=cut, next_block=next_block, pending=pending)


def deal(transaction: Transaction, run: str, decide: Decide, now: float) -> list[LeaseRecord]:
    """Do what is decided on the waves of a run; gives the leases, none if it is not running."""
    if fetch_state(transaction, run) != RunState.RUNNING:
        return []
    dealing = fetch_dealing(transaction, run)
    deal = decide(dealing)
    if deal is None:
        return []
    schedule_table.delete_waves(transaction, run, deal.dropped)
    schedule_table.insert_waves(transaction, run, deal.waves)
    schedule_table.write_cut(transaction, run, dealing.cut + len(deal.waves), deal.next_block)
    return lease_table.deal_pieces(transaction, run, deal.orders, now)


def find_accounted(transaction: Transaction, run: str) -> list[int]:
    """The first coordinates of the waves of a run of which all is accounted."""
    return [
        wave.begin
        for wave in schedule_table.fetch_waves(transaction, run)
        if slice_table.is_accounted(transaction, run, wave.begin, wave.stop)
    ]


def start_clock(transaction: Transaction, run: str, starts_at: float, offset_s: float) -> PeriodRecord | None:
    """Let the clock of a run's schedule run from a Unix time on; None if the run is not running.

    The period of activity is the same.
    """
    if fetch_state(transaction, run) != RunState.RUNNING:
        return None
    schedule_table.insert_period(transaction, run, starts_at, offset_s)
    run_table.open_period(transaction, run, starts_at)
    return schedule_table.fetch_period(transaction, run)
