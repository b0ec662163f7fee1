"""Leases that a test wants to have in a ledger."""

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import LeaseRecord


def cut_lease(ledger: Ledger, run: str, size: int, now: float) -> LeaseRecord | None:
    """Lease the first `size` pending indices of a run, or fewer; None when there is nothing to lease."""
    return next(iter(ledger.leases.cut(run, [lambda _: size], now)), None)
