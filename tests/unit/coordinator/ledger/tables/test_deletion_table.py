import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.kit.coordinators.leases import deal_lease
from tests.kit.coordinators.long_ledger import LONG_RUN, make_long_ledger

from oku_coordinator.ledger import Ledger, UnknownRunError
from oku_coordinator.ledger.storage.records import LeaseRecord, RunInUseError, RunRecord
from oku_core.accounting.message_verdict import MessageVerdict
from oku_core.accounting.run_state import RunState
from oku_core.messaging.lease import Claim, Report
from oku_core.results.event import Event, EventType
from oku_core.results.lines import LineKind
from oku_core.results.sample import Sample
from oku_core.results.summary import ProcessSummary
from oku_core.spec.spec import Spec

Cut = Callable[..., LeaseRecord]
MakeReport = Callable[..., Report]
MakeClaim = Callable[..., Claim]
STEPS = 10_000


def fill(ledger: Ledger, cut: Cut, make_report: MakeReport, make_claim: MakeClaim, run: str) -> list[Claim]:
    """Make a paused run with a row in every table; gives claims that may still come on its leases."""
    leases = [cut(10, run=run) for _ in range(3)]
    ledger.leases.apply([make_claim(leases[0]), make_claim(leases[0], execution="e2")], 3.0)
    reports = [make_report(lease, busy_share=0.99) for lease in leases]
    ledger.leases.apply(reports, 4.0)
    sample = Sample(
        at=5.0, seconds=1.0, requests_total=0, accounted=0, leased=0, pending=0, done=0,
        resent_at_most=0, in_flight=0, workers=1,
    )  # fmt: skip
    event = Event(at=5.0, type=EventType.STATE, text="x")
    ledger.history.keep_sample(run, sample, [(LineKind.TICK, [{"x": 1}])], [event])
    ledger.runs.keep_processes(run, [ProcessSummary(name="broker", peak_mb=1.0)])
    ledger.runs.note_servers(run, ["a", "b"], 5.0)
    ledger.runs.change_state(run, RunState.PAUSED, 6.0)
    return [make_claim(lease, execution="e3") for lease in leases]


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


def clear(ledger: Ledger) -> int:
    """Remove all that is left of deleted runs; gives the number of transactions that it took."""
    for steps in range(STEPS):
        run = ledger.deletions.find()
        if run is None:
            return steps
        ledger.deletions.delete_some(run)
    raise AssertionError("it does not come to an end")


@pytest.fixture
def published(path: Path) -> Ledger:
    """A ledger whose runs have lines for Loki."""
    return Ledger(path, publishes=True)


def test_nothing_is_left_of_a_deleted_run(
    path: Path, monkeypatch: pytest.MonkeyPatch, make_report: MakeReport, make_claim: MakeClaim
) -> None:
    """No table has a row of it afterwards, whatever the batches were, and no other run has lost any."""
    for most in (1, 2, 7, 500):
        monkeypatch.setattr("oku_coordinator.ledger.ledger_deletions.DELETED_AT_ONCE", most)
        file = path.with_name(f"{most}.sqlite3")
        with closing(Ledger(file, publishes=True)) as ledger:

            def cut(size: int, run: str, ledger: Ledger = ledger) -> LeaseRecord:
                lease = deal_lease(ledger, run, size, 2.0)
                assert lease is not None
                return lease

            for run in ("r1", "r2"):
                ledger.runs.create(run, Spec(requests=100), 0.0)
                ledger.runs.change_state(run, RunState.RUNNING, 1.0)
                claims = fill(ledger, cut, make_report, make_claim, run)
            before = count_rows(file, "r2")
            assert len(before) >= 13
            record, lengths = ledger.runs.fetch("r2"), ledger.check("r2")
            lines = ledger.outbox.measure().lines
            assert ledger.deletions.begin("r1") == lines / 2
            clear(ledger)
            assert count_rows(file, "r1") == {}
            assert count_rows(file, "r2") == before
            assert (ledger.runs.fetch("r2"), ledger.check("r2")) == (record, lengths)
            assert ledger.outbox.measure().lines == lines / 2
            assert ledger.leases.apply(claims, 9.0) == [MessageVerdict.STRAY] * 3


def test_a_deleted_run_is_found_by_nobody(
    ledger: Ledger, cut: Cut, make_report: MakeReport, make_claim: MakeClaim
) -> None:
    """It is gone with the first transaction; late messages of its workers do no harm."""
    claims = fill(ledger, cut, make_report, make_claim, "r1")
    other = cut(run="r2")
    ledger.deletions.begin("r1")
    assert [listed.run for listed in ledger.runs.fetch_page()] == ["r2"]
    for call in (ledger.runs.fetch, ledger.runs.fetch_snapshot, ledger.deletions.begin):
        with pytest.raises(UnknownRunError):
            call("r1")
    verdicts = ledger.leases.apply([*claims, make_report(other)], 9.0)
    assert verdicts == [*[MessageVerdict.UNKNOWN] * 3, MessageVerdict.ACCOUNTED]
    clear(ledger)
    ledger.history.note("r1", [Event(at=9.0, type=EventType.STATE, text="x")])
    assert ledger.history.fetch("r1").events == []
    assert ledger.check("r2").accounted == other.length


@pytest.mark.parametrize("state", [RunState.PENDING, RunState.RUNNING, RunState.PAUSING, RunState.CANCELLING])
def test_a_run_that_is_not_at_rest_is_not_deleted(
    ledger: Ledger, begin_run: Callable[..., RunRecord], cut: Cut, state: RunState
) -> None:
    """The error names the state that it is in."""
    if state == RunState.PENDING:
        ledger.runs.create("r1", Spec(requests=1), 0.0)
    else:
        cut()
    if state not in (RunState.PENDING, RunState.RUNNING):
        ledger.runs.change_state("r1", state, 3.0)
    with pytest.raises(RunInUseError, match=f"run r1 is {state}; it cannot be deleted before"):
        ledger.deletions.begin("r1")
    assert ledger.runs.fetch("r1").state == state


def test_a_deletion_goes_on_where_a_process_ended(path: Path) -> None:
    """The ledger knows which run still has rows."""
    make_long_ledger(path, runs=2, leases=3000, samples=5)
    with closing(Ledger(path)) as ledger:
        ledger.deletions.begin(LONG_RUN)
        assert ledger.deletions.delete_some(LONG_RUN)
    with closing(Ledger(path)) as again:
        assert again.deletions.find() == LONG_RUN
        assert clear(again) > 3
        assert count_rows(path, LONG_RUN) == {}
        assert [listed.run for listed in again.runs.fetch_page()] == ["run-0", "run-1"]


def test_a_deletion_never_takes_long(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each transaction changes some hundreds of rows, however many there are."""
    make_long_ledger(path, runs=2, leases=20_000, samples=5)
    changes: list[int] = []
    connect = sqlite3.connect
    opened: list[sqlite3.Connection] = []

    def open_counted(*arguments: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr("oku_coordinator.ledger.storage.schema.sqlite3.connect", open_counted)
    with closing(Ledger(path)) as ledger:
        ledger.deletions.begin(LONG_RUN)
        while True:
            before = opened[-1].total_changes
            more = ledger.deletions.delete_some(LONG_RUN)
            changes.append(opened[-1].total_changes - before)
            if not more:
                break
    assert sum(changes) > 20_000
    assert max(changes) <= 510


def test_the_space_of_a_deleted_run_is_given_back(path: Path) -> None:
    """The file shrinks by some pages at a time."""
    make_long_ledger(path, runs=2, leases=20_000, samples=5)
    before = path.stat().st_size
    with closing(Ledger(path)) as ledger:
        ledger.deletions.begin(LONG_RUN)
        clear(ledger)
        steps = 1
        while ledger.deletions.give_back():
            steps += 1
        assert not ledger.deletions.give_back()
    assert 3 <= steps < 30
    assert path.stat().st_size < before / 5


def test_an_older_ledger_gives_space_back_once_it_is_written_anew(path: Path) -> None:
    """Until then its free space is reused, and nobody waits for it for ever."""
    make_long_ledger(path, runs=2, leases=20_000, samples=5)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("PRAGMA auto_vacuum = NONE")
        database.execute("VACUUM")
    before = path.stat().st_size
    with closing(Ledger(path)) as ledger:
        ledger.deletions.begin(LONG_RUN)
        clear(ledger)
        assert not ledger.deletions.give_back()
        ledger.deletions.rebuild()
        ledger.deletions.rebuild()
        assert ledger.check("run-1").accounted == 4000
    assert path.stat().st_size < before / 5


def test_runs_that_are_too_many_or_too_old_are_found(ledger: Ledger, cut: Cut) -> None:
    """The oldest come first, and runs that are not over are kept."""
    for number in range(5):
        ledger.runs.create(f"r{number}", Spec(requests=1), float(number))
        ledger.runs.change_state(f"r{number}", RunState.CANCELLED, 10.0 + number)
    ledger.runs.create("paused", Spec(requests=1), 0.0)
    ledger.runs.change_state("paused", RunState.PAUSED, 0.0)
    assert ledger.deletions.find_surplus(None, None) == []
    assert ledger.deletions.find_surplus(3, None) == ["r0", "r1"]
    assert ledger.deletions.find_surplus(0, None) == ["r0", "r1", "r2", "r3", "r4"]
    assert ledger.deletions.find_surplus(None, 13.0) == ["r0", "r1", "r2"]
    assert ledger.deletions.find_surplus(4, 11.5) == ["r0", "r1"]


def test_a_run_whose_lines_wait_for_loki_is_kept_by_retention(published: Ledger) -> None:
    """It is kept until Loki has its lines."""
    published.runs.create("r1", Spec(requests=1), 0.0)
    published.runs.change_state("r1", RunState.CANCELLED, 1.0)
    published.outbox.put_summary("r1", {"x": 1}, [], 1.0)
    assert published.deletions.find_surplus(0, None) == []
    published.outbox.remove(published.outbox.take(100, 10**6, 2.0))
    assert published.deletions.find_surplus(0, None) == ["r1"]
    published.close()
