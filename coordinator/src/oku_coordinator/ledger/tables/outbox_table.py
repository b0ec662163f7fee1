"""The outbox: lines for Loki, from the transaction that makes them true until Loki has stored them.

A line has a unique time in its stream, so Loki recognises a line that is sent twice.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from oku_coordinator.ledger.storage.transaction import Transaction
from oku_core.results.lines import LineKind

LATE_NS = 3600 * 10**9
"""A line this much older than the newest of its stream, or than now, goes to the late stream."""
FUTURE_NS = 60 * 10**9
"""A line this far ahead got its time from a clock that has been set back since."""
_ROW_BYTES = 80
"""The approximate size of a row beside its line."""
_DROPPED_AT_ONCE = 1000


@dataclass(frozen=True, kw_only=True)
class OutboxLine:
    """A line that waits for Loki.

    Attributes:
        id: its place in the order of lines, the oldest first.
        run: the run that it is about.
        name: the name of that run; empty if it has none.
        kind: its kind.
        at_ns: its Unix time in ns.
        text: the line itself.
        is_late: whether it goes to the late stream.
    """

    id: int
    run: str
    name: str
    kind: LineKind
    at_ns: int
    text: str
    is_late: bool


@dataclass(frozen=True, kw_only=True)
class OutboxSize:
    """The number of waiting lines, and about how many bytes they take in the ledger."""

    lines: int
    bytes: int


def put(
    transaction: Transaction, run: str, kind: LineKind, at: float, lines: Iterable[Mapping[str, Any]]
) -> None:
    """Enter lines of one instant, each an object; fields that are None are left out.

    Does nothing for a run that is not published.
    """
    if not is_published(transaction, run):
        return
    stream = transaction.select_one("SELECT last_ns FROM streams WHERE run = ? AND kind = ?", run, kind)
    first_ns = int(at * 1e9)
    if stream and first_ns <= stream["last_ns"] <= first_ns + FUTURE_NS:
        first_ns = stream["last_ns"] + 1
    entered = enter(transaction, run, kind, enumerate(lines, first_ns))
    if not entered:
        return
    first_ns += entered
    transaction.execute(
        "INSERT INTO streams (run, kind, last_ns) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET last_ns = excluded.last_ns",
        run, kind, first_ns - 1,
    )  # fmt: skip


def enter(
    transaction: Transaction, run: str, kind: LineKind, lines: Iterable[tuple[int, Mapping[str, Any]]]
) -> int:
    """Enter lines with their times in ns, which are unique in their stream; returns their number."""
    rows = [(run, kind, at_ns, _encode(line)) for at_ns, line in lines]
    transaction.execute_each("INSERT INTO outbox (run, kind, at_ns, line) VALUES (?, ?, ?, ?)", rows)
    _change_size(transaction, len(rows), sum(len(text) for _, _, _, text in rows))
    return len(rows)


def is_published(transaction: Transaction, run: str) -> bool:
    """Whether lines of a run are stored for Loki."""
    row = transaction.select_one("SELECT is_published FROM runs WHERE run = ?", run)
    return row is not None and bool(row["is_published"])


def _encode(line: Mapping[str, Any]) -> str:
    return msgspec.json.encode({name: value for name, value in line.items() if value is not None}).decode()


def fetch_batch(
    transaction: Transaction, most_lines: int, most_bytes: int, now: float, wall_ahead_s: float = 0.0
) -> list[OutboxLine]:
    """The oldest lines, at least one if there is any.

    On its first fetch, a line gets its time by the wall clock and its stream. It keeps both unless the wall
    clock is set back behind it.

    Args:
        transaction: to change the lines in.
        most_lines: the largest number of lines.
        most_bytes: the largest size of all lines together.
        now: Unix time by the clock that gave the lines their times.
        wall_ahead_s: how far the wall clock is ahead of that one.
    """
    rows = transaction.select(
        "SELECT id, runs.run, name, kind, at_ns, sent_ns, line, is_late FROM outbox JOIN runs USING (run)"
        " ORDER BY id LIMIT ?",
        most_lines,
    )
    stamps = _Stamps(transaction, now, wall_ahead_s)
    size = 0
    batch: list[OutboxLine] = []
    for row in rows:
        size += len(row["line"])
        if batch and size > most_bytes:
            break
        at_ns, is_late = stamps.stamp(row)
        batch.append(
            OutboxLine(
                id=row["id"],
                run=row["run"],
                name=row["name"],
                kind=LineKind(row["kind"]),
                at_ns=at_ns,
                text=row["line"],
                is_late=is_late,
            )
        )
    transaction.execute_each(
        "UPDATE outbox SET is_late = ?, sent_ns = ? WHERE id = ?",
        stamps.list_changed(),
    )
    stamps.keep_newest()
    return batch


class _Stamps:
    """Gives lines their times by the wall clock, and finds the ones that are too old for their stream."""

    def __init__(self, transaction: Transaction, now: float, wall_ahead_s: float) -> None:
        self._transaction = transaction
        self._ahead_ns = int(wall_ahead_s * 1e9)
        self._now_ns = int(now * 1e9) + self._ahead_ns
        self._newest_ns: dict[tuple[str, str], int] = {}
        """The newest time in each stream but the late one."""
        self._changed: list[tuple[bool, int, int]] = []

    def stamp(self, row: sqlite3.Row) -> tuple[int, bool]:
        latest_ns = self._now_ns + FUTURE_NS
        if row["sent_ns"] is not None and row["sent_ns"] <= latest_ns:
            return row["sent_ns"], bool(row["is_late"])
        at_ns = row["at_ns"] + self._ahead_ns
        if at_ns > latest_ns:
            # Another process gave it a time by a fast clock. The added number keeps lines apart.
            at_ns = self._now_ns + len(self._changed)
        newest_ns = self._fetch_newest(row)
        is_late = max(self._now_ns, newest_ns) - at_ns > LATE_NS
        if not is_late:
            self._newest_ns[row["run"], row["kind"]] = max(newest_ns, at_ns)
        self._changed.append((is_late, at_ns, row["id"]))
        return at_ns, is_late

    def list_changed(self) -> list[tuple[bool, int, int]]:
        """Lateness, time and id of each line that was stamped."""
        return self._changed

    def keep_newest(self) -> None:
        self._transaction.execute_each(
            "UPDATE streams SET newest_ns = ? WHERE run = ? AND kind = ?",
            [(newest_ns, run, kind) for (run, kind), newest_ns in self._newest_ns.items()],
        )

    def _fetch_newest(self, row: sqlite3.Row) -> int:
        stream = row["run"], row["kind"]
        if stream not in self._newest_ns:
            kept = self._transaction.select_one(
                "SELECT newest_ns FROM streams WHERE run = ? AND kind = ?", *stream
            )
            self._newest_ns[stream] = kept["newest_ns"] if kept else 0
        return self._newest_ns[stream]


def remove(transaction: Transaction, lines: Sequence[OutboxLine]) -> None:
    """Remove lines; some may have been dropped already."""
    gone = [line for line in lines if transaction.execute("DELETE FROM outbox WHERE id = ?", line.id)]
    _change_size(transaction, -len(gone), -sum(len(line.text) for line in gone))


def remove_some(transaction: Transaction, run: str, most: int) -> int:
    """Remove at most this many lines of a run, of any kind; returns their number."""
    rows = transaction.select(
        "SELECT id, length(line) AS size FROM outbox INDEXED BY outbox_of_runs WHERE run = ? LIMIT ?",
        run, most,
    )  # fmt: skip
    transaction.execute_each("DELETE FROM outbox WHERE id = ?", [(row["id"],) for row in rows])
    _change_size(transaction, -len(rows), -sum(row["size"] for row in rows))
    return len(rows)


def count_lines(transaction: Transaction, run: str) -> int:
    """The number of waiting lines of a run."""
    rows = transaction.select("SELECT count(*) FROM outbox INDEXED BY outbox_of_runs WHERE run = ?", run)
    return int(rows[0][0])


def measure(transaction: Transaction) -> OutboxSize:
    """Measure the size of the outbox."""
    row = transaction.select("SELECT lines, bytes FROM outbox_size")[0]
    return OutboxSize(lines=row["lines"], bytes=row["bytes"])


def drop_oldest(transaction: Transaction, most_bytes: int) -> dict[str, int]:
    """Drop some of the oldest droppable lines, until the rest takes at most `most_bytes`.

    Returns the number of dropped lines by run; an empty mapping if there is nothing more to drop.
    """
    excess = measure(transaction).bytes - most_bytes
    if excess <= 0:
        return {}
    # The index is named because SQLite would read the lines that are never dropped, which may be many.
    rows = transaction.select(
        "SELECT id, run, length(line) AS size FROM outbox INDEXED BY losable_lines"
        " WHERE kind IN ('latency', 'worker', 'coverage') ORDER BY id LIMIT ?",
        _DROPPED_AT_ONCE,
    )
    dropped: dict[str, int] = {}
    characters = 0
    for row in rows:
        if excess <= 0:
            break
        transaction.execute("DELETE FROM outbox WHERE id = ?", row["id"])
        excess -= row["size"] + _ROW_BYTES
        characters += row["size"]
        dropped[row["run"]] = dropped.get(row["run"], 0) + 1
    _change_size(transaction, -sum(dropped.values()), -characters)
    return dropped


def _change_size(transaction: Transaction, lines: int, characters: int) -> None:
    transaction.execute(
        "UPDATE outbox_size SET lines = lines + ?, bytes = bytes + ?", lines, characters + _ROW_BYTES * lines
    )
