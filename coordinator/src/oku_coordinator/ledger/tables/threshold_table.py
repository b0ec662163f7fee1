"""The records of thresholds beside the account: certain losses, and worst stretches."""

import sqlite3

from oku_coordinator.ledger.storage.records import ThresholdRecord
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_core.thresholds.stretches import StretchValue


def fetch_thresholds(transaction: Transaction, run: str) -> dict[int, ThresholdRecord]:
    """The records of a run's thresholds, by their places in its spec; most have none."""
    rows = transaction.select("SELECT * FROM thresholds WHERE run = ?", run)
    return {row["ordinal"]: _build_record(row) for row in rows}


def insert_loss(transaction: Transaction, run: str, number: int, now: float) -> bool:
    """Record that a threshold is lost; returns whether that is new."""
    changed = transaction.execute(
        "INSERT INTO thresholds (run, ordinal, lost_at) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET lost_at = excluded.lost_at WHERE lost_at IS NULL",
        run, number, now,
    )  # fmt: skip
    return changed > 0


def write_stretch(transaction: Transaction, run: str, number: int, record: ThresholdRecord) -> None:
    """Write the state of a threshold over consecutive seconds: all of a record but the time of its loss."""
    loss = record.loss
    place = (None, None, None) if loss is None else (loss.value, loss.phase, loss.clock_s)
    transaction.execute(
        "INSERT INTO thresholds (run, ordinal, worst, longest_s, lost_value, lost_phase, lost_clock_s)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET worst = excluded.worst,"
        " longest_s = excluded.longest_s, lost_value = excluded.lost_value,"
        " lost_phase = excluded.lost_phase, lost_clock_s = excluded.lost_clock_s",
        run, number, record.worst, record.longest_s, *place,
    )  # fmt: skip


def _build_record(row: sqlite3.Row) -> ThresholdRecord:
    loss = None
    if row["lost_clock_s"] is not None:
        loss = StretchValue(
            row["lost_value"], holds=False, phase=row["lost_phase"], clock_s=row["lost_clock_s"]
        )
    return ThresholdRecord(row["lost_at"], row["worst"], loss, row["longest_s"])
