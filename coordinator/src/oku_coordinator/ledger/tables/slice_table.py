"""The slices of a run in the ledger: the current partition of its request space."""

import math
import sqlite3
from collections import deque
from collections.abc import Iterable, Sequence

from oku_coordinator.ledger.storage.records import BreachError
from oku_coordinator.ledger.storage.row_tally import move_covered
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_core.accounting.index_ranges import Range
from oku_core.accounting.interval import ConservationError, Lengths, Slice, SliceState, build_partition
from oku_core.spec.spec import OPEN_END

_PAGE = 500
"""Slices in one read, at most."""
_FIRST_PAGE = 4
"""A changing slice, its neighbours, and one more, which shows that these are all."""


def insert_slices(transaction: Transaction, run: str, slices: Iterable[Slice]) -> None:
    """Store slices; `BreachError` if two have the same start."""
    rows = [(run, *piece) for piece in slices]
    try:
        transaction.execute_each("INSERT INTO slices (run, start, stop, state) VALUES (?, ?, ?, ?)", rows)
    except sqlite3.IntegrityError as error:
        raise BreachError(run, f"two slices start at the same index: {error}") from error


def fetch_slices(transaction: Transaction, run: str) -> list[Slice]:
    """The current slices of a run; `BreachError` if a state is unknown."""
    rows = transaction.select("SELECT start, stop, state FROM slices WHERE run = ? ORDER BY start", run)
    return _build_slices(run, rows)


def fetch_some_slices(transaction: Transaction, run: str, start: int, most: int) -> list[Slice]:
    """The first slices that start at `start` or later, at most `most`."""
    rows = transaction.select(
        "SELECT start, stop, state FROM slices WHERE run = ? AND start >= ? ORDER BY start LIMIT ?",
        run, start, most,
    )  # fmt: skip
    return _build_slices(run, rows)


def sum_lengths(transaction: Transaction, run: str) -> Lengths:
    """How much is in each state, unchecked; covered positions of open leases are accounted."""
    if tally := transaction.tallies.get(run):
        return tally.lengths
    rows = transaction.select(
        "SELECT state, sum(stop - start) AS length FROM slices WHERE run = ? GROUP BY state", run
    )
    lengths = {row["state"]: row["length"] for row in rows}
    covered = transaction.select(
        "SELECT coalesce(sum(covered), 0) FROM leases WHERE run = ? AND state = 'active'", run
    )
    sums = Lengths(*(lengths.get(state, 0) for state in Lengths._fields))
    return move_covered(sums, covered[0][0])


def count_pending(transaction: Transaction, run: str) -> int:
    """The number of pending requests of a run."""
    return sum_lengths(transaction, run).pending


def fetch_extent(transaction: Transaction, run: str, requests: int) -> int:
    """The index after the last one ever dealt, for a run that may not use all of them.

    Args:
        transaction: to read in.
        run: its id.
        requests: how many the run has; the result if it uses all of them.
    """
    row = transaction.select_one(
        "SELECT max(stop) AS extent FROM slices WHERE run = ? AND state IN ('leased', 'accounted')", run
    )
    dealt = row["extent"] or 0 if row else 0
    unused = transaction.select_one("SELECT 1 FROM slices WHERE run = ? AND state = 'unused' LIMIT 1", run)
    return dealt if unused or requests == OPEN_END else requests


class PendingSupply:
    """The pending indices of a run, leased from the first one on.

    Slices are written at the end, by `write`: many leases from one slice change it only once.
    """

    def __init__(self, transaction: Transaction, run: str) -> None:
        self._transaction = transaction
        self._run = run
        self._page: deque[Range] = deque()
        self._read_to = -1
        self._start, self._stop = 0, 0
        self._emptied: list[tuple[str, int]] = []
        self._leased: list[Slice] = []

    def lease(self, size: int, most_ranges: int) -> list[Range]:
        """Lease the first `size` pending indices, or fewer, in at most `most_ranges` ranges."""
        ranges: list[Range] = []
        while size > 0 and self._has_more():
            if ranges and ranges[-1][1] == self._start:
                begin = ranges.pop()[0]  # adjacent slices make one range
            elif len(ranges) == most_ranges:
                break
            else:
                begin = self._start
            stop = min(self._stop, self._start + size)
            size -= stop - self._start
            self._start = stop
            ranges.append((begin, stop))
        self._leased += [Slice(start, stop, SliceState.LEASED) for start, stop in ranges]
        return ranges

    def _has_more(self) -> bool:
        if self._start < self._stop:
            return True
        if not self._page:
            rows = self._transaction.select(
                # The index is named because SQLite would scan all slices in their order.
                "SELECT start, stop FROM slices INDEXED BY pending_slices"
                " WHERE run = ? AND state = 'pending' AND start > ? ORDER BY start LIMIT ?",
                self._run, self._read_to, _PAGE,
            )  # fmt: skip
            self._page.extend((row["start"], row["stop"]) for row in rows)
        if not self._page:
            return False
        self._start, self._stop = self._page.popleft()
        self._read_to = self._start
        self._emptied.append((self._run, self._start))
        return True

    def write(self) -> None:
        """Write the leased slices and the rest of the last one."""
        self._transaction.execute_each("DELETE FROM slices WHERE run = ? AND start = ?", self._emptied)
        rest = Slice(self._start, self._stop, SliceState.PENDING)
        insert_slices(self._transaction, self._run, [*self._leased, *([rest] if rest.length else [])])
        if self._leased:
            self._transaction.touched.add(self._run)


def fetch_pending(transaction: Transaction, run: str, stop: int) -> list[Range]:
    """The pending slices of a run that start below `stop`, cut there."""
    rows = transaction.select(
        "SELECT start, stop FROM slices INDEXED BY pending_slices"
        " WHERE run = ? AND state = 'pending' AND start < ? ORDER BY start",
        run, stop,
    )  # fmt: skip
    return [(row["start"], min(stop, row["stop"])) for row in rows]


def is_accounted(transaction: Transaction, run: str, start: int, stop: int) -> bool:
    """Whether the indices `[start, stop)` of a run are in accounted slices."""
    row = transaction.select_one(
        "SELECT stop, state FROM slices WHERE run = ? AND start <= ? ORDER BY start DESC LIMIT 1", run, start
    )
    # Adjacent slices of one state are joined.
    return row is not None and row["stop"] >= stop and row["state"] == SliceState.ACCOUNTED


def replace_pending(transaction: Transaction, run: str, pieces: Sequence[Slice]) -> None:
    """Replace parts of pending slices, joining the new ones with their neighbours.

    Args:
        transaction: to write in.
        run: its id.
        pieces: the new slices, in rising order.

    Raises:
        BreachError: one of them does not lie within a pending slice.
    """
    if not pieces:
        return
    transaction.touched.add(run)
    before = _fetch_between(transaction, run, pieces[0].start, pieces[-1].stop)
    after: list[Slice] = []
    left = deque(pieces)
    for start, stop, state in before:
        at = start
        while left and state == SliceState.PENDING and at <= left[0].start and left[0].stop <= stop:
            piece = left.popleft()
            after += [Slice(at, piece.start, state), piece]
            at = piece.stop
        after.append(Slice(at, stop, state))
    if left:
        raise BreachError(run, f"the slice [{left[0].start}, {left[0].stop}) is not pending")
    _write_changes(transaction, run, before, after)


def _fetch_between(transaction: Transaction, run: str, start: int, stop: int) -> list[Slice]:
    """The slices that contain the indices `[start, stop)`, and their neighbours."""
    rows = transaction.select(
        "SELECT * FROM (SELECT start, stop, state FROM slices WHERE run = ?1 AND start <= ?2"
        " ORDER BY start DESC LIMIT 2)"
        " UNION ALL SELECT start, stop, state FROM slices WHERE run = ?1 AND start > ?2 AND start <= ?3"
        " ORDER BY start",
        run, start, stop,
    )  # fmt: skip
    return _build_slices(run, rows)


def replace_leased(
    transaction: Transaction, run: str, changes: Iterable[tuple[Range, Sequence[Slice]]]
) -> None:
    """Replace leased slices by pieces, joining these with their neighbours.

    Args:
        transaction: to write in.
        run: its id.
        changes: leased slices `[start, stop)` in rising order, each with its pieces.

    Raises:
        BreachError: there is no such slice, or it is not leased.
    """
    left = deque(changes)
    if left:
        transaction.touched.add(run)
    page = _FIRST_PAGE
    while left:
        # Other slices may lie between the changing ones, so their number is only known now.
        before = _fetch_around(transaction, run, left[0][0][0], page)
        edge = before[-1].start if len(before) == page else math.inf
        replaced = dict[Range, Sequence[Slice]]()
        while left and (not replaced or left[0][0][1] < edge):
            leased, pieces = left.popleft()
            replaced[leased] = pieces
        _rewrite(transaction, run, before, replaced)
        page = min(_PAGE, 2 * page) if 4 * len(replaced) >= page else _FIRST_PAGE


def account_pending(transaction: Transaction, run: str, start: int, stop: int) -> list[Range]:
    """Account the pending parts of a range `[start, stop)`; returns these parts."""
    accounted: list[Range] = []
    page = _FIRST_PAGE
    while start < stop:
        before = _fetch_around(transaction, run, start, page)
        # The last one of a full page may join with its neighbour: it is left to the next page.
        edge = min(stop, before[-1].start) if len(before) == page else stop
        after = [piece for each in before for piece in _account(each, start, edge)]
        for piece in before:
            begin, end = max(start, piece.start), min(edge, piece.stop)
            if piece.state == SliceState.PENDING and begin < end:
                accounted.append((begin, end))
        _write_changes(transaction, run, before, after)
        start, page = edge, min(_PAGE, 2 * page)
    if accounted:
        transaction.touched.add(run)
    return accounted


def _account(piece: Slice, start: int, stop: int) -> Sequence[Slice]:
    """The pieces of a slice after the pending part of a range is accounted."""
    begin, end = max(start, piece.start), min(stop, piece.stop)
    if piece.state != SliceState.PENDING or begin >= end:
        return [piece]
    return [
        Slice(piece.start, begin, SliceState.PENDING),
        Slice(begin, end, SliceState.ACCOUNTED),
        Slice(end, piece.stop, SliceState.PENDING),
    ]


def mark_pending_unused(transaction: Transaction, run: str) -> None:
    """Mark all pending slices as unused."""
    transaction.execute("UPDATE slices SET state = 'unused' WHERE run = ? AND state = 'pending'", run)
    transaction.touched.add(run)


def _fetch_around(transaction: Transaction, run: str, start: int, most: int) -> list[Slice]:
    """The slice before `start`, the one that starts there, and the following ones; `most` in all."""
    rows = transaction.select(
        "SELECT start, stop, state FROM slices WHERE run = ?1 AND start >= coalesce("
        " (SELECT max(start) FROM slices WHERE run = ?1 AND start < ?2), ?2) ORDER BY start LIMIT ?3",
        run, start, most,
    )  # fmt: skip
    return _build_slices(run, rows)


def _rewrite(
    transaction: Transaction, run: str, before: Sequence[Slice], replaced: dict[Range, Sequence[Slice]]
) -> None:
    """Write adjacent slices after some are replaced."""
    after: list[Slice] = []
    for piece in before:
        leased = piece.start, piece.stop
        if piece.state == SliceState.LEASED and leased in replaced:
            after += replaced.pop(leased)
        else:
            after.append(piece)
    for start, stop in replaced:
        raise BreachError(run, f"a lease of [{start}, {stop}) is open, but its range is not leased")
    _write_changes(transaction, run, before, after)


def _write_changes(
    transaction: Transaction, run: str, before: Sequence[Slice], after: Sequence[Slice]
) -> None:
    """Replace adjacent slices, joining them where possible."""
    try:
        joined = build_partition(after)
    except ConservationError as error:
        raise BreachError(run, str(error)) from error
    kept = set(before) & set(joined)
    transaction.execute_each(
        "DELETE FROM slices WHERE run = ? AND start = ?",
        [(run, piece.start) for piece in before if piece not in kept],
    )
    insert_slices(transaction, run, [piece for piece in joined if piece not in kept])


def _build_slices(run: str, rows: Iterable[sqlite3.Row]) -> list[Slice]:
    try:
        return [Slice(start, stop, SliceState(state)) for start, stop, state in rows]
    except ValueError as error:
        raise BreachError(run, f"a slice cannot be read: {error}") from error
