"""The rows of waves: how the requests of an open run are shared, as far as they are not accounted."""

from collections.abc import Iterable

import msgspec

from oku_coordinator.ledger.storage.records import breaching
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_core.schedule.wave import Wave

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(Wave).decode


def fetch_waves(transaction: Transaction, run: str) -> list[Wave]:
    """The waves of a run that are not accounted, in rising order; `BreachError` if one cannot be read."""
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
    """How many waves of a run were cut, and the first block of its schedule that is in none of them."""
    row = transaction.select_one("SELECT waves, next_block FROM schedules WHERE run = ?", run)
    return (row["waves"], row["next_block"]) if row else (0, 0)


def write_cut(transaction: Transaction, run: str, waves: int, next_block: int) -> None:
    """Note how many waves were cut, and up to where."""
    transaction.execute(
        "INSERT INTO schedules (run, waves, next_block) VALUES (?1, ?2, ?3)"
        " ON CONFLICT DO UPDATE SET waves = ?2, next_block = ?3",
        run, waves, next_block,
    )  # fmt: skip
