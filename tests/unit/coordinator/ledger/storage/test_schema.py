import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.kit.coordinators.leases import apply_batches, deal_lease
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.schema import VERSION, open_database
from oku_core.accounting.interval import Lengths
from oku_core.accounting.lease_state import ExpiryReason, LeaseState
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.results.event import EventType
from oku_core.results.lines import LineKind
from oku_core.results.summary import Flag

FOLDER = Path(__file__).parent
OLD = {version: (FOLDER / f"version_{version}.sql").read_text() for version in (8, 9, 10, 11, 12)}
"""Ledgers of older versions, as coordinators left them that were killed in the middle of run r1."""


def test_a_new_ledger_is_durable_and_has_its_tables(path: Path) -> None:
    """Every commit is synchronised, and readers do not hold the writer up."""
    database = open_database(path)
    assert database.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert database.execute("PRAGMA synchronous").fetchone()[0] == 2  # FULL
    tables = {row["name"] for row in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert {
        "runs",
        "slices",
        "leases",
        "lease_parts",
        "series",
        "workers",
        "flags",
        "processes",
        "outbox",
    } < tables
    database.close()


def test_a_ledger_is_opened_again_as_it_is(path: Path) -> None:
    """Its tables are made once."""
    first = open_database(path)
    first.execute("INSERT INTO flags VALUES ('r1', 'resent', 1, 0)")
    first.close()
    second = open_database(path)
    assert second.execute("SELECT count(*) FROM flags").fetchone()[0] == 1
    second.close()


@pytest.mark.parametrize(
    ("version", "advice"),
    [
        (7, "and upgrades from version 8: move the file away to begin a new one"),
        (99, "use the newer Oku that wrote it"),
    ],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_ledger_that_cannot_be_upgraded_is_refused(
    path: Path, version: int, advice: str, *, read_only: bool
) -> None:
    """The message says which version the ledger has, which one is read, and what to do."""
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version = {version}")
    refusal = rf"ledger\.sqlite3: the ledger has version {version}, this Oku reads version {VERSION}"
    with pytest.raises(UserError, match=f"{refusal}.*{advice}"):
        open_database(path, read_only=read_only)


def test_a_file_that_is_not_a_database_is_not_a_ledger(path: Path) -> None:
    """The file is left as it is."""
    path.write_bytes(b"a text of more than a hundred bytes " * 10)
    with pytest.raises(UserError, match="is not a ledger: file is not a database"):
        open_database(path)
    assert path.read_bytes().startswith(b"a text")


@pytest.mark.parametrize("content", [None, b""])
def test_there_is_nothing_to_read_where_no_ledger_was_made(path: Path, content: bytes | None) -> None:
    """There may be no file, or an empty one that a coordinator left when it was killed at its start."""
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match="there is no ledger"):
        open_database(path, read_only=True)


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    """The error is one line."""
    with pytest.raises(UserError, match="No such file or directory"):
        open_database(tmp_path / "nowhere" / "ledger.sqlite3")


@pytest.fixture(params=[8, 9, 10, 12])
def old(path: Path, request: pytest.FixtureRequest) -> Path:
    """A ledger of an older version."""
    return restore(path, request.param)


def restore(path: Path, version: int) -> Path:
    """Restore a ledger of an older version."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        database.executescript(OLD[version])
    return path


def test_an_upgraded_ledger_has_the_tables_of_a_new_one(old: Path, tmp_path: Path) -> None:
    """Columns have the same names, types and defaults, whatever their order, and so have the indices."""
    with closing(open_database(old)) as upgraded, closing(open_database(tmp_path / "new")) as new:
        assert list_schema(upgraded) == list_schema(new)


def test_whoever_only_reads_does_not_upgrade_a_ledger(old: Path) -> None:
    """The message names the command that does, and the ledger stays as it is."""
    with closing(sqlite3.connect(old)) as database:
        version = database.execute("PRAGMA user_version").fetchone()[0]
    with pytest.raises(
        UserError, match=rf"has version {version}, .*: upgrade it with `oku runs`, or start a"
    ):
        open_database(old, read_only=True)
    with closing(sqlite3.connect(old)) as database:
        assert database.execute("PRAGMA user_version").fetchone()[0] == version


def test_an_upgraded_ledger_has_its_run_with_account_and_history(path: Path) -> None:
    """All that version 8 kept of a run is read, packed samples, events and waiting lines included."""
    with closing(Ledger(restore(path, 8))) as ledger:
        snapshot = ledger.runs.fetch_snapshot("r1")
        history = ledger.history.fetch("r1")
        marks = [mark for page in ledger.history.read_leases("r1") for mark in page]
        lines = ledger.outbox.take(100, 10**6, 6.0)
        assert ledger.runs.fetch_servers("r1") == {"store-1": 4.0}
    assert (snapshot.record.name, snapshot.record.spec.urls) == ("shop", ("http://shop.test/{i}",))
    assert (snapshot.record.state, snapshot.record.resent_at_most) == (RunState.RUNNING, 40)
    assert (snapshot.lengths, snapshot.breach) == (Lengths(90, 0, 10), None)
    assert (snapshot.account.outcomes, snapshot.account.latency.total) == (
        make_counts(9, unexpected_status=1),
        10,
    )
    assert [worker.name for worker in snapshot.workers] == ["w1"]
    assert [process.name for process in snapshot.processes] == ["coordinator"]
    assert [flag for flag, _, _ in snapshot.flags] == [Flag.CLOCK_SET, Flag.WORKER_LOST]
    assert [sample.at for sample in history.samples] == [4.0, 5.0]
    assert {tuple(sample.outcomes) for sample in history.samples} == {
        tuple(make_counts(2, unexpected_status=1))
    }
    assert {sample.latency.total for sample in history.samples} == {3}
    assert EventType.LEASE_EXPIRED in {event.type for event in history.events}
    assert [mark.state for mark in marks] == [
        LeaseState.CLOSED, LeaseState.EXPIRED, LeaseState.EXPIRED, LeaseState.EXPIRED,
    ]  # fmt: skip
    assert len(lines) == 10


def test_the_leases_of_an_older_ledger_are_taken_back(path: Path) -> None:
    """Their workers speak another protocol; all of them may have been sent, and the account stays exact."""
    with closing(Ledger(restore(path, 9))) as ledger:
        snapshot = ledger.runs.fetch_snapshot("r1")
        spans = [span for page in ledger.history.read_leases("r1") for span in page]
        taken_back = ledger.leases.fetch_taken_back("r1")
        assert ledger.leases.fetch_open("r1") == []
    assert (snapshot.record.state, snapshot.lengths, snapshot.breach) == (
        RunState.RUNNING,
        Lengths(92, 0, 8),
        None,
    )
    # Cut off, two lost leases, a second execution, and two leases that were out.
    assert snapshot.record.resent_at_most == 2 + 20 + 10 + 20
    assert [(span.state, span.reason, span.worker) for span in spans] == [
        (LeaseState.CLOSED, "", "w1"),
        (LeaseState.EXPIRED, "worker_lost", "w2"),
        (LeaseState.EXPIRED, "stack_lost", "w1"),
        (LeaseState.EXPIRED, "stack_lost", "w1"),
        (LeaseState.EXPIRED, "not_taken", None),
        (LeaseState.EXPIRED, "not_sent", None),
    ]
    assert [span.covered for span in spans] == [8, 0, 0, 0, 0, 0]
    assert sorted(taken_back) == [(10, 20), (20, 30), (30, 40), (40, 50)]


def test_the_runs_of_an_older_ledger_rest_that_were_about_to(path: Path) -> None:
    """Nothing of them is out any more; the others stay as they are."""
    with closing(Ledger(restore(path, 9))) as ledger:
        runs = {record.run: record for record in ledger.runs.fetch_page()}
        assert {name: record.state for name, record in runs.items()} == {
            "done": RunState.COMPLETED,
            "pausing": RunState.PAUSED,
            "cancelling": RunState.CANCELLED,
            "r1": RunState.RUNNING,
        }
        for name in runs:
            assert ledger.runs.fetch_snapshot(name).breach is None
        assert set(ledger.outbox.find_owing()) == {"done", "pausing", "cancelling"}
    assert (runs["pausing"].active_since, runs["pausing"].active_s) == (None, 1.0)
    assert (runs["cancelling"].active_since, runs["cancelling"].ended_at) == (None, 3.0)


@pytest.mark.parametrize("version", OLD)
def test_a_run_of_an_upgraded_ledger_is_resumed_to_its_end(
    path: Path, make_batch: Callable[..., CheckpointBatch], version: int
) -> None:
    """Its interrupted leases are dealt again, and every request is accounted once."""
    with closing(Ledger(restore(path, version))) as ledger:
        ledger.runs.park_interrupted(6.0)
        ledger.runs.change_state("r1", RunState.PENDING, 7.0)
        ledger.runs.change_state("r1", RunState.RUNNING, 8.0)
        while lease := deal_lease(ledger, "r1", 50, 9.0):
            apply_batches(ledger, [make_batch(lease)], 10.0)
        snapshot = ledger.runs.fetch_snapshot("r1")
    assert (snapshot.record.state, snapshot.breach) == (RunState.COMPLETED, None)
    assert snapshot.account.accounted == snapshot.record.requests


def test_the_open_leases_of_a_ledger_with_fewer_outcomes_are_taken_back_with_what_they_cover(
    path: Path,
) -> None:
    """Their parts, the seconds and the account have a zero for each new outcome, and lines can be made."""
    with closing(Ledger(restore(path, 10), publishes=True)) as ledger:
        before = ledger.runs.fetch_snapshot("r1")
        open_leases = ledger.leases.fetch_open("r1")
        ledger.leases.take_back([lease.id for lease in open_leases], ExpiryReason.DROPPED, 7.0)
        after = ledger.runs.fetch_snapshot("r1")
        lines = ledger.outbox.take(1000, 10**6, 8.0)
        samples = ledger.history.fetch("r1").samples
    assert [lease.outcomes for lease in open_leases] == [
        make_counts(2, unexpected_status=1, timeout=2), make_counts(), make_counts(),
    ]  # fmt: skip
    assert (before.breach, after.breach) == (None, None)
    assert before.lengths == Lengths(pending=41, leased=43, accounted=16)
    assert after.lengths == Lengths(pending=84, leased=0, accounted=16)
    assert list(after.accounts.parts) == [("", "")]
    assert after.account.outcomes == make_counts(13, unexpected_status=1, timeout=2)
    assert after.account.latency.total == 14
    covered = [json.loads(line.text) for line in lines if line.run == "r1" and line.kind == LineKind.RANGE]
    assert sum(line["requests"] for line in covered) == 16
    assert sum(sum(sample.outcomes) for sample in samples) == 16


@pytest.mark.parametrize(
    ("damage", "is_found"),
    [
        ("UPDATE series SET outcomes = 'x'", True),
        ("UPDATE leases SET outcomes = 'x' WHERE state = 'active'", True),
        ("UPDATE lease_parts SET body = x'00'", False),  # until it is looked at
    ],
)
def test_a_ledger_is_upgraded_though_a_row_of_it_cannot_be_read(
    path: Path, damage: str, *, is_found: bool
) -> None:
    """It is the breach of its run, and no other run has anything to do with it."""
    with closing(sqlite3.connect(restore(path, 10))) as database:
        database.execute(damage)
        database.commit()
    with closing(Ledger(path)) as ledger:
        breach = ledger.runs.fetch_snapshot("r1").breach
    assert (breach is not None) == is_found


def test_a_ledger_is_upgraded_though_the_outcomes_of_a_run_cannot_be_read(path: Path) -> None:
    """The row stays as it is."""
    with closing(sqlite3.connect(restore(path, 10))) as database:
        database.execute("UPDATE runs SET outcomes = '[1,' WHERE run = 'r1'")
        database.commit()
    with closing(open_database(path)) as database:
        assert database.execute("SELECT outcomes FROM runs WHERE run = 'r1'").fetchone()[0] == "[1,"
        assert database.execute("PRAGMA user_version").fetchone()[0] == VERSION


def list_schema(database: sqlite3.Connection) -> set[tuple[str, str, object]]:
    """Tables, with name, type, obligation, default and key of their columns, and the text of indices."""
    rows = database.execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
    columns = 'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?)'
    return {
        (
            kind,
            name,
            " ".join((text or "").split())
            if kind == "index"
            else frozenset(tuple(row) for row in database.execute(columns, (name,))),
        )
        for kind, name, text in rows
    }


def test_the_counts_of_an_older_ledger_get_the_outcomes_that_are_new(path: Path) -> None:
    """Of its run, its open leases and its seconds; the run goes on with them."""
    with closing(Ledger(restore(path, 11))) as ledger:
        snapshot = ledger.runs.fetch_snapshot("r1")
        leases = ledger.leases.fetch_open("r1")
    assert (snapshot.breach, snapshot.record.state) == (None, RunState.RUNNING)
    assert snapshot.account.outcomes == make_counts(4713)
    assert [lease.outcomes for lease in leases] == [
        make_counts(1422),
        make_counts(1417),
        make_counts(0),
        make_counts(0),
    ]


def test_a_ledger_of_version_12_gets_room_for_user_code(path: Path) -> None:
    """Its counts have a zero for exceptions, and it has no inner requests; all else is as it was."""
    with closing(Ledger(restore(path, 12))) as ledger:
        snapshot = ledger.runs.fetch_snapshot("r1")
        leases = ledger.leases.fetch_open("r1")
        samples = ledger.history.fetch("r1").samples
    assert (snapshot.breach, snapshot.record.state) == (None, RunState.RUNNING)
    assert snapshot.account.outcomes == make_counts(2231, failed_check=486)
    assert [count.requests for _, count in snapshot.accounts.list_reasons()] == [486]
    assert (snapshot.accounts.inner, snapshot.tracebacks) == ({}, {})
    assert snapshot.record.count_name == "r1", "delay servers have counted for this name"
    assert [lease.outcomes for lease in leases] == [
        make_counts(55, failed_check=14), make_counts(644, failed_check=153), make_counts(), make_counts(),
    ]  # fmt: skip
    assert [lease.at_risk for lease in leases[:2]] == [
        len(lease.in_flight) + lease.bound - lease.done for lease in leases[:2]
    ]
    assert {len(sample.outcomes) for sample in samples} == {len(make_counts())}


def test_an_upgraded_ledger_knows_the_first_wait_of_its_runs(path: Path) -> None:
    """That of later turns is not known; nobody has begun a run yet that has no start."""
    with closing(sqlite3.connect(restore(path, 12))) as database:
        database.execute("UPDATE runs SET created_at = 100.0, started_at = 103.5, queued_at = 200.0")
        database.commit()
    with closing(Ledger(path)) as ledger:
        assert [row.queued_s for row in ledger.runs.fetch_page()] == [3.5]
        assert [row.run for row in ledger.runs.fetch_recent(0.0, 20)] == ["r1"]
