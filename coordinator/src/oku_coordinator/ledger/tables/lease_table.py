"""The rows of leases in the ledger, with their additional ranges and parts."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from oku_coordinator.ledger.storage.lease_records import (
    GROWING_COLUMNS,
    GROWING_MARKS,
    LeaseOrder,
    LeaseRecord,
    build_lease_record,
    encode_growth,
)
from oku_coordinator.ledger.storage.records import BreachError, UnknownRunError, breaching
from oku_coordinator.ledger.storage.run_account import PartName
from oku_coordinator.ledger.storage.schedule_records import PieceOrder
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables.accounts.inner_table import drop_inner_parts
from oku_coordinator.ledger.tables.run_table import fetch_state
from oku_coordinator.ledger.tables.slice_table import PendingSupply, replace_pending, sum_lengths
from oku_core.accounting.index_ranges import IndexRanges, Range
from oku_core.accounting.interval import Slice, SliceState
from oku_core.accounting.lease_state import LeaseState
from oku_core.accounting.run_state import FINAL_STATES, RunState
from oku_core.messaging.checkpoint import Part
from oku_core.messaging.lease import MOST_RANGES, build_lease_id

_COLUMNS = "leases.*, (SELECT ranges FROM lease_ranges WHERE lease = leases.id) AS ranges"
_pack = msgspec.msgpack.Encoder().encode
_unpack_part = msgspec.msgpack.Decoder(Part).decode


def deal_leases(
    transaction: Transaction, run: str, orders: Iterable[LeaseOrder], now: float
) -> list[LeaseRecord]:
    """Lease the first pending indices of a run, one order after the other; none if it is not running.

    The limits of the leases of one process sum to its allowance at most; earlier leases go first.

    Raises:
        UnknownRunError: there is no such run.
    """
    state = fetch_state(transaction, run)
    if state is None:
        raise UnknownRunError(run)
    if state != RunState.RUNNING:
        return []
    pending = sum_lengths(transaction, run).pending
    number = transaction.select("SELECT leases_cut FROM runs WHERE run = ?", run)[0]["leases_cut"]
    supply = PendingSupply(transaction, run)
    leases: list[LeaseRecord] = []
    taken = Counter[str]()
    for order in orders:
        if pending == 0:
            break
        ranges = IndexRanges(supply.lease(min(order.size, pending), MOST_RANGES))
        if not ranges.length:
            continue
        pending -= ranges.length
        number += 1
        limit = min(max(0, order.allowance - taken[order.incarnation]), ranges.length)
        taken[order.incarnation] += limit
        lease = LeaseRecord(
            id=build_lease_id(run, number), run=run, ranges=ranges, worker=order.worker,
            incarnation=order.incarnation, cut_at=now, end=ranges.length,
            reported_end=ranges.length, limit=limit,
        )  # fmt: skip
        leases.append(lease)
    supply.write()
    _insert_leases(transaction, leases)
    transaction.execute("UPDATE runs SET leases_cut = ? WHERE run = ?", number, run)
    return leases


def deal_pieces(
    transaction: Transaction, run: str, orders: Sequence[PieceOrder], now: float
) -> list[LeaseRecord]:
    """Lease pending pieces of waves; each may be taken as a whole at once."""
    number = transaction.select("SELECT leases_cut FROM runs WHERE run = ?", run)[0]["leases_cut"]
    leases = []
    for order in orders:
        number += 1
        ranges = IndexRanges(order.ranges)
        lease = LeaseRecord(
            id=build_lease_id(run, number), run=run, ranges=ranges, worker=order.worker,
            incarnation=order.incarnation, cut_at=now, end=ranges.length,
            reported_end=ranges.length, limit=ranges.length,
            wave=order.wave, lane=order.lane,
        )  # fmt: skip
        leases.append(lease)
    pieces = [Slice(*piece, SliceState.LEASED) for lease in leases for piece in lease.ranges.ranges]
    replace_pending(transaction, run, sorted(pieces))
    _insert_leases(transaction, leases)
    transaction.execute("UPDATE runs SET leases_cut = ? WHERE run = ?", number, run)
    return leases


def _insert_leases(transaction: Transaction, leases: Sequence[LeaseRecord]) -> None:
    transaction.execute_each(
        "INSERT INTO lease_ranges (lease, run, ranges) VALUES (?, ?, ?)",
        [
            (lease.id, lease.run, msgspec.json.encode(lease.ranges.ranges).decode())
            for lease in leases
            if len(lease.ranges.ranges) > 1
        ],
    )
    transaction.execute_each(
        "INSERT INTO leases (id, run, start, stop, length, worker, incarnation, state, cut_at, covered,"  # noqa: S608  # ours
        f" wave, lane, {GROWING_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {GROWING_MARKS})",
        [
            (
                lease.id, lease.run, lease.start, lease.stop, lease.length, lease.worker, lease.incarnation,
                lease.state, lease.cut_at, lease.covered, lease.wave, lease.lane, *encode_growth(lease),
            )
            for lease in leases
        ],
    )  # fmt: skip


def find_lease(transaction: Transaction, name: str) -> LeaseRecord | None:
    """A lease in any state; None if there is no such lease.

    Also None if it is unreadable and its run is over: the run has failed because of it, and callers must not
    repeat that.

    Raises:
        BreachError: it is unreadable, and its run is not over.
    """
    for tally in transaction.tallies.values():
        if lease := tally.leases.get(name):
            return lease
    row = transaction.select_one(
        # The leases of a run that is being deleted no longer count.
        f"SELECT {_COLUMNS} FROM leases JOIN runs USING (run) WHERE id = ?",  # noqa: S608  # names of our own
        name,
    )
    if row is None:
        return None
    try:
        return build_lease_record(row)
    except BreachError:
        if fetch_state(transaction, row["run"]) in FINAL_STATES:
            return None
        raise


def fetch_open_leases(transaction: Transaction, run: str) -> list[LeaseRecord]:
    """The open leases of a run, in the order in which they were dealt."""
    if tally := transaction.tallies.get(run):
        return list(tally.leases.values())
    return read_open_leases(transaction, run)


def fetch_fleet(transaction: Transaction, run: str) -> dict[str, list[LeaseRecord]]:
    """The open leases of a run by process, each in the order of work."""
    if tally := transaction.tallies.get(run):
        return {incarnation: list(leases.values()) for incarnation, leases in tally.fleet.items()}
    fleet: dict[str, list[LeaseRecord]] = {}
    for lease in read_open_leases(transaction, run):
        fleet.setdefault(lease.incarnation, []).append(lease)
    return fleet


def fetch_held(
    transaction: Transaction, run: str, incarnations: Iterable[str]
) -> dict[str, list[LeaseRecord]]:
    """The open leases of each of these processes, in the order of work."""
    if tally := transaction.tallies.get(run):
        return {each: list(tally.fleet.get(each, {}).values()) for each in incarnations}
    fleet = fetch_fleet(transaction, run)
    return {each: fleet.get(each, []) for each in incarnations}


def read_open_leases(transaction: Transaction, run: str) -> list[LeaseRecord]:
    """The open leases of a run from its rows, without the tally; ordered by id.

    Raises:
        BreachError: a row contradicts itself.
    """
    rows = transaction.select(
        f"SELECT {_COLUMNS} FROM leases WHERE run = ? AND state = 'active' ORDER BY id",  # noqa: S608  # ours
        run,
    )
    leases = [build_lease_record(row) for row in rows]
    for lease, row in zip(leases, rows, strict=True):
        if lease.covered != row["covered"]:
            raise BreachError(run, f"lease {lease.id} covers {lease.covered}, but {row['covered']} are noted")
    return leases


def has_open_leases(transaction: Transaction, run: str) -> bool:
    """Whether a run has open leases."""
    if tally := transaction.tallies.get(run):
        return bool(tally.leases)
    return bool(transaction.select("SELECT 1 FROM leases WHERE run = ? AND state = 'active' LIMIT 1", run))


def count_held(transaction: Transaction, run: str) -> Counter[str]:
    """The number of open leases of each worker."""
    return Counter(lease.worker for lease in fetch_open_leases(transaction, run))


def find_void_leases(transaction: Transaction, leases: Iterable[str]) -> list[str]:
    """The void ones of these leases: they have expired, or their run has failed."""
    rows = transaction.select(
        "SELECT id FROM leases JOIN runs USING (run) WHERE id IN (SELECT value FROM json_each(?))"
        " AND (leases.state = 'expired' OR leases.state = 'active' AND runs.state = 'failed')",
        json.dumps(list(leases)),
    )
    return [row["id"] for row in rows]


def find_unclosed(transaction: Transaction, leases: Iterable[str]) -> set[str]:
    """The leases that their workers have not closed: they are open, or have expired."""
    rows = transaction.select(
        "SELECT id FROM leases WHERE id IN (SELECT value FROM json_each(?)) AND state != ?",
        json.dumps(list(leases)), LeaseState.CLOSED,
    )  # fmt: skip
    return {row["id"] for row in rows}


def fetch_taken_back(transaction: Transaction, run: str) -> list[Range]:
    """The ranges of a run that may have been sent in vain, `[start, stop)`; in all `resent_at_most`."""
    rows = transaction.select(
        f"SELECT {_COLUMNS} FROM leases INDEXED BY resent_leases"  # noqa: S608  # names of our own
        " WHERE run = ? AND resent > 0",
        run,
    )
    ranges: list[Range] = []
    for row in rows:
        lease = build_lease_record(row)
        at_risk = lease.list_at_risk()
        # Of a closed lease, only requests in flight may have been sent.
        ranges += at_risk if lease.state == LeaseState.EXPIRED else at_risk[: lease.sent_in_flight]
    return ranges


def fetch_resent(transaction: Transaction, run: str, incarnations: Iterable[str]) -> list[LeaseRecord]:
    """The leases of a run that expired in these processes and may have been sent in vain."""
    rows = transaction.select(
        f"SELECT {_COLUMNS} FROM leases INDEXED BY resent_leases"  # noqa: S608  # names of our own
        " WHERE run = ? AND resent > 0 AND state = 'expired'"
        " AND incarnation IN (SELECT value FROM json_each(?))",
        run, json.dumps(list(incarnations)),
    )  # fmt: skip
    return [build_lease_record(row) for row in rows]


def write_resent(transaction: Transaction, lease: LeaseRecord) -> None:
    """Write the newer knowledge about an expired lease."""
    transaction.execute(
        f"UPDATE leases SET (resent, {GROWING_COLUMNS}) = (?, {GROWING_MARKS}) WHERE id = ?",  # noqa: S608  # ours
        lease.at_risk, *encode_growth(lease), lease.id,
    )  # fmt: skip
    transaction.touched.add(lease.run)


def write_growth(transaction: Transaction, lease: LeaseRecord) -> None:
    """Write the changes of an open lease."""
    transaction.execute(
        f"UPDATE leases SET ({GROWING_COLUMNS}, covered) = ({GROWING_MARKS}, ?) WHERE id = ?",  # noqa: S608  # ours
        *encode_growth(lease), lease.covered, lease.id,
    )  # fmt: skip
    transaction.touched.add(lease.run)


def write_end(transaction: Transaction, lease: LeaseRecord, resent: int, now: float) -> None:
    """Write a lease that is no longer open; its parts are deleted.

    Args:
        transaction: to write in.
        lease: its last state.
        resent: how many of its requests may have been sent in vain.
        now: Unix time.
    """
    transaction.execute("DELETE FROM lease_parts WHERE lease = ?", lease.id)
    drop_inner_parts(transaction, lease.id)
    transaction.execute(
        f"UPDATE leases SET (state, reason, closed_at, resent, {GROWING_COLUMNS}, covered)"  # noqa: S608  # ours
        f" = (?, ?, ?, ?, {GROWING_MARKS}, ?) WHERE id = ?",
        lease.state, lease.reason, now, resent, *encode_growth(lease), lease.covered, lease.id,
    )  # fmt: skip
    transaction.touched.add(lease.run)


def fetch_parts(transaction: Transaction, lease: LeaseRecord) -> dict[PartName, Part]:
    """The parts of an open lease as of its newest checkpoint; `BreachError` if they are unreadable."""
    rows = transaction.select("SELECT phase, name, body FROM lease_parts WHERE lease = ?", lease.id)
    with breaching(lease.run):
        return {(row["phase"], row["name"]): _unpack_part(row["body"]) for row in rows}


def write_parts(transaction: Transaction, lease: LeaseRecord, parts: Iterable[Part]) -> None:
    """Replace the parts of an open lease by the newest ones."""
    transaction.execute_each(
        # Not INSERT OR REPLACE: it removes rows without triggers.
        "INSERT INTO lease_parts (lease, phase, name, run, requests, body) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET requests = excluded.requests, body = excluded.body",
        [
            (lease.id, part.phase, part.name, lease.run, sum(part.outcomes), _pack(part))
            for part in parts
        ],
    )  # fmt: skip
    transaction.touched.add(lease.run)


def sum_parts(transaction: Transaction, run: str) -> dict[str, int]:
    """The number of covered requests in the parts of each lease of a run; leases without any are left out."""
    rows = transaction.select(
        "SELECT lease, sum(requests) AS requests FROM lease_parts WHERE run = ? GROUP BY lease", run
    )
    return {row["lease"]: row["requests"] for row in rows}
