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
from oku_coordinator.ledger.storage.lease_rows import decode_counts
from oku_coordinator.ledger.storage.records import UNREADABLE, BreachError, UnknownRunError
from oku_coordinator.ledger.storage.run_account import PartName, RunAccount
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables.inner_table import choose_name, fetch_inner, write_inner
from oku_core.accounting.account import Account
from oku_core.accounting.failure_reason import ReasonCount
from oku_core.accounting.outcome import build_no_causes

_COLUMNS = ", ".join(ACCOUNT_COLUMNS)
_WRITE = (
    f"INSERT INTO accounts (run, phase, name, {_COLUMNS})"  # noqa: S608  # names of our own
    f" VALUES (?, ?, ?, {', '.join('?' * len(ACCOUNT_COLUMNS))}) ON CONFLICT DO UPDATE SET"
    f" ({_COLUMNS}) = ({', '.join(f'excluded.{column}' for column in ACCOUNT_COLUMNS)})"
)


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
        account = RunAccount(
            {(row["phase"], row["name"]): build_account(row) for row in rows}, fetch_inner(transaction, run)
        )
        outcomes = decode_counts(record["outcomes"])
    except UNREADABLE as error:
        raise BreachError(run, f"its account cannot be read: {error}") from error
    if outcomes != account.outcomes:
        raise BreachError(run, f"its outcomes are {outcomes}, but its accounts sum to {account.outcomes}")
    return account


def sum_not_sent(transaction: Transaction, run: str) -> list[int]:
    """Why requests of a run were not sent, as counts of causes; reads no more of its accounts than that."""
    if account := transaction.accounts.get(run):
        counts = [part.not_sent for part in account.parts.values()]
    else:
        rows = transaction.select("SELECT not_sent FROM accounts WHERE run = ?", run)
        counts = [decode_counts(row["not_sent"]) for row in rows]
    return [sum(column) for column in zip(build_no_causes(), *counts, strict=True)]


def fetch_reasons(transaction: Transaction, run: str) -> list[tuple[str, ReasonCount]]:
    """Why requests of a run failed, as `list_reasons` has them; reads no more of its accounts."""
    if account := transaction.accounts.get(run):
        return account.list_reasons()
    rows = transaction.select("SELECT name, reasons FROM accounts WHERE run = ? ORDER BY phase, name", run)
    return [(row["name"], count) for row in rows for count in decode_reasons(row["reasons"])]


def open_account(transaction: Transaction, run: str, name: PartName) -> Account:
    """The account of a phase and name, to fold into; it is written at the end of the transaction."""
    account = transaction.accounts[run] = fetch_account(transaction, run)
    transaction.folded.setdefault(run, set()).add(name)
    transaction.touched.add(run)
    return account.open(name)


def open_inner(transaction: Transaction, run: str, name: PartName) -> Account:
    """The account of inner requests of a phase and name, to fold into; it is written as the others are."""
    account = transaction.accounts[run] = fetch_account(transaction, run)
    inner = account.inner
    chosen = choose_name(inner, name)
    transaction.folded_inner.setdefault(run, set()).add(chosen)
    return inner.setdefault(chosen, Account())


def write_accounts(transaction: Transaction) -> None:
    """Write the accounts that have changed in memory."""
    for run, names in transaction.folded.items():
        account = transaction.accounts[run]
        for name in names:
            transaction.execute(_WRITE, run, *name, *build_account_columns(account.parts[name]))
        transaction.execute("UPDATE runs SET outcomes = ? WHERE run = ?", json.dumps(account.outcomes), run)
    transaction.folded.clear()
    for run, names in transaction.folded_inner.items():
        inner = transaction.accounts[run].inner
        for name in names:
            write_inner(transaction, run, name, inner[name])
    transaction.folded_inner.clear()
