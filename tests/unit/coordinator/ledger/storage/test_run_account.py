import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oku_coordinator.ledger.storage.run_account import Account
from oku_coordinator.ledger.tables.account_table import build_account, build_account_columns
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.interval import ConservationError, Lengths
from oku_core.messaging.checkpoint import Part

COLUMNS = (
    "outcomes", "statuses", "bytes_received_high", "bytes_received", "sum_us_high", "sum_us", "min_us",
    "max_us", "histogram",
)  # fmt: skip


def build_row(values: Mapping[str, Any]) -> sqlite3.Row:
    """A row as SQLite gives it."""
    database = sqlite3.connect(":memory:")
    database.row_factory = sqlite3.Row
    names = ", ".join(f"? AS {name}" for name in values)
    row: sqlite3.Row = database.execute(f"SELECT {names}", tuple(values.values())).fetchone()
    database.close()
    return row


def build_part(latencies_us: list[int], unanswered: int) -> Part:
    """A part whose even latencies were ok and whose odd ones had another status."""
    histogram = Histogram()
    for latency_us in latencies_us:
        histogram.record(latency_us)
    odd = sum(latency_us % 2 for latency_us in latencies_us)
    even = len(latencies_us) - odd
    statuses = {status: count for status, count in [("200", even), ("404", odd)] if count}
    return Part(
        outcomes=[even, odd, unanswered, 0, 0, 0],
        statuses=statuses,
        bytes_received=even,
        latency=histogram.build_latency(),
    )


Parts = st.lists(
    st.builds(build_part, st.lists(st.integers(0, 3_600_000_000), max_size=5), st.integers(0, 5)),
    max_size=5,
)


def describe(account: Account) -> object:
    """Everything that the ledger keeps of a run."""
    histogram = account.histogram
    figures = (histogram.total, histogram.sum_us, histogram.min_us, histogram.max_us)
    return account.outcomes, account.statuses, account.bytes_received, histogram.counts, figures


def fold(parts: list[Part]) -> Account:
    """The account of several parts."""
    account = Account()
    for part in parts:
        add(account, part)
    return account


def add(account: Account, part: Part) -> None:
    """Add a part to an account."""
    account.add(part.outcomes, part.statuses, part.bytes_received, part.latency)


@settings(max_examples=25)
@given(Parts)
def test_an_account_is_the_sum_of_its_parts_in_any_order(parts: list[Part]) -> None:
    """Outcomes, statuses, bytes and histograms add up."""
    account = fold(parts)
    assert describe(account) == describe(fold(parts[::-1]))
    assert account.accounted == sum(sum(part.outcomes) for part in parts)
    assert account.histogram.total == sum(part.latency.total for part in parts)
    assert sum(account.statuses.values()) == account.histogram.total
    assert account.bytes_received == sum(part.bytes_received for part in parts)


@settings(max_examples=25)
@given(Parts)
def test_an_account_comes_back_from_its_row(parts: list[Part]) -> None:
    """It is exact, with the sum, minimum and maximum that a histogram in V2 form does not carry."""
    account = fold(parts)
    row = build_row(dict(zip(COLUMNS, build_account_columns(account), strict=True)))
    assert describe(build_account(row)) == describe(account)


@settings(max_examples=25)
@given(Parts, st.builds(build_part, st.just([1, 2]), st.just(1)))
def test_a_copy_does_not_change(parts: list[Part], late: Part) -> None:
    """It stays the same whatever is added to the original."""
    account = fold(parts)
    copy = account.copy()
    before = describe(fold(parts))
    add(account, late)
    assert describe(copy) == before


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"outcomes": "[1, 2]"}, "not six counts"),
        ({"outcomes": "[1, 0, 0, 0, 0, -1]"}, "not six counts"),
        ({"outcomes": "nothing"}, "Expecting value"),
        ({"statuses": "nothing"}, "Expecting value"),
        ({"histogram": b"nothing"}, "no HdrHistogram"),
    ],
)
def test_a_row_that_cannot_be_read_is_said(column: dict[str, Any], said: str) -> None:
    """It raises a ValueError, whatever is wrong."""
    values = dict(zip(COLUMNS, build_account_columns(fold([build_part([1, 2], 1)])), strict=True))
    build_account(build_row(values))
    with pytest.raises(ValueError, match=said):
        build_account(build_row(values | column))


def test_an_account_must_sum_to_what_is_accounted() -> None:
    """Its check says by how much it does not."""
    account = fold([build_part([1, 2], 1)])
    account.check(Lengths(pending=5, leased=5, accounted=3), account.outcomes)
    with pytest.raises(ConservationError, match="outcomes sum to 3, but 4 are accounted"):
        account.check(Lengths(pending=5, leased=5, accounted=4), account.outcomes)


def test_an_account_must_be_what_its_seconds_sum_to() -> None:
    """Each outcome counts by itself."""
    account = fold([build_part([1, 2], 1)])
    with pytest.raises(ConservationError, match=r"outcomes are \[1, 1, 1, .*the seconds sum to \[2, 0, 1"):
        account.check(Lengths(pending=5, leased=5, accounted=3), [2, 0, 1, 0, 0, 0])


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda account: account.histogram.record(1), "2 were answered, but 3 latencies and 2 statuses are"),
        (lambda account: account.statuses.pop("404"), "2 were answered, but 2 latencies and 1 statuses are"),
    ],
)
def test_latencies_and_statuses_must_be_those_of_the_answered(
    spoil: Callable[[Account], object], said: str
) -> None:
    """Requests without a complete response have neither."""
    account = fold([build_part([1, 2], 1)])
    spoil(account)
    with pytest.raises(ConservationError, match=said):
        account.check(Lengths(pending=0, leased=0, accounted=3), account.outcomes)


def test_sums_may_be_larger_than_an_integer_of_the_database() -> None:
    """The microseconds of 10**13 requests of three seconds are; nothing is rounded."""
    account = fold([])
    account.bytes_received, account.histogram.sum_us = 10**24 + 7, 3 * 10**19 + 1
    columns = dict(zip(COLUMNS, build_account_columns(account), strict=True))
    assert all(not isinstance(value, int) or value < 2**63 for value in columns.values())
    columns["histogram"] = build_account_columns(fold([build_part([1, 2], 1)]))[-1]
    again = build_account(build_row(columns))
    assert (again.bytes_received, again.histogram.sum_us) == (10**24 + 7, 3 * 10**19 + 1)
