"""The accounts of runs in the ledger, one for each phase and name of requests.

They are folded in memory and written once at the end of a transaction, for any number of checkpoints. The row
of a run has the sum of their outcomes. The times of an account are packed: a run of many parts has tens of
thousands.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from oku_coordinator.ledger.storage.lease_records import decode_counts
from oku_coordinator.ledger.storage.records import UNREADABLE, BreachError, UnknownRunError, breaching
from oku_coordinator.ledger.storage.run_account import PartAccounts, PartName, RunAccount
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables.accounts.inner_table import choose_name, fetch_inner, write_inner
from oku_coordinator.ledger.tables.run_table import fetch_spec
from oku_core.accounting.account import Account
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import NOT_SENT_CAUSES, ReasonCount, build_no_causes, is_account
from oku_core.json_reader import build_own_decoder

_LOW_LIMIT = 2**62
"""An integer of SQLite has 64 bits, with a sign; the microseconds of 10**13 requests have more."""
ACCOUNT_COLUMNS = (
    "outcomes", "not_sent", "reasons", "statuses", "bytes_received_high", "bytes_received", "times"
)  # fmt: skip
"""The columns of an account in `accounts`."""
_decode = build_own_decoder(Any)
decode_reasons = build_own_decoder(list[ReasonCount])
"""Decodes the column of an account's reasons."""


class _StoredTime(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A stored measured time."""

    time: Time
    sum_us_high: int
    sum_us: int
    min_us: int
    max_us: int
    packed: bytes


_pack_times = msgspec.msgpack.Encoder().encode
_unpack_times = msgspec.msgpack.Decoder(list[_StoredTime]).decode
_COLUMNS = ", ".join(ACCOUNT_COLUMNS)
_WRITE = (
    f"INSERT INTO accounts (run, phase, name, {_COLUMNS})"  # noqa: S608  # names of our own
    f" VALUES ({', '.join('?' * (3 + len(ACCOUNT_COLUMNS)))})"
    f" ON CONFLICT DO UPDATE SET ({_COLUMNS}) = ({', '.join(f'excluded.{name}' for name in ACCOUNT_COLUMNS)})"
)


def is_in_memory(transaction: Transaction, run: str) -> bool:
    """Whether the account of a run is in memory."""
    return run in transaction.accounts


def fetch_account(transaction: Transaction, run: str) -> RunAccount:
    """The account of a run, read-only.

    An account in memory is used; a read one is not kept in memory, or the accounts of all runs ever read
    would stay.

    Raises:
        UnknownRunError: there is no such run.
        BreachError: a row is unreadable, or the row of the run has another sum.
    """
    if account := transaction.accounts.get(run):
        return account
    record = transaction.select_one("SELECT outcomes FROM runs WHERE run = ?", run)
    if record is None:
        raise UnknownRunError(run)
    rows = transaction.select(
        f"SELECT phase, name, {_COLUMNS} FROM accounts WHERE run = ? ORDER BY rowid",  # noqa: S608  # names of our own
        run,
    )
    try:
        parts = PartAccounts({(row["phase"], row["name"]): decode_account(row) for row in rows})
        account = RunAccount(parts, fetch_inner(transaction, run), is_checked=not parts)
        outcomes = decode_counts(record["outcomes"])
    except UNREADABLE as error:
        raise BreachError(run, f"its account cannot be read: {error}") from error
    if outcomes != account.outcomes:
        raise BreachError(run, f"its outcomes are {outcomes}, but its accounts sum to {account.outcomes}")
    return account


def sum_not_sent(transaction: Transaction, run: str) -> list[int]:
    """Why requests of a run were not sent, as counts of causes; reads only these columns."""
    if account := transaction.accounts.get(run):
        return account.not_sent
    rows = transaction.select("SELECT not_sent FROM accounts WHERE run = ?", run)
    counts = [decode_counts(row["not_sent"]) for row in rows]
    return [sum(column) for column in zip(build_no_causes(), *counts, strict=True)]


def fetch_reasons(transaction: Transaction, run: str) -> list[tuple[str, ReasonCount]]:
    """Why requests of a run failed, in the form of `list_reasons`; reads only these columns."""
    if account := transaction.accounts.get(run):
        return account.list_reasons()
    rows = transaction.select("SELECT name, reasons FROM accounts WHERE run = ? ORDER BY rowid", run)
    return [(row["name"], count) for row in rows for count in decode_reasons(row["reasons"])]


def load_account(transaction: Transaction, run: str) -> RunAccount:
    """Read the account of a run into memory, sum it up and check its parts: many take a second."""
    account = transaction.accounts[run] = fetch_account(transaction, run)
    account.parts.fetch_measured()
    account.inner.fetch_measured()
    with breaching(run):
        account.check_parts(fetch_spec(transaction, run))
    return account


def open_account(transaction: Transaction, run: str, name: PartName) -> Account:
    """The account of a phase and name, to fold into; it is written at the end of the transaction."""
    account = transaction.accounts[run] = fetch_account(transaction, run)
    transaction.folded.setdefault(run, {})[name] = None
    transaction.touched.add(run)
    return account.parts.open(name)


def open_inner(transaction: Transaction, run: str, name: PartName) -> Account:
    """The account of inner requests of a phase and name, to fold into; written like the others."""
    account = transaction.accounts[run] = fetch_account(transaction, run)
    chosen = choose_name(account.inner, name)
    transaction.folded_inner.setdefault(run, {})[chosen] = None
    return account.inner.open(chosen)


def write_accounts(transaction: Transaction) -> None:
    """Write the accounts that have changed in memory."""
    for run, names in transaction.folded.items():
        account = transaction.accounts[run]
        rows = [(run, *name, *build_account_columns(account.parts[name])) for name in names]
        transaction.execute_each(_WRITE, rows)
        transaction.execute("UPDATE runs SET outcomes = ? WHERE run = ?", json.dumps(account.outcomes), run)
    for run, names in transaction.folded_inner.items():
        inner = transaction.accounts[run].inner
        for name in names:
            write_inner(transaction, run, name, inner[name])


def decode_account(row: sqlite3.Row | Mapping[str, Any]) -> Account:
    """Decode the account in a row of `accounts`; `ValueError` if it is unreadable."""
    outcomes, not_sent = _decode(row["outcomes"]), _decode(row["not_sent"])
    if not is_account(outcomes):
        raise ValueError("the outcomes are not a count for each")
    if len(not_sent) != len(NOT_SENT_CAUSES):
        raise ValueError("the causes for not sending are not a count for each")
    return Account(
        outcomes=outcomes,
        not_sent=not_sent,
        reasons={count.key: count for count in decode_reasons(row["reasons"])},
        statuses=_decode(row["statuses"]),
        bytes_received=_join(row["bytes_received_high"], row["bytes_received"]),
        times=decode_times(row["times"]),
    )


def decode_times(times: bytes) -> dict[Time, Histogram]:
    """Decode the column of an account's times; `ValueError` if it is unreadable."""
    return {
        stored.time: Histogram.unpack(
            stored.packed,
            sum_us=_join(stored.sum_us_high, stored.sum_us),
            min_us=stored.min_us,
            max_us=stored.max_us,
        )
        for stored in _unpack_times(times)
    }


def build_account_columns(account: Account) -> Sequence[object]:
    """Encode an account as its columns."""
    return (
        json.dumps(account.outcomes),
        json.dumps(account.not_sent),
        msgspec.json.encode(list(account.reasons.values())).decode(),
        json.dumps(account.statuses, sort_keys=True),
        *divmod(account.bytes_received, _LOW_LIMIT),
        _pack_times([_store_time(time, held) for time, held in account.times.items() if held.total]),
    )


def _store_time(time: Time, held: Histogram) -> _StoredTime:
    return _StoredTime(time, *divmod(held.sum_us, _LOW_LIMIT), held.min_us, held.max_us, held.pack())


def _join(high: int, low: int) -> int:
    return high * _LOW_LIMIT + low
