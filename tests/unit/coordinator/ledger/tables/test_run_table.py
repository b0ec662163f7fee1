import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.kit.coordinators.leases import BeginRun, Deal
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot, fetch_standing
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables.run_table import (
    MOST_SPECS,
    count_by_state,
    fetch_current_run,
    fetch_recent,
    fetch_run,
    fetch_runs,
    find_longest_queued_s,
)
from oku_core.accounting.run_state import RunState
from oku_core.spec import engine_choice
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.url import Url


def find_next(ledger: Ledger) -> str | None:
    """The id of the run that has its turn."""
    record = read(ledger, fetch_current_run)
    return record.run if record else None


def test_runs_are_listed_from_the_newest(ledger: Ledger) -> None:
    """Runs that were created at the same time are in the order of their submission."""
    assert read(ledger, fetch_runs) == []
    for run, now in [("a", 1.0), ("c", 2.0), ("b", 2.0)]:
        change(ledger, create_run, run, Spec(requests=1), now)
    assert [record.run for record in read(ledger, fetch_runs)] == ["b", "c", "a"]


def test_delay_servers_know_each_run_by_a_name_that_its_id_does_not_tell(ledger: Ledger) -> None:
    """It fits a row of their counts, is drawn anew for each run, and stays."""
    ids = [f"r{number}" for number in range(20)]
    names = {change(ledger, create_run, run, Spec(requests=1), 1.0).count_name for run in ids}
    assert len(names) == len(ids)
    assert {len(name) for name in names} == {32}
    assert {read(ledger, fetch_run, run).count_name for run in ids} == names
    assert not any(name in repr(read(ledger, fetch_run, run)) for run in ids for name in names)


def test_the_run_that_has_waited_longest_has_its_turn(ledger: Ledger) -> None:
    """Its name does not matter; without runs nobody has a turn."""
    assert find_next(ledger) is None
    for run, now in [("b", 1.0), ("a", 2.0)]:
        change(ledger, create_run, run, Spec(requests=1), now)
    assert find_next(ledger) == "b"
    change(ledger, change_state, "b", RunState.CANCELLED, 3.0)
    assert find_next(ledger) == "a"


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.PAUSING, RunState.CANCELLING])
def test_an_active_run_keeps_its_turn(
    ledger: Ledger, begin_run: BeginRun, deal: Deal, state: RunState
) -> None:
    """A run that waits does not get in between, although it was submitted first."""
    change(ledger, create_run, "waiting", Spec(requests=1), -1.0)
    begin_run("r1")
    deal()
    if state != RunState.RUNNING:
        change(ledger, change_state, "r1", state, 2.0)
    assert read(ledger, fetch_run, "r1").state == state
    assert find_next(ledger) == "r1"


def test_a_paused_run_lets_others_have_their_turn_and_comes_behind_them(
    ledger: Ledger, begin_run: BeginRun
) -> None:
    """Resuming puts a run at the end of the queue."""
    begin_run("first")
    change(ledger, create_run, "second", Spec(requests=1), 5.0)
    change(ledger, change_state, "first", RunState.PAUSING, 6.0)
    assert find_next(ledger) == "second"
    change(ledger, change_state, "first", RunState.PENDING, 7.0)
    assert find_next(ledger) == "second"
    change(ledger, change_state, "second", RunState.PAUSED, 8.0)
    assert find_next(ledger) == "first"


@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_runs_are_listed_in_pages(ledger: Ledger, size: int) -> None:
    """Each run is listed once, the newest first, even if one is submitted in between or several have one
    time.
    """
    times = {"a": 1.0, "b": 2.0, "c": 2.0, "d": 2.0, "e": 3.0}
    for run, now in times.items():
        change(ledger, create_run, run, Spec(requests=1), now)
    page = read(ledger, fetch_runs, size)
    change(ledger, create_run, "new", Spec(requests=1), 4.0)
    seen = list(page)
    while page := read(ledger, fetch_runs, size, page[-1].cursor):
        assert len(page) <= size
        seen += page
    assert [listed.run for listed in seen] == ["e", "d", "c", "b", "a"]


def list_found(ledger: Ledger, reference: str) -> list[str]:
    """The runs that a text stands for, newest first."""
    return [row.run for row in read(ledger, fetch_runs, reference=reference)]


def test_a_text_stands_for_an_id_then_the_latest_run_then_a_name_then_a_part_of_an_id(ledger: Ledger) -> None:
    """What comes first hides what comes later, so that a name cannot be taken for an id."""
    names = {"1-ab": "1-cd", "1-cd": "ab", "1-ef": "ab", "2-ab": "latest", "2-%": "", "2-_": ""}
    for now, (run, name) in enumerate(names.items()):
        change(ledger, create_run, run, Spec(requests=1, name=name), float(now // 2))
    assert list_found(ledger, "1-cd") == ["1-cd"], "an id, although another run has it as its name"
    assert list_found(ledger, "latest") == ["2-_"], "of two that came at the same time, the later one"
    assert list_found(ledger, "ab") == ["1-ef", "1-cd"], "a name, although it is a part of other ids"
    assert list_found(ledger, "-a") == ["2-ab", "1-ab"]
    assert list_found(ledger, "%") == ["2-%"], "a part means itself, and no pattern"
    assert list_found(ledger, "_") == ["2-_"]
    assert list_found(ledger, "AB") == []
    change(ledger, create_run, "latest", Spec(requests=1), 0.0)
    assert list_found(ledger, "latest") == ["latest"], "an id comes first"


LONG_COLUMNS = {("accounts", "times"), ("accounts", "statuses")}


def test_the_state_of_a_run_is_read_without_its_histogram(
    path: Path, ledger: Ledger, begin_run: BeginRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists and ticks do not read it either; the spec is read once, and never for a list."""
    begin_run("r1")
    reads: set[tuple[str, str]] = set()
    connect = sqlite3.connect

    def note(action: int, table: str | None, column: str | None, *_: object) -> int:
        if action == sqlite3.SQLITE_READ:
            reads.add((str(table), str(column)))
        return sqlite3.SQLITE_OK

    def open_noted(*arguments: Any, **options: Any) -> sqlite3.Connection:
        database: sqlite3.Connection = connect(*arguments, **options)
        database.set_authorizer(note)
        return database

    monkeypatch.setattr("oku_coordinator.ledger.storage.schema.sqlite3.connect", open_noted)
    reader = ledger.open_reader()
    assert [row.state for row in read(reader, fetch_runs)] == [RunState.RUNNING]
    assert [row.run for row in read(reader, fetch_runs, reference="1")] == ["r1"]
    assert not reads & (LONG_COLUMNS | {("specs", "spec")})
    assert read(reader, fetch_run, "r1").state == RunState.RUNNING
    assert ("specs", "spec") in reads
    reads.clear()
    read(reader, fetch_standing, "r1")
    read(reader, fetch_current_run)
    assert not reads & (LONG_COLUMNS | {("specs", "spec")})
    read(reader, fetch_snapshot, "r1")
    assert reads >= LONG_COLUMNS
    reader.close()


def test_a_spec_is_decoded_once(ledger: Ledger) -> None:
    """It never changes; only a few specs are kept decoded."""
    for number in range(2 * MOST_SPECS):
        change(ledger, create_run, f"r{number}", Spec(requests=1, name=f"number {number}"), 1.0)
    records = [read(ledger, fetch_run, f"r{number}") for number in range(2 * MOST_SPECS)]
    assert [record.spec.name for record in records] == [record.name for record in records]
    assert read(ledger, fetch_run, records[-1].run).spec is records[-1].spec
    assert read(ledger, fetch_run, records[0].run).spec is not records[0].spec


def test_a_run_keeps_the_engine_that_was_chosen_for_it(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its reason, whatever a later version would choose; the spec of a run keeps it, too."""
    change(ledger, create_run, "r1", Spec(), 1.0)
    change(ledger, create_run, "r2", Spec(proxy=Url("http://p:1")), 1.0)
    monkeypatch.setattr(engine_choice, "FASTEST_FIRST", (Engine.AIOHTTP,))
    change(ledger, create_run, "r3", read(ledger, fetch_run, "r1").spec, 2.0)
    found = {run: read(ledger, fetch_run, run) for run in ("r1", "r2", "r3")}
    assert {run: str(record.engine) for run, record in found.items()} == {
        "r1": "httptools", "r2": "aiohttp: needs a proxy", "r3": "httptools",
    }  # fmt: skip
    assert all(record.spec.engine is record.engine.engine for record in found.values())


def test_recent_runs_and_counts_are_found_by_indices(ledger: Ledger) -> None:
    """However many runs are at rest, no scrape goes through their rows."""
    plans: list[str] = []

    def explain(transaction: Transaction) -> None:
        select = transaction.select

        def select_explained(sql: str, *values: object) -> list[sqlite3.Row]:
            plans.extend(row["detail"] for row in select(f"EXPLAIN QUERY PLAN {sql}", *values))
            return select(sql, *values)

        transaction.select = select_explained  # type: ignore[method-assign]
        fetch_recent(transaction, 0.0, 20)
        count_by_state(transaction)
        find_longest_queued_s(transaction, 0.0)

    read(ledger, explain)
    scans = [plan for plan in plans if "runs" in plan and "INDEX" not in plan]
    assert plans
    assert not scans
    assert not [
        plan for plan in plans if plan.startswith("SCAN") and "rested_runs" in plan and "COVERING" not in plan
    ]
