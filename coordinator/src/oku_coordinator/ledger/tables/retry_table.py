"""The rows of runs that send again what failed in another run."""

from oku_coordinator.ledger.storage.records import RetryRecord
from oku_coordinator.ledger.storage.transaction import Transaction


def insert_retry(transaction: Transaction, run: str, retry: RetryRecord) -> None:
    """Note what a new run sends again."""
    transaction.execute(
        "INSERT INTO retries (run, retried, origin, requests, ok, unlisted) VALUES (?, ?, ?, ?, ?, ?)",
        run, *retry,
    )  # fmt: skip


def fetch_retry(transaction: Transaction, run: str) -> RetryRecord | None:
    """What a run sends again; None if it is no retry."""
    row = transaction.select_one(
        "SELECT retried, origin, requests, ok, unlisted FROM retries WHERE run = ?", run
    )
    return RetryRecord(*row) if row else None
