import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.leases import Apply, BeginRun, Deal, MakeBatch, apply_batches, deal_lease
from tests.kit.coordinators.long_ledger import LONG_RUN, make_long_ledger
from tests.kit.coordinators.transactions import change, check_ledger, read

from oku_coordinator.ledger import Ledger, UnknownRunError
from oku_coordinator.ledger.rules.history import fetch_history, keep_events, keep_second, put_summary
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.storage.records import RunInUseError
from oku_coordinator.ledger.tables import outbox_table
from oku_coordinator.ledger.tables.accounts.work_table import keep_processes, record_servers
from oku_coordinator.ledger.tables.deletion_table import (
    DELETED_AT_ONCE,
    begin_deletion,
    delete_some,
    find_deletion,
    find_surplus,
)
from oku_coordinator.ledger.tables.outbox_table import fetch_batch
from oku_coordinator.ledger.tables.run_table import fetch_run, fetch_runs
from oku_core.accounting.lease_state import MessageVerdict
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.results.event import Event, EventType
from oku_core.results.lines import LineKind
from oku_core.results.sample import Sample
from oku_core.spec.spec import Spec
from oku_core.summary.summary import ProcessSummary

STEPS = 10_000


def fill(ledger: Ledger, deal: Deal, make_batch: MakeBatch, run: str) -> list[CheckpointBatch]:
    """Make a failed run with a row in every table; gives checkpoints that may still come of its leases."""
    leases = [deal(10, run=run) for _ in range(3)]
    apply_batches(
        ledger,
        [make_batch(lease, in_flight=[1, 3, 5], busy_share=0.99, saturated=5) for lease in leases],
        4.0,
    )
    holes = deal(20, run=run)
    apply_batches(ledger, [make_batch(holes, done=6, is_final=False)], 4.5)
    sample = Sample(
        at=5.0, seconds=1.0, requests_total=0, accounted=0, leased=0, pending=0, done=0,
        resent_at_most=0, in_flight=0, workers=1,
    )  # fmt: skip
    event = Event(at=5.0, type=EventType.STATE, text="x")
    change(ledger, keep_second, run, sample)
    change(ledger, outbox_table.put, run, LineKind.TICK, sample.at, [{"x": 1}])
    change(ledger, keep_events, run, [event])
    change(ledger, keep_processes, run, [ProcessSummary(name="broker", peak_mb=1.0)])
    change(ledger, record_servers, run, ["a", "b"], 5.0)
    change(
        ledger, change_state, run, RunState.FAILED, 6.0
    )  # so that its last lease stays open, and has parts
    return [make_batch(lease, sequence=9) for lease in leases]


def count_rows(path: Path, run: str) -> dict[str, int]:
    """The number of rows of a run in each table that has any."""
    with closing(sqlite3.connect(path)) as database:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        counts = {}
        for table in tables:
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            if "run" in columns:
                counts[table] = database.execute(
                    f"SELECT count(*) FROM {table} WHERE run = ?", (run,)
                ).fetchone()[0]
            elif "lease" in columns:
                counts[table] = database.execute(
                    f"SELECT count(*) FROM {table} WHERE lease LIKE ?", (f"{run}.%",)
                ).fetchone()[0]
    return {table: count for table, count in counts.items() if count}


def clear(ledger: Ledger, most: int = DELETED_AT_ONCE) -> int:
    """Remove all that is left of deleted runs; gives the number of transactions that it took."""
    for steps in range(STEPS):
        run = read(ledger, find_deletion)
        if run is None:
            return steps
        change(ledger, delete_some, run, most)
    raise AssertionError("it does not come to an end")


@pytest.fixture
def published(path: Path) -> Ledger:
    """A ledger whose runs have lines for Loki."""
    return open_ledger(path, publishes=True)


def test_nothing_is_left_of_a_deleted_run(path: Path, make_batch: MakeBatch) -> None:
    """No table has a row of it afterwards, whatever the batches were, and no other run has lost any."""
    for most in (1, 2, 7, 500):
        file = path.with_name(f"{most}.sqlite3")
        with closing(open_ledger(file, publishes=True)) as ledger:

            def deal(size: int, run: str, ledger: Ledger = ledger) -> LeaseRecord:
                return deal_lease(ledger, run, size, 2.0)

            for run in ("r1", "r2"):
                change(ledger, create_run, run, Spec(requests=100), 0.0)
                change(ledger, change_state, run, RunState.RUNNING, 1.0)
                late = fill(ledger, deal, make_batch, run)
            before = count_rows(file, "r2")
            assert len(before) >= 15
            record, lengths = read(ledger, fetch_run, "r2"), check_ledger(ledger, "r2")
            lines = read(ledger, outbox_table.measure).lines
            assert change(ledger, begin_deletion, "r1") == lines / 2
            clear(ledger)
            assert count_rows(file, "r1") == {}
            assert count_rows(file, "r2") == before
            assert (read(ledger, fetch_run, "r2"), check_ledger(ledger, "r2")) == (record, lengths)
            assert read(ledger, outbox_table.measure).lines == lines / 2
            assert apply_batches(ledger, late, 9.0) == [MessageVerdict.REPEATED] * 3


def test_a_deleted_run_is_found_by_nobody(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """It is gone with the first transaction; late messages of its workers do no harm."""
    late = fill(ledger, deal, make_batch, "r1")
    other = deal(run="r2")
    change(ledger, begin_deletion, "r1")
    assert [listed.run for listed in read(ledger, fetch_runs)] == ["r2"]
    for function in (fetch_run, fetch_snapshot, begin_deletion):
        with pytest.raises(UnknownRunError):
            change(ledger, function, "r1")
    verdicts = apply([*late, make_batch(other)], 9.0)
    assert verdicts == [*[MessageVerdict.UNKNOWN] * 3, MessageVerdict.CLOSED]
    clear(ledger)
    change(ledger, keep_events, "r1", [Event(at=9.0, type=EventType.STATE, text="x")])
    assert read(ledger, fetch_history, "r1").events == []
    assert check_ledger(ledger, "r2").accounted == other.length


@pytest.mark.parametrize("state", [RunState.PENDING, RunState.RUNNING, RunState.PAUSING, RunState.CANCELLING])
def test_a_run_that_is_not_at_rest_is_not_deleted(
    ledger: Ledger, begin_run: BeginRun, deal: Deal, state: RunState
) -> None:
    """The error names the state that it is in."""
    if state == RunState.PENDING:
        change(ledger, create_run, "r1", Spec(requests=1), 0.0)
    else:
        deal()
    if state not in (RunState.PENDING, RunState.RUNNING):
        change(ledger, change_state, "r1", state, 3.0)
    with pytest.raises(RunInUseError, match=f"run r1 is {state}; it cannot be deleted before"):
        change(ledger, begin_deletion, "r1")
    assert read(ledger, fetch_run, "r1").state == state


def test_a_deletion_goes_on_where_a_process_ended(path: Path) -> None:
    """The ledger knows which run still has rows."""
    make_long_ledger(path, runs=2, leases=3000, samples=5)
    with closing(Ledger(path)) as ledger:
        change(ledger, begin_deletion, LONG_RUN)
        assert change(ledger, delete_some, LONG_RUN)
    with closing(Ledger(path)) as again:
        assert read(again, find_deletion) == LONG_RUN
        assert clear(again) > 3
        assert count_rows(path, LONG_RUN) == {}
        assert [listed.run for listed in read(again, fetch_runs)] == ["run-0", "run-1"]


def test_a_deletion_never_takes_long(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each transaction changes some hundreds of rows, however many there are."""
    make_long_ledger(path, runs=2, leases=5_000, samples=5)
    changes: list[int] = []
    connect = sqlite3.connect
    opened: list[sqlite3.Connection] = []

    def open_counted(*arguments: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr("oku_coordinator.ledger.storage.schema.sqlite3.connect", open_counted)
    with closing(Ledger(path)) as ledger:
        change(ledger, begin_deletion, LONG_RUN)
        while True:
            before = opened[-1].total_changes
            more = change(ledger, delete_some, LONG_RUN)
            changes.append(opened[-1].total_changes - before)
            if not more:
                break
    assert sum(changes) > 5_000
    assert max(changes) <= 510


def test_the_space_of_a_deleted_run_is_given_back(path: Path) -> None:
    """The file shrinks by some pages at a time."""
    make_long_ledger(path, runs=2, leases=20_000, samples=5)
    before = path.stat().st_size
    with closing(Ledger(path)) as ledger:
        change(ledger, begin_deletion, LONG_RUN)
        clear(ledger)
        steps = 1
        while ledger.free_pages():
            steps += 1
        assert not ledger.free_pages()
    assert 3 <= steps < 30
    assert path.stat().st_size < before / 5


def test_runs_that_are_too_many_or_too_old_are_found(ledger: Ledger, deal: Deal) -> None:
    """The oldest come first, and runs that are not over are kept."""
    for number in range(5):
        change(ledger, create_run, f"r{number}", Spec(requests=1), float(number))
        change(ledger, change_state, f"r{number}", RunState.CANCELLED, 10.0 + number)
    change(ledger, create_run, "paused", Spec(requests=1), 0.0)
    change(ledger, change_state, "paused", RunState.PAUSED, 0.0)
    assert read(ledger, find_surplus, None, None) == []
    assert read(ledger, find_surplus, 3, None) == ["r0", "r1"]
    assert read(ledger, find_surplus, 0, None) == ["r0", "r1", "r2", "r3", "r4"]
    assert read(ledger, find_surplus, None, 13.0) == ["r0", "r1", "r2"]
    assert read(ledger, find_surplus, 4, 11.5) == ["r0", "r1"]


def test_a_run_whose_lines_wait_for_loki_is_kept_by_retention(published: Ledger) -> None:
    """It is kept until Loki has its lines."""
    change(published, create_run, "r1", Spec(requests=1), 0.0)
    change(published, change_state, "r1", RunState.CANCELLED, 1.0)
    change(published, put_summary, "r1", {"x": 1}, [], 1.0)
    assert read(published, find_surplus, 0, None) == []
    change(published, outbox_table.remove, change(published, fetch_batch, 100, 10**6, 2.0))
    assert read(published, find_surplus, 0, None) == ["r1"]
    published.close()
