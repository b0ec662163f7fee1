import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.coordinators.leases import Apply, Deal, MakeBatch
from tests.kit.coordinators.parts import build_closed_part, build_open_part
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger, batches
from oku_coordinator.ledger.rules.lifecycle import change_state, requeue
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.tables.accounts.account_table import (
    ACCOUNT_COLUMNS,
    build_account_columns,
    decode_account,
    fetch_account,
    is_in_memory,
)
from oku_coordinator.ledger.tables.deletion_table import begin_deletion
from oku_core.accounting.account import Account
from oku_core.accounting.measured_time import Time
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import Part
from oku_core.summary.validity import Flag


def test_workers_are_summed_up_by_name(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """Requests and processor time add up over a worker's processes; its memory is the largest of them."""
    going = deal(worker="w2")
    batches = [
        make_batch(going, done=4, is_final=False, cpu_s=0.5, peak_rss_mb=70.0),
        make_batch(deal(worker="w1"), cpu_s=0.25, peak_rss_mb=90.0),
        make_batch(deal(worker="w1"), cpu_s=0.5, peak_rss_mb=80.04, done=5),
    ]
    apply(batches, 5.0)
    apply([make_batch(going, sequence=2, cpu_s=1.0, peak_rss_mb=70.06)], 6.0)
    workers = read(ledger, fetch_snapshot, "r1").workers
    assert [(worker.name, worker.requests, worker.cpu_s, worker.peak_rss_mb) for worker in workers] == [
        ("w1", 15, 0.75, 90.0),
        ("w2", 10, 1.0, 70.1),
    ]
    assert not any(worker.lost for worker in workers)


def test_flags_sum_up_requests_and_keep_the_worst_figure(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """Each checkpoint adds the requests that it has gained; one without a fault adds nothing."""
    going = deal()
    batches = [
        make_batch(going, done=6, is_final=False, max_lag_s=0.5, lagged=4),
        make_batch(going, sequence=2, max_lag_s=0.5, lagged=10),
        make_batch(deal(), max_lag_s=0.2, lagged=10, busy_share=0.95, saturated=7),
        make_batch(deal()),
    ]
    apply(batches, 5.0)
    assert sorted(read(ledger, fetch_snapshot, "r1").flags) == [
        (Flag.LOOP_LAG, 20, 0.5),
        (Flag.WORKER_SATURATED, 7, 0.95),
    ]


def test_the_account_of_the_run_that_came_to_rest_last_stays_in_memory(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """Its summary is due. That of the one before goes, and so does that of a deleted run."""
    runs = ("r1", "r2")
    for run in runs:
        lease = deal(100, run)
        apply([make_batch(lease)], 5.0)
        assert [read(ledger, is_in_memory, each) for each in runs] == [each == run for each in runs]
    change(ledger, begin_deletion, "r2")
    assert not read(ledger, is_in_memory, "r2")


def test_a_run_is_loaded_before_its_turn(
    path: Path, ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """Its parts are checked, and not again when it is resumed; one that goes on is not read."""
    apply([make_batch(deal(50))], 5.0)
    change(ledger, change_state, "r1", RunState.PAUSED, 6.0)
    ledger.close()
    with closing(Ledger(path)) as started:
        batches.preload_account(started, "r1")
        account = read(started, fetch_account, "r1")
        assert read(started, is_in_memory, "r1")
        assert account.is_checked
        change(started, change_state, "r1", RunState.PENDING, 7.0)
        assert read(started, fetch_account, "r1") is account
        change(started, change_state, "r1", RunState.RUNNING, 8.0)
    with closing(Ledger(path)) as started:
        batches.preload_account(started, "r1")
        assert not read(started, is_in_memory, "r1")


def test_the_account_of_the_run_that_has_its_turn_stays_in_memory(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """Until it begins or gives its turn to the next; those of runs that wait behind it do not."""
    for run in ("r1", "r2", "r3"):
        apply([make_batch(deal(50, run))], 5.0)
        change(ledger, change_state, run, RunState.PAUSED, 6.0)
    for run in ("r1", "r2"):
        batches.preload_account(ledger, run)
        change(ledger, change_state, run, RunState.PENDING, 7.0)
    change(ledger, change_state, "r3", RunState.CANCELLED, 8.0)
    assert [read(ledger, is_in_memory, run) for run in ("r1", "r2")] == [True, False]
    change(ledger, requeue, "r1", 9.0, "no worker has come")
    assert not read(ledger, is_in_memory, "r1")


def test_what_cannot_be_loaded_is_read_when_it_is_needed(
    path: Path, ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """A run that is gone, and one whose account is broken."""
    batches.preload_account(ledger, "no run")
    apply([make_batch(deal(50))], 5.0)
    change(ledger, change_state, "r1", RunState.PAUSED, 6.0)
    ledger.close()
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("UPDATE accounts SET times = x'90'")
        raw.commit()
    with closing(Ledger(path)) as started:
        batches.preload_account(started, "r1")
        assert not read(started, is_in_memory, "r1")


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
    return decode_account(build_row(build_values(account)))


def fold(*parts: Part) -> Account:
    """The account of several parts."""
    account = Account()
    for part in parts:
        account.add(part)
    return account


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
        ({"outcomes": "[1, 2]"}, "the outcomes are not a count for each"),
        ({"outcomes": "[1, 0, 0, 0, 0, 0, 0, -1]"}, "the outcomes are not a count for each"),
        ({"outcomes": "nothing"}, "JSON is malformed"),
        ({"not_sent": "[0]"}, "causes for not sending are not a count for each"),
        ({"statuses": "nothing"}, "JSON is malformed"),
        ({"times": b"nothing"}, "Expected `array`"),
        ({"times": msgspec.msgpack.encode([("tea", 0, 1, 1, 1, b"")])}, "Invalid enum value 'tea'"),
        ({"times": msgspec.msgpack.encode([("latency", 0, 1, 1, 1, b"nothing")])}, "no packed histogram"),
    ],
)
def test_a_row_that_cannot_be_read_is_said(column: dict[str, Any], said: str) -> None:
    """It raises a ValueError, whatever is wrong."""
    values = build_values(fold(build_open_part([1, 2], 1)))
    decode_account(build_row(values))
    with pytest.raises(ValueError, match=said):
        decode_account(build_row(values | column))


def test_sums_may_be_larger_than_an_integer_of_the_database() -> None:
    """The microseconds of 10**13 requests of three seconds are; nothing is rounded."""
    account = fold(build_closed_part([1, 2], 1))
    account.bytes_received, account.histogram(Time.LATENCY).sum_us = 10**24 + 7, 3 * 10**19 + 1
    assert all(not isinstance(value, int) or value < 2**63 for value in build_values(account).values())
    again = read_back(account)
    assert (again.bytes_received, again.histogram(Time.LATENCY).sum_us) == (10**24 + 7, 3 * 10**19 + 1)
