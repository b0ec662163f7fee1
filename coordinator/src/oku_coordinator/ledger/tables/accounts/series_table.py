"""The seconds of runs in the ledger: how many requests were sent in each, and how many ended, and how.

They grow in the transaction that accounts the requests, so their sum is always exactly the account of the
run. A row covers one second; old seconds are merged, so that a long run has no more rows than samples. Each
row also records how much of it is published, so that its increments add up to it.
"""

import sqlite3
from collections.abc import Mapping, Sequence

from oku_coordinator.ledger.storage.lease_records import decode_counts, encode_counts
from oku_coordinator.ledger.storage.records import breaching
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_core.accounting.outcome import build_no_counts
from oku_core.results.series import SeriesRow, add_counts

_NOTHING = (*build_no_counts(), 0)
"""The counts of a second, followed by the number of requests sent in it."""


def add_seconds(transaction: Transaction, run: str, seconds: Mapping[int, Sequence[int]]) -> None:
    """Add the growth of seconds; it is written at the end of the transaction.

    Args:
        transaction: to write in.
        run: its id.
        seconds: counts of outcomes, followed by the number of requests sent, by Unix second.
    """
    gained = transaction.seconds.setdefault(run, {})
    for second, counts in seconds.items():
        total = gained.get(second)
        gained[second] = list(counts) if total is None else add_counts(total, counts)


def write_series(transaction: Transaction) -> None:
    """Write the collected growth, with one row per second."""
    for run, seconds in transaction.seconds.items():
        for second, counts in seconds.items():
            _add(transaction, run, second, counts)
    transaction.seconds.clear()


def _add(transaction: Transaction, run: str, second: int, counts: Sequence[int]) -> None:
    *outcomes, sent = counts
    row = transaction.select_one(
        # The last row that starts by then, if it covers this second.
        "SELECT second, seconds, outcomes, sent FROM series WHERE run = ? AND second <= ?"
        " ORDER BY second DESC LIMIT 1",
        run, second,
    )  # fmt: skip
    if row is None or row["second"] + row["seconds"] <= second:
        transaction.execute(
            "INSERT INTO series (run, second, outcomes, published, sent) VALUES (?, ?, ?, ?, ?)",
            run, second, encode_counts(outcomes), encode_counts(build_no_counts()), sent,
        )  # fmt: skip
        return
    with breaching(run):
        total = add_counts(decode_counts(row["outcomes"]), outcomes)
    transaction.execute(
        "UPDATE series SET outcomes = ?, sent = ? WHERE run = ? AND second = ?",
        encode_counts(total), row["sent"] + sent, run, row["second"],
    )  # fmt: skip


def fetch_series(transaction: Transaction, run: str, since: int = 0) -> list[SeriesRow]:
    """The seconds of a run in which requests were sent or ended, oldest first, from a second on."""
    rows = transaction.select(
        "SELECT second, seconds, outcomes, sent FROM series WHERE run = ? AND second >= ? ORDER BY second",
        run, since,
    )  # fmt: skip
    return [
        SeriesRow(second=second, seconds=seconds, outcomes=decode_counts(outcomes), sent=sent)
        for second, seconds, outcomes, sent in rows
    ]


def pop_increments(transaction: Transaction, run: str, before: float) -> list[SeriesRow]:
    """The unpublished growth of seconds, oldest first; it counts as published from now on.

    Args:
        transaction: to read and write in.
        run: its id.
        before: only seconds that are over by then; infinity for all.
    """
    rows = transaction.select(
        "SELECT second, seconds, outcomes, published, sent, published_sent FROM series"
        " INDEXED BY unpublished_series WHERE run = ?"
        " AND (outcomes != published OR sent != published_sent) AND second + seconds <= ? ORDER BY second",
        run, before,
    )  # fmt: skip
    transaction.execute_each(
        "UPDATE series SET published = outcomes, published_sent = sent WHERE run = ? AND second = ?",
        [(run, row["second"]) for row in rows],
    )
    return [_build_increment(row) for row in rows]


def _build_increment(row: sqlite3.Row) -> SeriesRow:
    outcomes, published = decode_counts(row["outcomes"]), decode_counts(row["published"])
    return SeriesRow(
        second=row["second"],
        seconds=row["seconds"],
        outcomes=[now - was for now, was in zip(outcomes, published, strict=True)],
        sent=row["sent"] - row["published_sent"],
        is_new=not any(published) and not row["published_sent"],
    )


def merge_seconds(transaction: Transaction, run: str, step_s: int, since: float, until: float) -> None:
    """Merge the rows of `[since, until)` into steps of Unix time, one row each.

    Args:
        transaction: to write in.
        run: its id.
        step_s: the length of a step, in seconds; a multiple of earlier steps.
        since: the start, in Unix time.
        until: the end; an incomplete step is left as it is.
    """
    rows = transaction.select(
        "SELECT second, seconds, outcomes, published, sent, published_sent FROM series"
        " WHERE run = ? AND second >= ? AND second < ? ORDER BY second",
        run, max(0, int(since // step_s) * step_s), int(until // step_s) * step_s,
    )  # fmt: skip
    steps: dict[int, tuple[list[int], list[int]]] = {}
    for row in rows:
        at = row["second"] // step_s * step_s
        counts, published = steps.get(at, (_NOTHING, _NOTHING))
        steps[at] = (
            add_counts(counts, (*decode_counts(row["outcomes"]), row["sent"])),
            add_counts(published, (*decode_counts(row["published"]), row["published_sent"])),
        )
    transaction.execute_each(
        "DELETE FROM series WHERE run = ? AND second = ?", [(run, row["second"]) for row in rows]
    )
    transaction.execute_each(
        "INSERT INTO series (run, second, seconds, outcomes, sent, published, published_sent)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (run, second, step_s, encode_counts(counts), sent, encode_counts(published), published_sent)
            for second, ((*counts, sent), (*published, published_sent)) in steps.items()
        ],
    )


def find_sent_until(transaction: Transaction, run: str) -> int:
    """The end of the last second in which requests were sent, in Unix time; 0 if none or unknown."""
    row = transaction.select_one(
        "SELECT max(second + seconds) AS at FROM series WHERE run = ? AND sent > 0", run
    )
    collected = (second + 1 for second, counts in transaction.seconds.get(run, {}).items() if counts[-1])
    return max([0 if row is None else row["at"] or 0, *collected])


def sum_series(transaction: Transaction, run: str) -> list[int]:
    """The outcomes of all seconds of a run together."""
    total = build_no_counts()
    for row in transaction.select("SELECT outcomes FROM series WHERE run = ?", run):
        for index, count in enumerate(decode_counts(row["outcomes"])):
            total[index] += count
    return total
