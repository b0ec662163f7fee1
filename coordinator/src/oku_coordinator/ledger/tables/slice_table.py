"""The slices of a run in the ledger: how its request space is cut now."""

import sqlite3
from collections.abc import Iterable, Sequence

from oku_coordinator.ledger.storage.records import BreachError
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_core.accounting.interval import ConservationError, Lengths, Slice, SliceState, build_partition, cut


def insert_slices(transaction: Transaction, run: str, slices: Iterable[Slice]) -> None:
    """Store slices; `BreachError` when one of them begins where another one does."""
    rows = [(run, *piece) for piece in slices]
    try:
        transaction.execute_each("INSERT INTO slices (run, start, stop, state) VALUES (?, ?, ?, ?)", rows)
    except sqlite3.IntegrityError as error:
        raise BreachError(run, f"two slices begin at one index: {error}") from error


def fetch_slices(transaction: Transaction, run: str) -> list[Slice]:
    """The request space of a run as it is cut now; `BreachError` when a state is unknown."""
    rows = transaction.select("SELECT start, stop, state FROM slices WHERE run = ? ORDER BY start", run)
    return _build_slices(run, rows)


def fetch_some_slices(transaction: Transaction, run: str, start: int, most: int) -> list[Slice]:
    """The first slices that begin at `start` or later, `most` of them or fewer."""
    rows = transaction.select(
        "SELECT start, stop, state FROM slices WHERE run = ? AND start >= ? ORDER BY start LIMIT ?",
        run, start, most,
    )  # fmt: skip
    return _build_slices(run, rows)


def sum_lengths(transaction: Transaction, run: str) -> Lengths:
    """How much is in each state, unchecked."""
    if tally := transaction.tallies.get(run):
        return tally.lengths
    rows = transaction.select(
        "SELECT state, sum(stop - start) AS length FROM slices WHERE run = ? GROUP BY state", run
    )
    lengths = {row["state"]: row["length"] for row in rows}
    return Lengths(
        pending=lengths.get(SliceState.PENDING, 0),
        leased=lengths.get(SliceState.LEASED, 0),
        accounted=lengths.get(SliceState.ACCOUNTED, 0),
    )


def cut_first_pending(transaction: Transaction, run: str, size: int) -> Slice | None:
    """Lease the first `size` pending indices, or fewer; None when none is pending."""
    row = transaction.select_one(
        # The index is named because SQLite would go through all slices in their order.
        "SELECT start, stop FROM slices INDEXED BY pending_slices"
        " WHERE run = ? AND state = 'pending' ORDER BY start LIMIT 1",
        run,
    )
    if row is None:
        return None
    pieces = cut(Slice(row["start"], row["stop"], SliceState.PENDING), size)
    transaction.execute("DELETE FROM slices WHERE run = ? AND start = ?", run, row["start"])
    insert_slices(transaction, run, pieces)
    transaction.touched.add(run)
    return pieces[0]


def replace_leased(
    transaction: Transaction, run: str, leased: tuple[int, int], pieces: Sequence[Slice]
) -> None:
    """Put `pieces` in the place of the leased slice `[start, stop)`, joined with its neighbours.

    Raises:
        BreachError: there is no such slice, or it is not leased.
    """
    start, stop = leased
    rows = transaction.select(
        "SELECT start, stop, state FROM slices WHERE run = ?1 AND start >= coalesce("
        " (SELECT max(start) FROM slices WHERE run = ?1 AND start < ?2), ?2) AND start <= ?3 ORDER BY start",
        run, start, stop,
    )  # fmt: skip
    around = _build_slices(run, rows)
    before = [piece for piece in around if piece.stop <= start]
    after = [piece for piece in around if piece.start >= stop]
    if around != [*before, Slice(start, stop, SliceState.LEASED), *after]:
        raise BreachError(run, f"a lease of [{start}, {stop}) is active, but its range is not leased")
    transaction.execute_each(
        "DELETE FROM slices WHERE run = ? AND start = ?", [(run, piece.start) for piece in around]
    )
    try:
        joined = build_partition([*before, *pieces, *after])
    except ConservationError as error:
        raise BreachError(run, str(error)) from error
    insert_slices(transaction, run, joined)
    transaction.touched.add(run)


def _build_slices(run: str, rows: Iterable[sqlite3.Row]) -> list[Slice]:
    try:
        return [Slice(start, stop, SliceState(state)) for start, stop, state in rows]
    except ValueError as error:
        raise BreachError(run, f"a slice cannot be read: {error}") from error
