"""The history of runs in the ledger: moments, events, and what became of each lease."""

import zlib

import msgspec

from oku_coordinator.ledger import outbox_table
from oku_coordinator.ledger.outbox_table import Kind
from oku_coordinator.ledger.record import LeaseMark, LeaseState
from oku_coordinator.ledger.transaction import Transaction
from oku_core.history import MOST_MOMENTS, Event, Moment, thin_out

MOST_EVENTS = 10_000
"""Of one run; what happens more often than that is not kept here, Loki gets it all the same."""

_pack = msgspec.msgpack.Encoder().encode
_unpack_moment = msgspec.msgpack.Decoder(Moment).decode
_unpack_event = msgspec.msgpack.Decoder(Event).decode


def note(transaction: Transaction, run: str, event: Event) -> None:
    """Keep an event, and put it into the outbox."""
    kept = transaction.select("SELECT count(*) AS kept FROM events WHERE run = ?", run)[0]["kept"]
    if kept < MOST_EVENTS:
        transaction.execute("INSERT INTO events (run, body) VALUES (?, ?)", run, _pack(event))
    fields = {name: value for name, value in msgspec.to_builtins(event).items() if name != "at"}
    outbox_table.put(transaction, run, Kind.EVENT, event.at, [fields])


def keep_moment(transaction: Transaction, run: str, moment: Moment) -> None:
    """Keep a moment; when there are many, all are merged into half as many."""
    _insert_moments(transaction, run, [moment])
    kept = transaction.select("SELECT count(*) AS kept FROM moments WHERE run = ?", run)[0]["kept"]
    if kept > MOST_MOMENTS:
        thinned = thin_out(fetch_moments(transaction, run))
        transaction.execute("DELETE FROM moments WHERE run = ?", run)
        _insert_moments(transaction, run, thinned)


def fetch_moments(transaction: Transaction, run: str) -> list[Moment]:
    """The moments of a run, oldest first."""
    rows = transaction.select("SELECT body FROM moments WHERE run = ? ORDER BY at", run)
    return [_unpack_moment(zlib.decompress(row["body"])) for row in rows]


def fetch_events(transaction: Transaction, run: str) -> list[Event]:
    """The events of a run, oldest first."""
    rows = transaction.select("SELECT body FROM events WHERE run = ? ORDER BY id", run)
    return [_unpack_event(row["body"]) for row in rows]


def fetch_lease_marks(transaction: Transaction, run: str) -> list[LeaseMark]:
    """What became of the leases of a run, in the order in which they were cut."""
    rows = transaction.select(
        "SELECT start, stop, state, reason, worker, cut_at, closed_at FROM leases WHERE run = ?"
        " ORDER BY cut_at, start",
        run,
    )
    return [LeaseMark(**dict(row) | {"state": LeaseState(row["state"])}) for row in rows]


def _insert_moments(transaction: Transaction, run: str, moments: list[Moment]) -> None:
    transaction.execute_each(
        "INSERT OR REPLACE INTO moments (run, at, body) VALUES (?, ?, ?)",
        [(run, moment.at, zlib.compress(_pack(moment))) for moment in moments],
    )
