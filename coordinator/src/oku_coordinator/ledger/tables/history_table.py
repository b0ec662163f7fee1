"""The history of runs in the ledger: samples, events, and the results of leases."""

import math
import sqlite3

import msgspec

from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import outbox_table
from oku_coordinator.ledger.tables.accounts import series_table
from oku_coordinator.ledger.tables.run_table import fetch_state
from oku_core.accounting.index_ranges import Range
from oku_core.accounting.lease_state import LeaseSpan, LeaseState
from oku_core.json_reader import build_own_decoder
from oku_core.results import active_seconds
from oku_core.results.event import Event
from oku_core.results.lines import LineKind
from oku_core.results.sample import (
    MOST_SAMPLES,
    Sample,
    choose_step_s,
    decode_kept,
    encode_kept,
    merge_steps,
)
from oku_core.results.series import join_series

MOST_EVENTS = 10_000
"""Events stored of one run. Loki gets further ones all the same."""
_MOST_AT_END = 120
"""Samples searched for the time when a run ran out of requests; its last responses may take a while."""
_MERGED_AT_ONCE = 64
"""Samples merged in one step; it takes a few milliseconds."""

_pack = msgspec.msgpack.Encoder().encode
_decode_ranges = build_own_decoder(list[Range])
_unpack_event = msgspec.msgpack.Decoder(Event).decode


def record_event(transaction: Transaction, run: str, event: Event) -> None:
    """Store an event and put it into the outbox, unless its run was deleted."""
    if fetch_state(transaction, run) is None:
        return
    transaction.execute(
        "INSERT INTO histories (run, events) VALUES (?, 1) ON CONFLICT DO UPDATE SET events = events + 1", run
    )
    if _fetch_history(transaction, run)["events"] <= MOST_EVENTS:
        transaction.execute("INSERT INTO events (run, body) VALUES (?, ?)", run, _pack(event))
    fields = {name: value for name, value in msgspec.to_builtins(event).items() if name != "at"}
    outbox_table.put(transaction, run, LineKind.EVENT, event.at, [fields])


def keep_sample(transaction: Transaction, run: str, sample: Sample, state: str) -> None:
    """Store a sample of a run in this state; its remaining outcomes are in the series."""
    _insert_samples(transaction, run, [sample], state)
    transaction.execute(
        "INSERT INTO histories (run, samples) VALUES (?, 1) ON CONFLICT DO UPDATE SET samples = samples + 1",
        run,
    )


def thin_out(transaction: Transaction, run: str) -> None:
    """Merge some samples of a run with too many, until half are left.

    The seconds of its series are merged in the same steps. Merging all at once would take half a second.
    """
    history = _fetch_history(transaction, run)
    if history["step_s"]:
        _merge_some(transaction, run, history)
    elif history["samples"] > MOST_SAMPLES:
        _start_merging(transaction, run)


def _start_merging(transaction: Transaction, run: str) -> None:
    ends = [row["at"] for row in transaction.select("SELECT at FROM samples WHERE run = ? ORDER BY at", run)]
    transaction.execute(
        "UPDATE histories SET samples = ?, step_s = ?, merged_to = ?, merge_until = ? WHERE run = ?",
        len(ends), choose_step_s(ends, MOST_SAMPLES), -math.inf, ends[-1], run,
    )  # fmt: skip


def _merge_some(transaction: Transaction, run: str, history: sqlite3.Row) -> None:
    """Merge the oldest unmerged samples.

    The last merged sample is merged again next time: its step may continue in the following samples.
    """
    rows = transaction.select(
        "SELECT at, body FROM samples WHERE run = ? AND at > ? AND at <= ? ORDER BY at LIMIT ?",
        run, history["merged_to"], history["merge_until"], _MERGED_AT_ONCE,
    )  # fmt: skip
    merged = merge_steps((decode_kept(row["body"]) for row in rows), history["step_s"])
    since, until = max(0.0, history["merged_to"]), rows[-1]["at"]
    series_table.merge_seconds(transaction, run, history["step_s"], since, until)
    transaction.execute_each(
        "DELETE FROM samples WHERE run = ? AND at = ?", [(run, row["at"]) for row in rows]
    )
    _insert_samples(transaction, run, merged)
    is_last = len(rows) < _MERGED_AT_ONCE
    transaction.execute(
        "UPDATE histories SET samples = samples - ?, step_s = ?, merged_to = ? WHERE run = ?",
        len(rows) - len(merged),
        0 if is_last else history["step_s"],
        history["merged_to"] if len(merged) < 2 else merged[-2].at,
        run,
    )


def _fetch_history(transaction: Transaction, run: str) -> sqlite3.Row:
    return transaction.select("SELECT * FROM histories WHERE run = ?", run)[0]


def fetch_samples(transaction: Transaction, run: str) -> list[Sample]:
    """The samples of a run, oldest first, with the outcomes of its series."""
    rows = transaction.select("SELECT body FROM samples WHERE run = ? ORDER BY at", run)
    samples = [decode_kept(row["body"]) for row in rows]
    row = transaction.select_one("SELECT requests FROM runs WHERE run = ?", run)
    return join_series(samples, series_table.fetch_series(transaction, run), row["requests"] if row else 0)


def fetch_busy_to(transaction: Transaction, run: str) -> float:
    """Up to when requests of a run were certainly left to send; minus infinity if unknown."""
    rows = transaction.select(
        "SELECT body FROM samples WHERE run = ? ORDER BY at DESC LIMIT ?", run, _MOST_AT_END
    )
    return max((active_seconds.find_busy_end(decode_kept(row["body"])) for row in rows), default=-math.inf)


def fetch_settled_to(transaction: Transaction, run: str) -> float:
    """The Unix time up to which the seconds of a run have ticks, because all workers had reported them."""
    row = transaction.select_one("SELECT published_to FROM histories WHERE run = ?", run)
    return float(row["published_to"]) if row else 0.0


def fetch_events(transaction: Transaction, run: str) -> list[Event]:
    """The events of a run, oldest first."""
    rows = transaction.select("SELECT body FROM events WHERE run = ? ORDER BY id", run)
    return [_unpack_event(row["body"]) for row in rows]


def fetch_lease_spans(transaction: Transaction, run: str, after: str, most: int) -> list[LeaseSpan]:
    """The next leases of a run with their results, in the order of their ids and so of their dealing.

    Args:
        transaction: to read in.
        run: its id.
        after: the id of the lease before them; empty for the first ones.
        most: the largest number of leases.
    """
    rows = transaction.select(
        # The id of a lease is the id of its run, a dot, and more; "/" is the character after the dot.
        "SELECT id, start, stop, ranges, state, reason, worker, covered, cut_at, closed_at FROM leases"
        " LEFT JOIN lease_ranges ON lease = id"
        " WHERE id > ? AND id < ? AND leases.run = ? ORDER BY id LIMIT ?",
        after or f"{run}.", f"{run}/", run, most,
    )  # fmt: skip
    return [_build_span(row) for row in rows]


def _build_span(row: sqlite3.Row) -> LeaseSpan:
    columns = dict(row)
    columns["ranges"] = _decode_ranges(row["ranges"]) if row["ranges"] else []
    columns["state"] = LeaseState(row["state"])
    return LeaseSpan(**columns)


def _insert_samples(transaction: Transaction, run: str, samples: list[Sample], state: str = "") -> None:
    transaction.execute_each(
        "INSERT OR REPLACE INTO samples (run, at, body, state) VALUES (?, ?, ?, ?)",
        [(run, sample.at, encode_kept(sample), state) for sample in samples],
    )
