"""The rows of delay servers that were seen with a run, by the stores in which they count."""

from collections.abc import Iterable

from oku_coordinator.ledger.transaction import Transaction


def note_servers(transaction: Transaction, run: str, stores: Iterable[str], now: float) -> None:
    """These were seen with a run now, for the first time or again."""
    transaction.execute_each(
        "INSERT OR REPLACE INTO servers VALUES (?, ?, ?)",
        [(run, store, now) for store in stores],
    )


def fetch_servers(transaction: Transaction, run: str) -> dict[str, float]:
    """When each was last seen."""
    rows = transaction.select("SELECT store, seen_at FROM servers WHERE run = ?", run)
    return {row["store"]: row["seen_at"] for row in rows}
