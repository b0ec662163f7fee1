"""The rows of the periods in which the clocks of schedules run."""

import sqlite3

from oku_coordinator.ledger.storage.schedule_records import PeriodRecord
from oku_coordinator.ledger.storage.transaction import Transaction


def fetch_period(transaction: Transaction, run: str) -> PeriodRecord | None:
    """The newest period of a run, which may have ended; None when there was none yet."""
    row = transaction.select_one(
        "SELECT starts_at, offset_s, stop_s FROM active_periods WHERE run = ? ORDER BY ordinal DESC LIMIT 1",
        run,
    )
    return None if row is None else _build_period(row)


def fetch_periods(transaction: Transaction, run: str) -> list[PeriodRecord]:
    """All periods of a run, the oldest first."""
    rows = transaction.select(
        "SELECT starts_at, offset_s, stop_s FROM active_periods WHERE run = ? ORDER BY ordinal", run
    )
    return [_build_period(row) for row in rows]


def insert_period(transaction: Transaction, run: str, starts_at: float, offset_s: float) -> None:
    """Open a period; the one before has ended."""
    transaction.execute(
        "INSERT INTO active_periods (run, ordinal, starts_at, offset_s)"
        " SELECT ?1, coalesce(max(ordinal), 0) + 1, ?2, ?3 FROM active_periods WHERE run = ?1",
        run, starts_at, offset_s,
    )  # fmt: skip


def stop_period(transaction: Transaction, run: str, at: float) -> None:
    """Let the open period of a run end at a Unix time, unless its end is known already."""
    transaction.execute(
        "UPDATE active_periods SET stop_s = offset_s + max(0, ? - starts_at)"
        " WHERE run = ? AND stop_s IS NULL",
        at, run,
    )  # fmt: skip


def _build_period(row: sqlite3.Row) -> PeriodRecord:
    return PeriodRecord(starts_at=row["starts_at"], offset_s=row["offset_s"], stop_s=row["stop_s"])
