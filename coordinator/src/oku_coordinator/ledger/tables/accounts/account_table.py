"""The accounts of runs in the ledger, one for each phase and name of requests.

They are folded in memory and written once at the end of a transaction, however many checkpoints came. The
row of a run has the sum of their outcomes.
"""

import json

from oku_coordinator.ledger.storage.account_rows import (
    ACCOUNT_COLUMNS,
    build_account,
    build_account_columns,
    decode_reasons,
)
from oku_coordinator.ledger.storage.lease_records import decode_counts
from oku_coordinator.ledger.storage.records import UNREADABLE, BreachError, UnknownRunError, breaching
from oku_coordinator.ledger.storage.run_account import PartAccounts, PartName, RunAccount
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables.accounts.inner_table import choose_name, fetch_inner, write_inner
from oku_coordinator.ledger.tables.run_table import fetch_spec
from oku_core.accounting.account import Account
from oku_core.accounting.outcome import ReasonCount, build_no_causes

_COLUMNS = ", ".join(ACCOUNT_COLUMNS)
_WRITE = (
    f"INSERT INTO accounts (run, phase, name, {_COLUMNS})"  # noqa: S608  # names of our own
    f" VALUES ({', '.join('?' * (3 + len(ACCOUNT_COLUMNS)))})"
    f" ON CONFLICT DO UPDATE SET ({_COLUMNS}) = ({', '.join(f'excluded.{name}' for name in ACCOUNT_COLUMNS)})"
)


def is_in_memory(transaction: Transaction, run: str) -> bool:
    """Whether the account of a run need not be read from its rows."""
    return run in transaction.accounts


def fetch_account(transaction: Transaction, run: str) -> RunAccount:
    """What the requests of a run sum to, to read only.

    An account that is in memory is taken from there. None is put there, or the accounts of all runs that
    anybody ever looked at would stay.

    Raises:
        UnknownRunError: there is no such run.
        BreachError: a row cannot be read, or that of the run has not the sum.
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
        parts = PartAccounts({(row["phase"], row["name"]): build_account(row) for row in rows})
        account = RunAccount(parts, fetch_inner(transaction, run), is_checked=not parts)
        outcomes = decode_counts(record["outcomes"])
    except UNREADABLE as error:
        raise BreachError(run, f"its account cannot be read: {error}") from error
    if outcomes != account.outcomes:
        raise BreachError(run, f"its outcomes are {outcomes}, but its accounts sum to {account.outcomes}")
    return account


def sum_not_sent(transaction: Transaction, run: str) -> list[int]:
    """Why requests of a run were not sent, as counts of causes; reads no more of its accounts than that."""
    if account := transaction.accounts.get(run):
        return account.not_sent
    rows = transaction.select("SELECT not_sent FROM accounts WHERE run = ?", run)
    counts = [decode_counts(row["not_sent"]) for row in rows]
    return [sum(column) for column in zip(build_no_causes(), *counts, strict=True)]


def fetch_reasons(transaction: Transaction, run: str) -> list[tuple[str, ReasonCount]]:
    """Why requests of a run failed, as `list_reasons` has them; reads no more of its accounts."""
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
    """The account of inner requests of a phase and name, to fold into; it is written as the others are."""
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
