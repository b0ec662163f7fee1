import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.kit.coordinators.leases import (
    Apply,
    Deal,
    MakeBatch,
    apply_batches,
    build_batch,
    build_checkpoint,
    deal_lease,
    expire,
)
from tests.kit.coordinators.tampering import TAMPERINGS
from tests.kit.coordinators.transactions import change as change_ledger
from tests.kit.coordinators.transactions import check_ledger, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.batches import pause_interrupted
from oku_coordinator.ledger.rules.lifecycle import change_state
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.storage.records import BreachError
from oku_coordinator.ledger.tables.run_table import fetch_run, fetch_runs
from oku_core.accounting.interval import ConservationError
from oku_core.accounting.lease_state import ExpiryReason, MessageVerdict
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import CheckpointBatch

TABLES = ("runs", "slices", "leases", "lease_parts", "series", "workers", "flags")
CHANGED_BY_FAILING = {"state", "reason", "is_broken", "ended_at", "active_s", "active_since"}


@pytest.fixture
def raw(path: Path, ledger: Ledger) -> Iterator[sqlite3.Connection]:
    """Change the file directly, past the ledger."""
    connection = sqlite3.connect(path, isolation_level=None)
    yield connection
    connection.close()


def read_all(raw: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    """All rows of the file, without the columns of runs that a failure changes."""
    rows = {table: raw.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}
    columns = [column[1] for column in raw.execute("PRAGMA table_info(runs)")]
    kept = [index for index, column in enumerate(columns) if column not in CHANGED_BY_FAILING]
    rows["runs"] = [tuple(row[index] for index in kept) for row in rows["runs"]]
    return rows


ALL_TAMPERINGS = TAMPERINGS | {
    "a leased slice is gone": "DELETE FROM slices WHERE start = 10",
    "an outcome was added": "UPDATE runs SET outcomes = '[15, 0, 0, 0, 0, 0, 0, 0]'",
    "an outcome became another": "UPDATE runs SET outcomes = '[13, 0, 1, 0, 0, 0, 0, 0]'",
    "an outcome is missing": "UPDATE runs SET outcomes = '[10]'",
    "statuses were added": """UPDATE accounts SET statuses = '{"200": 14, "404": 1}'""",
    "the histogram is gone": "UPDATE accounts SET times = x'90'",
    "the histogram is none": "UPDATE accounts SET times = x'00112233'",
    "two leases have one range": "UPDATE leases SET start = 10, stop = 20 WHERE start = 20",
    "an open lease covers more": "UPDATE leases SET covered = 5 WHERE start = 20",
}


def begin(lease: LeaseRecord) -> CheckpointBatch:
    """The first checkpoint of a lease: five requests were sent, and one of them is in flight."""
    return build_batch(lease, build_checkpoint(lease, 5, [2], is_final=False))


def assert_breach(ledger: Ledger, raw: sqlite3.Connection, batches: list[CheckpointBatch]) -> None:
    """Assert that taking these messages in raises, changes nothing, and fails the run."""
    before = read_all(raw)
    with pytest.raises(ConservationError, match="run r1 does not balance: ") as caught:
        apply_batches(ledger, batches, 6.0)
    assert isinstance(caught.value, BreachError)
    record = read(ledger, fetch_run, "r1")
    assert (record.state, record.reason) == (RunState.FAILED, caught.value.detail)
    assert (record.ended_at, record.active_since) == (6.0, None)
    assert read_all(raw) == before
    assert read(ledger, fetch_snapshot, "r1").breach == caught.value.detail


@pytest.mark.parametrize("is_reopened", [False, True], ids=["in memory", "opened again"])
@pytest.mark.parametrize("tampering", ALL_TAMPERINGS.values(), ids=ALL_TAMPERINGS)
def test_a_breach_ends_the_run_and_repairs_nothing(
    path: Path, ledger: Ledger, raw: sqlite3.Connection, deal: Deal, tampering: str,
    *, is_reopened: bool,
) -> None:  # fmt: skip
    """The next change is rolled back as a whole and raises, and the run fails with the reason.

    A coordinator that comes back does not take what it finds for granted, either.
    """
    done, out, other = deal(), deal(), deal()
    apply_batches(ledger, [build_batch(done, build_checkpoint(done)), begin(other)], 5.0)
    last = build_batch(out, build_checkpoint(out))
    if is_reopened:
        ledger.close()
    assert raw.execute(tampering).rowcount == 1
    if not is_reopened:
        assert_breach(ledger, raw, [last])
        return
    with closing(Ledger(path)) as again:
        assert_breach(again, raw, [last])


@pytest.mark.parametrize(
    "change",
    [
        lambda ledger, _: deal_lease(ledger, "r1", 10, 6.0),
        lambda ledger, lease: expire(ledger, [lease], ExpiryReason.WORKER_LOST, 6.0),
        lambda ledger, _: change_ledger(ledger, change_state, "r1", RunState.PAUSING, 6.0),
    ],
    ids=["dealing", "taking back", "pausing"],
)
def test_every_change_of_a_run_ends_with_the_check(
    ledger: Ledger, raw: sqlite3.Connection, deal: Deal, make_batch: MakeBatch, apply: Apply,
    change: Callable[[Ledger, str], object],
) -> None:  # fmt: skip
    """Whatever a change is about, the whole run must balance after it."""
    done, out = deal(), deal()
    apply([make_batch(done)], 5.0)
    raw.execute("UPDATE runs SET outcomes = '[11, 0, 0, 0, 0, 0, 0, 0]'")
    before = read_all(raw)
    with pytest.raises(BreachError, match=r"its outcomes are \[11, .*, but its accounts sum to \[10, "):
        change(ledger, out.id)
    assert read(ledger, fetch_run, "r1").state == RunState.FAILED
    assert read_all(raw) == before


def test_a_breach_is_the_end_of_one_run_only(
    ledger: Ledger, raw: sqlite3.Connection, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """The checkpoints of other runs in the same batch can be taken in after it, and no other run fails."""
    broken, sound = deal(run="broken"), deal(run="sound")
    raw.execute("DELETE FROM slices WHERE run = 'broken' AND state = 'pending'")
    batches = [make_batch(sound, done=5), make_batch(broken)]
    with pytest.raises(BreachError, match="run broken does not balance"):
        apply(batches, 5.0)
    assert read(ledger, fetch_run, "sound").accounted == 0
    assert apply(batches, 6.0) == [MessageVerdict.CLOSED, MessageVerdict.LATE]
    assert read(ledger, fetch_run, "sound").state == RunState.RUNNING
    assert read(ledger, fetch_run, "sound").accounted == 5


def test_a_run_that_fails_closes_its_period(
    ledger: Ledger, raw: sqlite3.Connection, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """A run was active until it failed."""
    lease = deal()
    apply([make_batch(lease, is_final=False)], 5.0)
    raw.execute("DELETE FROM slices WHERE state = 'pending'")
    with pytest.raises(BreachError):
        expire(ledger, [lease.id], ExpiryReason.WORKER_LOST, 9.0)
    record = read(ledger, fetch_run, "r1")
    assert (record.active_s, record.active_since, record.ended_at) == (6.0, None, 9.0)


def test_a_run_that_is_over_stays_as_it_is_and_the_breach_is_shown(
    ledger: Ledger, path: Path, raw: sqlite3.Connection, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """Everybody who looks at the run sees the breach, readers of the file included."""
    apply([make_batch(deal(100))], 5.0)
    assert read(ledger, fetch_snapshot, "r1").breach is None
    raw.execute("UPDATE workers SET requests = 99")
    reader = Ledger(path, read_only=True)
    for reading in (ledger, reader):
        snapshot = read(reading, fetch_snapshot, "r1")
        assert snapshot.record.state == RunState.COMPLETED
        assert snapshot.breach == "the workers' requests sum to 99, but 100 are accounted"
        with pytest.raises(BreachError):
            check_ledger(reading, "r1")
    reader.close()


def test_a_run_that_does_not_balance_does_not_keep_others_from_being_paused(
    ledger: Ledger, raw: sqlite3.Connection, deal: Deal
) -> None:
    """It fails, and the other runs are paused."""
    for run in ("a", "broken", "c"):
        deal(run=run)
    raw.execute("DELETE FROM slices WHERE run = 'broken' AND state = 'leased'")
    pause_interrupted(ledger, 9.0)
    states = {record.run: record.state for record in read(ledger, fetch_runs)}
    assert states == {"a": RunState.PAUSED, "broken": RunState.FAILED, "c": RunState.PAUSED}
