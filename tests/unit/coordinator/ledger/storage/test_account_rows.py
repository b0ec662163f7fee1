import sqlite3
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.coordinators.parts import build_closed_part, build_open_part

from oku_coordinator.ledger.storage.account_rows import (
    ACCOUNT_COLUMNS,
    build_account,
    build_account_columns,
)
from oku_core.accounting.account import Account
from oku_core.accounting.measured_time import Time
from oku_core.messaging.checkpoint import Part

LATENCIES = st.lists(st.integers(0, 3_590_000_000), max_size=5)
PARTS = st.lists(
    st.builds(build_closed_part, LATENCIES, st.integers(0, 5))
    | st.builds(
        build_open_part, LATENCIES, st.integers(0, 5), st.lists(st.integers(0, 9), min_size=3, max_size=3)
    ),
    max_size=5,
)


def build_row(values: Mapping[str, Any]) -> sqlite3.Row:
    """A row as SQLite gives it."""
    database = sqlite3.connect(":memory:")
    database.row_factory = sqlite3.Row
    names = ", ".join(f"? AS {name}" for name in values)
    row: sqlite3.Row = database.execute(f"SELECT {names}", tuple(values.values())).fetchone()
    database.close()
    return row


def build_values(account: Account) -> dict[str, Any]:
    """The columns of an account, by name."""
    return dict(zip(ACCOUNT_COLUMNS, build_account_columns(account), strict=True))


def read_back(account: Account) -> Account:
    """The account as its row has it."""
    return build_account(build_row(build_values(account)))


def fold(*parts: Part) -> Account:
    """The account of several parts."""
    account = Account()
    for part in parts:
        account.add(part)
    return account


@settings(max_examples=25)
@given(PARTS)
def test_an_account_comes_back_from_its_rows(parts: list[Part]) -> None:
    """It is exact, with the sums, minima and maxima that histograms in V2 form do not carry."""
    account = fold(*parts)
    assert read_back(account).build_counts() == account.build_counts()


def test_an_empty_histogram_takes_no_room() -> None:
    """The requests of closed runs have no due times."""
    assert list(read_back(fold(build_closed_part([2, 4]))).times) == [Time.LATENCY]


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"outcomes": "[1, 2]"}, "the outcomes are not the counts of each"),
        ({"outcomes": "[1, 0, 0, 0, 0, 0, 0, -1]"}, "the outcomes are not the counts of each"),
        ({"outcomes": "nothing"}, "JSON is malformed"),
        ({"not_sent": "[0]"}, "causes for not sending are not the counts of each"),
        ({"statuses": "nothing"}, "JSON is malformed"),
        ({"times": b"nothing"}, "Expected `array`"),
        ({"times": msgspec.msgpack.encode([("tea", 0, 1, 1, 1, b"")])}, "Invalid enum value 'tea'"),
        ({"times": msgspec.msgpack.encode([("latency", 0, 1, 1, 1, b"nothing")])}, "no packed histogram"),
    ],
)
def test_a_row_that_cannot_be_read_is_said(column: dict[str, Any], said: str) -> None:
    """It raises a ValueError, whatever is wrong."""
    values = build_values(fold(build_open_part([1, 2], 1)))
    build_account(build_row(values))
    with pytest.raises(ValueError, match=said):
        build_account(build_row(values | column))


def test_sums_may_be_larger_than_an_integer_of_the_database() -> None:
    """The microseconds of 10**13 requests of three seconds are; nothing is rounded."""
    account = fold(build_closed_part([1, 2], 1))
    account.bytes_received, account.histogram(Time.LATENCY).sum_us = 10**24 + 7, 3 * 10**19 + 1
    assert all(not isinstance(value, int) or value < 2**63 for value in build_values(account).values())
    again = read_back(account)
    assert (again.bytes_received, again.histogram(Time.LATENCY).sum_us) == (10**24 + 7, 3 * 10**19 + 1)
