"""The schedules of runs: the periods of their clocks, and their waves."""

import sqlite3
from collections.abc import Iterable

import msgspec

from oku_coordinator.ledger.storage.records import breaching
from oku_coordinator.ledger.storage.schedule_records import PeriodRecord
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_core.schedule.wave import Wave


def fetch_period(transaction: Transaction, run: str) -> PeriodRecord | None:
    """The newest period of a run, which may have ended; None without one."""
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
    """Open a period; the previous one has ended."""
    transaction.execute(
        "INSERT INTO active_periods (run, ordinal, starts_at, offset_s)"
        " SELECT ?1, coalesce(max(ordinal), 0) + 1, ?2, ?3 FROM active_periods WHERE run = ?1",
        run, starts_at, offset_s,
    )  # fmt: skip


def stop_period(transaction: Transaction, run: str, at: float) -> None:
    """Set the end of the open period of a run to a Unix time, unless it has one."""
    transaction.execute(
        "UPDATE active_periods SET stop_s = offset_s + max(0, ? - starts_at)"
        " WHERE run = ? AND stop_s IS NULL",
        at, run,
    )  # fmt: skip


def _build_period(row: sqlite3.Row) -> PeriodRecord:
    return PeriodRecord(starts_at=row["starts_at"], offset_s=row["offset_s"], stop_s=row["stop_s"])


_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(Wave).decode


def fetch_waves(transaction: Transaction, run: str) -> list[Wave]:
    """The unaccounted waves of a run, in rising order; `BreachError` if one is unreadable."""
    rows = transaction.select("SELECT body FROM waves WHERE run = ? ORDER BY begin", run)
    with breaching(run):
        return [_unpack(row["body"]) for row in rows]


def insert_waves(transaction: Transaction, run: str, waves: Iterable[Wave]) -> None:
    """Store waves."""
    transaction.execute_each(
        "INSERT INTO waves (run, begin, body) VALUES (?, ?, ?)",
        [(run, wave.begin, _pack(wave)) for wave in waves],
    )


def delete_waves(transaction: Transaction, run: str, begins: Iterable[int]) -> None:
    """Remove waves by their first coordinates."""
    transaction.execute_each(
        "DELETE FROM waves WHERE run = ? AND begin = ?", [(run, begin) for begin in begins]
    )


def forget_waves(transaction: Transaction, run: str) -> None:
    """Remove all waves of a run that is over."""
    transaction.execute("DELETE FROM waves WHERE run = ?", run)


def fetch_cut(transaction: Transaction, run: str) -> tuple[int, int]:
    """The number of waves of a run cut so far, and the first block of its schedule after them."""
    row = transaction.select_one("SELECT waves, next_block FROM schedules WHERE run = ?", run)
    return (row["waves"], row["next_block"]) if row else (0, 0)


def write_cut(transaction: Transaction, run: str, waves: int, next_block: int) -> None:
    """Set the number of waves cut, and the block after them."""
    transaction.execute(
        "INSERT INTO schedules (run, waves, next_block) VALUES (?1, ?2, ?3)"
        " ON CONFLICT DO UPDATE SET waves = ?2, next_block = ?3",
        run, waves, next_block,
    )  # fmt: skip
