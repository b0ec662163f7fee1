"""Single reads and changes of a ledger, each a transaction of its own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Concatenate, ParamSpec, TypeVar

import pytest

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.conservation import check_run
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables.accounts.account_table import fetch_account
from oku_core.accounting.interval import Lengths

_P = ParamSpec("_P")
_T = TypeVar("_T")
FAILED_AT = 1e9
"""When a run fails whose account does not balance, in Unix time."""


def read(
    ledger: Ledger, function: Callable[Concatenate[Transaction, _P], _T], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    """What a function reads in a transaction."""
    with ledger.read() as transaction:
        return function(transaction, *args, **kwargs)


def change(
    ledger: Ledger, function: Callable[Concatenate[Transaction, _P], _T], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    """What a function gives that changes the ledger in a transaction."""
    with ledger.change(FAILED_AT) as transaction:
        return function(transaction, *args, **kwargs)


def commit_after_next_read(
    monkeypatch: pytest.MonkeyPatch, ledger: Ledger, commit: Callable[[], object]
) -> None:
    """Let something be committed right after the next transaction that reads, as by another thread."""
    fetch = ledger.read

    @contextmanager
    def read_and_commit() -> Iterator[Transaction]:
        with fetch() as transaction:
            yield transaction
        monkeypatch.setattr(ledger, "read", fetch)
        commit()

    monkeypatch.setattr(ledger, "read", read_and_commit)


def check_ledger(ledger: Ledger, run: str) -> Lengths:
    """Check all rows of a run: how much of it is in each state; `BreachError` if it does not balance."""
    with ledger.read() as transaction:
        return check_run(transaction, run, fetch_account(transaction, run))
