"""The series of runs in the ledger: the outcomes by second, and what of them is in no line for Loki yet.

A long run has few rows: when its samples are merged, the counts of their seconds move into them. So what all
samples and all rows of a run sum to is its account, in every transaction.
"""

import json
from collections.abc import Mapping, Sequence

from oku_coordinator.ledger.storage.transaction import Transaction
from oku_core.results.series import add_counts

_NOTHING = ""
"""What a row keeps in place of counts that are all 0."""


def add(transaction: Transaction, run: str, series: Mapping[int, Sequence[int]]) -> None:
    """Fold outcomes into the series of a run, by Unix seconds of the coordinator's clock.

    Call it in the transaction that accounts for the same requests, with the same counts.
    """
    added = {second: counts for second, counts in series.items() if any(counts)}
    if not added:
        return
    row = transaction.select_one("SELECT is_published FROM runs WHERE run = ?", run)
    is_published = row is not None and bool(row["is_published"])
    rows = []
    for second, counts in added.items():
        before = transaction.select_one(
            "SELECT outcomes, unpublished FROM series WHERE run = ? AND second = ?", run, second
        )
        outcomes = _sum(before["outcomes"] if before else _NOTHING, counts)
        unpublished = before["unpublished"] if before else _NOTHING
        if is_published:
            unpublished = _sum(unpublished, counts)
        rows.append((run, second, outcomes, unpublished))
    transaction.execute_each(
        "INSERT OR REPLACE INTO series (run, second, outcomes, unpublished) VALUES (?, ?, ?, ?)", rows
    )


def fetch(transaction: Transaction, run: str) -> dict[int, list[int]]:
    """What is in the rows of a run, by second."""
    rows = transaction.select(
        "SELECT second, outcomes FROM series WHERE run = ? AND outcomes != '' ORDER BY second", run
    )
    return {row["second"]: json.loads(row["outcomes"]) for row in rows}


def take(transaction: Transaction, run: str, first: float, stop: float) -> dict[int, list[int]]:
    """Take the counts of the seconds `[first, stop)` out of the rows of a run, to keep them elsewhere."""
    rows = transaction.select(
        "SELECT second, outcomes FROM series WHERE run = ? AND second >= ? AND second < ? AND outcomes != ''",
        run, first, stop,
    )  # fmt: skip
    keys = [(run, row["second"]) for row in rows]
    transaction.execute_each("UPDATE series SET outcomes = '' WHERE run = ? AND second = ?", keys)
    _remove_empty(transaction, keys)
    return {row["second"]: json.loads(row["outcomes"]) for row in rows}


def take_unpublished(transaction: Transaction, run: str, stop: float) -> dict[int, list[int]]:
    """What is in no line yet of the seconds before `stop`; it counts as published from now on."""
    rows = transaction.select(
        "SELECT second, unpublished FROM series INDEXED BY unpublished_series"
        " WHERE run = ? AND second < ? AND unpublished != '' ORDER BY second",
        run, stop,
    )  # fmt: skip
    keys = [(run, row["second"]) for row in rows]
    transaction.execute_each("UPDATE series SET unpublished = '' WHERE run = ? AND second = ?", keys)
    _remove_empty(transaction, keys)
    return {row["second"]: json.loads(row["unpublished"]) for row in rows}


def _sum(kept: str, counts: Sequence[int]) -> str:
    return json.dumps(add_counts(json.loads(kept), counts) if kept else list(counts), separators=(",", ":"))


def _remove_empty(transaction: Transaction, keys: Sequence[tuple[str, int]]) -> None:
    transaction.execute_each(
        "DELETE FROM series WHERE run = ? AND second = ? AND outcomes = '' AND unpublished = ''", keys
    )
