"""What the ledger keeps of thresholds beside the account: losses that are certain, and worst stretches."""

from oku_coordinator.ledger.storage.records import ThresholdRecord
from oku_coordinator.ledger.storage.transaction import Transaction


def fetch_thresholds(transaction: Transaction, run: str) -> dict[int, ThresholdRecord]:
    """What is kept of the thresholds of a run, by their places in its spec; nothing of most."""
    rows = transaction.select("SELECT * FROM thresholds WHERE run = ?", run)
    return {row["ordinal"]: ThresholdRecord(row["lost_at"], row["worst"]) for row in rows}


def note_lost(transaction: Transaction, run: str, number: int, now: float) -> bool:
    """Note that a threshold is lost; gives whether that was not known."""
    changed = transaction.execute(
        "INSERT INTO thresholds (run, ordinal, lost_at) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET lost_at = excluded.lost_at WHERE lost_at IS NULL",
        run, number, now,
    )  # fmt: skip
    return changed > 0


def note_worst(transaction: Transaction, run: str, number: int, worst: float) -> None:
    """Keep the worst stretch of a threshold."""
    transaction.execute(
        "INSERT INTO thresholds (run, ordinal, worst) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET worst = excluded.worst",
        run, number, worst,
    )  # fmt: skip
