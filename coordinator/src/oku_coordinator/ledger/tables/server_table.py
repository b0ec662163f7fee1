"""The rows of delay servers that were seen with a run, by the stores in which they count."""

from collections.abc import Iterable

from oku_coordinator.ledger.storage.transaction import Transaction


def note_servers(transaction: Transaction, run: str, stores: Iterable[str], now: float) -> None:
    """Note that these stores were seen with a run, for the first time or again."""
    transaction.execute_each(
        "INSERT OR REPLACE INTO servers VALUES (?, ?, ?)",
        [(run, store, now) for store in stores],
    )


def fetch_servers(transaction: Transaction, run: str) -> dict[str, float]:
    """The stores that were seen with a run, and when each was last seen."""
    rows = transaction.select("SELECT store, seen_at FROM servers WHERE run = ?", run)
    return {row["store"]: row["seen_at"] for row in rows}
