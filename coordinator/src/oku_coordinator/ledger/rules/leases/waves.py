"""The waves of an open run: cutting, leasing and deletion."""

from collections.abc import Callable

from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.storage.schedule_records import Deal, Dealing, PeriodRecord
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import lease_table, run_table, schedule_table, slice_table
from oku_coordinator.ledger.tables.run_table import fetch_state
from oku_core.accounting.run_state import RunState

Decide = Callable[[Dealing], Deal | None]
"""Decides on changes to the waves of a run; None for none."""


def fetch_dealing(transaction: Transaction, run: str) -> Dealing:
    """The state of dealing of an open run."""
    waves = schedule_table.fetch_waves(transaction, run)
    cut, next_block = schedule_table.fetch_cut(transaction, run)
    # All before the first wave is accounted; all after the last one is in none.
    stop = waves[-1].stop if waves else 0
    pending = slice_table.fetch_pending(transaction, run, stop)
    return Dealing(waves=waves, cut=cut, next_block=next_block, pending=pending)


def deal(transaction: Transaction, run: str, decide: Decide, now: float) -> list[LeaseRecord]:
    """Apply the decision on the waves of a run; returns the leases, none if it is not running."""
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
    """The first coordinates of the fully accounted waves of a run."""
    return [
        wave.begin
        for wave in schedule_table.fetch_waves(transaction, run)
        if slice_table.is_accounted(transaction, run, wave.begin, wave.stop)
    ]


def start_clock(transaction: Transaction, run: str, starts_at: float, offset_s: float) -> PeriodRecord | None:
    """Start the clock of a run's schedule at a Unix time; None if the run is not running.

    It also opens the period of activity.
    """
    if fetch_state(transaction, run) != RunState.RUNNING:
        return None
    schedule_table.insert_period(transaction, run, starts_at, offset_s)
    run_table.open_period(transaction, run, starts_at)
    return schedule_table.fetch_period(transaction, run)
