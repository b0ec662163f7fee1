"""The outbox: lines for Loki, from the moment at which they are true until Loki has taken them.

A line is entered in the transaction that makes it true, with a time that no other line of its stream has, so
that one which is sent twice is the same line.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from oku_coordinator.ledger.transaction import Transaction


class Kind(StrEnum):
    """What a line is about; docs/metrics.md says what stands in each."""

    RANGE = "range"
    STATUS = "status"
    TICK = "tick"
    LATENCY = "latency"
    WORKER = "worker"
    COVERAGE = "coverage"
    EVENT = "event"
    SUMMARY = "summary"


LASTING_KINDS = frozenset({Kind.RANGE, Kind.STATUS, Kind.EVENT, Kind.SUMMARY})
"""Lines of these are never dropped."""
LATE_NS = 3600 * 10**9
"""A line that is older than this when it is first sent goes to a stream of its own."""
_ROW_BYTES = 80
"""About what a row takes beside its line."""


@dataclass(frozen=True, kw_only=True)
class OutboxLine:
    """A line that waits.

    Attributes:
        id: its place; older ones have lower ones.
        run: whose.
        name: of that run, empty when it has none.
        kind: what it is about.
        at_ns: its time, Unix time in ns.
        text: the line.
        is_late: whether it goes to the stream of late lines.
    """

    id: int
    run: str
    name: str
    kind: Kind
    at_ns: int
    text: str
    is_late: bool


@dataclass(frozen=True, kw_only=True)
class OutboxSize:
    """How much waits: lines, and bytes that they take in the ledger, about."""

    lines: int
    bytes: int


def put(
    transaction: Transaction, run: str, kind: Kind, at: float, lines: Iterable[Mapping[str, Any]]
) -> None:
    """Enter lines of one moment, each an object; fields that are None are left out. Nothing for a run that
    is not published.
    """
    row = transaction.select_one("SELECT is_published FROM runs WHERE run = ?", run)
    if row is None or not row["is_published"]:
        return
    clock = transaction.select_one("SELECT last_ns FROM clocks WHERE run = ? AND kind = ?", run, kind)
    before_ns = first_ns = max(int(at * 1e9), clock["last_ns"] + 1 if clock else 0)
    rows: list[tuple[str, Kind, int, str]] = []
    for line in lines:
        text = msgspec.json.encode({name: value for name, value in line.items() if value is not None})
        rows.append((run, kind, first_ns, text.decode()))
        first_ns += 1
    if first_ns == before_ns:
        return
    transaction.execute_each("INSERT INTO outbox (run, kind, at_ns, line) VALUES (?, ?, ?, ?)", rows)
    _change_size(transaction, len(rows), sum(len(text) for _, _, _, text in rows))
    transaction.execute(
        "INSERT INTO clocks (run, kind, last_ns) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET last_ns = excluded.last_ns",
        run, kind, first_ns - 1,
    )  # fmt: skip


def take_batch(transaction: Transaction, most_lines: int, most_bytes: int, now: float) -> list[OutboxLine]:
    """The oldest lines, one at least if there is any; into which stream they go is decided with this."""
    rows = transaction.select(
        "SELECT id, runs.run, name, kind, at_ns, line, is_late FROM outbox JOIN runs USING (run)"
        " ORDER BY id LIMIT ?",
        most_lines,
    )
    now_ns, size = int(now * 1e9), 0
    batch: list[OutboxLine] = []
    for row in rows:
        size += len(row["line"])
        if batch and size > most_bytes:
            break
        is_late = now_ns - row["at_ns"] > LATE_NS if row["is_late"] is None else bool(row["is_late"])
        batch.append(
            OutboxLine(
                id=row["id"],
                run=row["run"],
                name=row["name"],
                kind=Kind(row["kind"]),
                at_ns=row["at_ns"],
                text=row["line"],
                is_late=is_late,
            )
        )
    transaction.execute_each(
        "UPDATE outbox SET is_late = ? WHERE id = ? AND is_late IS NULL",
        [(line.is_late, line.id) for line in batch],
    )
    return batch


def remove(transaction: Transaction, lines: Sequence[OutboxLine]) -> None:
    """These lines are no longer needed; some of them may have been dropped already."""
    gone = [line for line in lines if transaction.execute("DELETE FROM outbox WHERE id = ?", line.id)]
    _change_size(transaction, -len(gone), -sum(len(line.text) for line in gone))


def measure(transaction: Transaction) -> OutboxSize:
    """How much waits."""
    row = transaction.select("SELECT lines, bytes FROM outbox_size")[0]
    return OutboxSize(lines=row["lines"], bytes=row["bytes"])


def drop_oldest(transaction: Transaction, most_bytes: int) -> dict[str, int]:
    """Drop the oldest lines that may be lost until the rest takes at most `most_bytes`; how many, by run."""
    excess = measure(transaction).bytes - most_bytes
    lasting = msgspec.json.encode(sorted(LASTING_KINDS)).decode()
    dropped: dict[str, int] = {}
    characters = 0
    while excess > 0:
        rows = transaction.select(
            "SELECT id, run, length(line) AS size FROM outbox"
            " WHERE kind NOT IN (SELECT value FROM json_each(?)) ORDER BY id LIMIT 1000",
            lasting,
        )
        if not rows:
            break
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
