import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kit.coordinators.iterations import USER_CODE, build_failed_inner, build_inner, build_iterations
from tests.kit.coordinators.leases import apply_batches, build_batch, build_checkpoint, deal_lease, expire
from tests.kit.coordinators.transactions import change, check_ledger, read
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.tables.accounts.inner_table import MOST_BYTES, MOST_NAMES, MOST_TRACEBACKS
from oku_coordinator.ledger.tables.deletion_table import begin_deletion, delete_some, find_deletion
from oku_coordinator.ledger.tables.outbox_table import fetch_batch
from oku_core.accounting.interval import Lengths
from oku_core.accounting.lease_state import ExpiryReason, MessageVerdict
from oku_core.accounting.measured_time import Time
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import OTHER_NAMES, Part
from oku_core.results.lines import LineKind

TABLES = ("inner_accounts", "inner_parts", "tracebacks")


def count_rows(path: Path, table: str) -> int:
    """How many rows a table has."""
    with closing(sqlite3.connect(path)) as database:
        return int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def begin(ledger: Ledger) -> None:
    """Begin the run of user code."""
    change(ledger, create_run, "r1", USER_CODE, 0.0)
    change(ledger, change_state, "r1", RunState.RUNNING, 1.0)


def deal(ledger: Ledger, size: int = 10) -> LeaseRecord:
    """Deal a lease of the run."""
    return deal_lease(ledger, "r1", size, 2.0)


def say(
    ledger: Ledger, lease: LeaseRecord, done: int, inner: Sequence[Part] = (), **changes: Any
) -> MessageVerdict:
    """Take in a checkpoint of a lease of which so many iterations were ok; it goes on unless it is said."""
    values: dict[str, Any] = {"is_final": False, "inner": list(inner), "parts": [build_iterations(done)]}
    checkpoint = build_checkpoint(lease, done, **values | changes)
    return apply_batches(ledger, [build_batch(lease, checkpoint)], 5.0)[0]


def count(ledger: Ledger) -> dict[str, int]:
    """How many inner requests of each name are counted."""
    return {
        name: account.accounted
        for (_, name), account in read(ledger, fetch_snapshot, "r1").accounts.inner.items()
    }


def test_inner_requests_are_counted_beside_the_account(ledger: Ledger) -> None:
    """There may be more of them than iterations or fewer, and they sum to nothing."""
    begin(ledger)
    inner = [build_inner("login", [1001] * 25), build_inner("orders", [2000, 4001])]
    assert say(ledger, deal(ledger), 10, inner, is_final=True) == MessageVerdict.CLOSED
    assert check_ledger(ledger, "r1") == Lengths(pending=90, leased=0, accounted=10)
    snapshot = read(ledger, fetch_snapshot, "r1")
    assert (snapshot.account.outcomes, snapshot.account.statuses) == (make_counts(10), {})
    orders = snapshot.accounts.inner["", "orders"]
    assert (orders.outcomes, orders.statuses, orders.bytes_received) == (make_counts(2), {"200": 1}, 20)
    assert (orders.histogram(Time.LATENCY).total, orders.histogram(Time.LATENCY).sum_us) == (2, 6001)
    assert count(ledger) == {"login": 25, "orders": 2}


def test_reasons_of_inner_requests_name_iterations(ledger: Ledger) -> None:
    """By their indices, in the place of their positions in the lease."""
    begin(ledger)
    deal(ledger, 30)
    say(ledger, deal(ledger), 10, [build_failed_inner("login", 4)], is_final=True)
    login = read(ledger, fetch_snapshot, "r1").accounts.inner["", "login"]
    assert login.outcomes == make_counts(timeout=4)
    assert [(each.reason, each.first, each.last) for each in login.reasons.values()] == [
        ("no answer within 1s", 30, 30)
    ]


def test_names_beyond_the_most_are_counted_together(ledger: Ledger) -> None:
    """A name that is known counts on under it."""
    begin(ledger)
    names = [f"item {number:03}" for number in range(MOST_NAMES + 5)]
    lease = deal(ledger)
    say(ledger, lease, 1, [build_inner(name, [1000]) for name in names])
    say(ledger, lease, 2, [build_inner(names[0], [1000] * 3), build_inner(names[-1], [1000] * 4)], sequence=2)
    counted = count(ledger)
    assert len(counted) == MOST_NAMES + 1
    assert (counted[names[0]], counted[OTHER_NAMES]) == (3, 5 + 3)
    assert sum(counted.values()) == len(names) + 2 + 3


def test_bytes_are_counted_up_to_a_most(ledger: Ledger) -> None:
    """User code may say that it received any number of them; the ledger can always write what they sum to."""
    begin(ledger)
    huge = msgspec.structs.replace(build_inner("login", [1000]), bytes_received=2**53 - 1)
    for _ in range(3):
        assert say(ledger, deal(ledger), 10, [huge], is_final=True) == MessageVerdict.CLOSED
    login = read(ledger, fetch_snapshot, "r1").accounts.inner["", "login"]
    assert (login.accounted, login.bytes_received) == (3, MOST_BYTES)


@pytest.mark.parametrize("is_final", [False, True])
def test_a_lease_that_has_ended_keeps_no_inner_parts(path: Path, *, is_final: bool) -> None:
    """Whether its worker has ended it or it was taken back; what they were is in Loki, one line each."""
    with closing(Ledger(path, publishes=True)) as ledger:
        begin(ledger)
        lease = deal(ledger)
        say(ledger, lease, 4, [build_inner("login", [1000, 2000])], is_final=is_final)
        if not is_final:
            expire(ledger, [lease.id], ExpiryReason.WORKER_LOST, 7.0)
        lines = [
            json.loads(line.text)
            for line in change(ledger, fetch_batch, 100, 10**6, 8.0)
            if line.kind == LineKind.INNER_RANGE
        ]
        assert count(ledger) == {"login": 2}
    assert [(line["request"], line["requests"], line["ok"], line["max_ms"]) for line in lines] == [
        ("login", 2, 2, 2.0)
    ]
    assert lines[0]["lease"] == lease.id
    assert count_rows(path, "inner_parts") == 0


def test_the_first_traceback_of_each_reason_is_kept(ledger: Ledger) -> None:
    """Up to the most."""
    begin(ledger)
    lease = deal(ledger)
    say(ledger, lease, 1, tracebacks={"ValueError": "first"})
    say(ledger, lease, 2, sequence=2, tracebacks={"ValueError": "second", "KeyError": "third"})
    assert read(ledger, fetch_snapshot, "r1").tracebacks == {"ValueError": "first", "KeyError": "third"}
    for sequence in range(3, 12):
        say(
            ledger,
            lease,
            sequence,
            sequence=sequence,
            tracebacks={f"Error {sequence} {number}": "x" for number in range(16)},
        )
    assert len(read(ledger, fetch_snapshot, "r1").tracebacks) == MOST_TRACEBACKS


def test_a_run_without_user_code_has_no_inner_requests(
    ledger: Ledger, begin_run: Callable[..., object]
) -> None:
    """Whoever says so is not believed."""
    begin_run("r1")
    lease = deal(ledger)
    checkpoint = build_checkpoint(lease, inner=[build_inner("login", [1000])])
    assert apply_batches(ledger, [build_batch(lease, checkpoint)], 5.0) == [MessageVerdict.UNTRUE]
    assert check_ledger(ledger, "r1").accounted == 0


def test_inner_requests_that_cannot_be_read_are_the_breach_of_their_run(path: Path) -> None:
    """As all else of a run."""
    with closing(Ledger(path)) as ledger:
        begin(ledger)
        say(ledger, deal(ledger), 10, [build_inner("login", [1000])], is_final=True)
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE inner_accounts SET body = x'00'")
        database.commit()
    with closing(Ledger(path)) as ledger:
        assert read(ledger, fetch_snapshot, "r1").breach is not None


def test_nothing_is_left_of_a_deleted_run(path: Path) -> None:
    """Neither of its names, nor of its open leases, nor of its tracebacks."""
    with closing(Ledger(path)) as ledger:
        begin(ledger)
        say(ledger, deal(ledger), 4, [build_inner("login", [1000])], tracebacks={"ValueError": "x"})
        change(ledger, change_state, "r1", RunState.FAILED, 6.0)
        assert [count_rows(path, table) for table in TABLES] == [1, 1, 1]
        change(ledger, begin_deletion, "r1")
        while run := read(ledger, find_deletion):
            change(ledger, delete_some, run)
        assert [count_rows(path, table) for table in TABLES] == [0, 0, 0]
