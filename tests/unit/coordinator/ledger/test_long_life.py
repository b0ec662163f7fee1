"""What the ledger does often costs the same after days and hundreds of runs as at the beginning."""

import gc
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.kit.coordinators.leases import deal_lease
from tests.kit.coordinators.long_ledger import LONG_RUN, make_long_ledger
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.batches import pause_interrupted
from oku_coordinator.ledger.rules.history import keep_events, keep_second
from oku_coordinator.ledger.rules.leases import expiring
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot, fetch_standing
from oku_coordinator.ledger.storage.lease_records import LeaseOrder
from oku_coordinator.ledger.storage.run_account import RunAccount
from oku_coordinator.ledger.tables.lease_table import deal_leases, fetch_open_leases
from oku_coordinator.ledger.tables.outbox_table import drop_oldest
from oku_coordinator.ledger.tables.run_table import fetch_current_run, fetch_run, list_due_summaries
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.run_state import RunState
from oku_core.results.event import Event, EventType
from oku_core.results.sample import Sample

if TYPE_CHECKING:
    from oku_coordinator.ledger.storage.lease_records import LeaseRecord

LATER = 1_770_000_000.0
_GRAIN = 10
_connect = sqlite3.connect


class Work:
    """Counts the instructions of SQLite's machine, which do not depend on how busy the processor is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._done = 0
        monkeypatch.setattr("oku_coordinator.ledger.storage.schema.sqlite3.connect", self._open)

    def _open(self, *arguments: Any, **options: Any) -> sqlite3.Connection:
        database: sqlite3.Connection = _connect(*arguments, **options)
        database.set_progress_handler(self._count, _GRAIN)
        return database

    def _count(self) -> None:
        self._done += _GRAIN

    def measure(self, call: Callable[[], Any]) -> int:
        """The number of instructions that a call takes."""
        before = self._done
        call()
        return self._done - before


def expire(ledger: Ledger) -> None:
    """Take a lease back that was cut before."""
    active: list[LeaseRecord] = read(ledger, fetch_open_leases, LONG_RUN)
    change(ledger, expiring.expire_leases, [active[0].id], ExpiryReason.NOT_TAKEN, LATER)


CALLS: dict[str, Callable[[Ledger], Any]] = {
    "the run that has its turn": lambda ledger: read(ledger, fetch_current_run),
    "the runs that owe a summary": lambda ledger: read(ledger, list_due_summaries),
    "what a killed stack left": lambda ledger: pause_interrupted(ledger, LATER, but=LONG_RUN),
    "one run": lambda ledger: read(ledger, fetch_run, LONG_RUN),
    "a standing": lambda ledger: read(ledger, fetch_standing, LONG_RUN),
    "a snapshot": lambda ledger: read(ledger, fetch_snapshot, LONG_RUN),
    "a lease": lambda ledger: deal_lease(ledger, LONG_RUN, 10, LATER),
    "a sample": lambda ledger: change(ledger, keep_second, LONG_RUN, build_sample(LATER + 1)),
    "an event": lambda ledger: change(ledger, keep_events, LONG_RUN, [build_event()]),
    "a lease that is taken back": expire,
    "what exceeds the outbox": lambda ledger: change(ledger, drop_oldest, 0),
}


def build_sample(at: float) -> Sample:
    """Build a second of a run."""
    return Sample(
        at=at, seconds=1.0, requests_total=0, accounted=0, leased=0, pending=0, done=0,
        resent_at_most=0, in_flight=0, workers=1,
    )  # fmt: skip


def build_event() -> Event:
    """Build the event of a worker that has joined."""
    return Event(at=LATER, type=EventType.WORKER_JOINED, text="worker w1 joined")


def open_long_ledger(path: Path, *, runs: int, leases: int, samples: int) -> Ledger:
    """Open a ledger in which `LONG_RUN` is active."""
    make_long_ledger(path, runs=runs, leases=leases, samples=samples, body="x" * 10_000)
    ledger = Ledger(path)
    change(ledger, change_state, LONG_RUN, RunState.PENDING, LATER)
    change(ledger, change_state, LONG_RUN, RunState.RUNNING, LATER)
    change(ledger, deal_leases, LONG_RUN, [LeaseOrder("w1", "b1", 10, 10)] * 3, LATER)
    return ledger


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """Count the work of the ledgers that are opened from here on."""
    return Work(monkeypatch)


@pytest.fixture
def short(tmp_path: Path, work: Work) -> Iterator[Ledger]:
    """A ledger with hardly anything in it."""
    ledger = open_long_ledger(tmp_path / "short.sqlite3", runs=2, leases=5, samples=5)
    yield ledger
    ledger.close()


@pytest.fixture
def long(tmp_path: Path, work: Work) -> Iterator[Ledger]:
    """A ledger of 100 runs, one of which has 5,000 leases."""
    ledger = open_long_ledger(tmp_path / "long.sqlite3", runs=100, leases=5_000, samples=300)
    yield ledger
    ledger.close()


def test_no_call_costs_more_the_longer_a_ledger_is(short: Ledger, long: Ledger, work: Work) -> None:
    """Every call that is made each second or with each message takes as many instructions of the database."""
    costs = {
        name: (work.measure(lambda call=call: call(short)), work.measure(lambda call=call: call(long)))  # type: ignore[misc]
        for name, call in CALLS.items()
    }
    grown = {name: cost for name, cost in costs.items() if cost[1] > 2 * cost[0] + 500}
    assert grown == {}


@pytest.mark.heavy
def test_a_run_that_nobody_carries_out_takes_no_memory(long: Ledger) -> None:
    """Its account is read when somebody asks for it, and not kept."""
    before = _count_accounts()
    for number in range(100):
        read(long, fetch_snapshot, f"run-{number}")
        read(long, fetch_standing, f"run-{number}")
    assert _count_accounts() <= before + 1


def test_a_run_that_came_to_rest_takes_no_memory(tmp_path: Path) -> None:
    """A run that has only been submitted takes none either; the account of the last one at rest may stay."""
    before = _count_accounts()
    ledger = open_long_ledger(tmp_path / "short.sqlite3", runs=2, leases=5, samples=5)
    record = read(ledger, fetch_run, LONG_RUN)
    for number in range(20):
        run = f"other-{number}"
        change(ledger, create_run, run, record.spec, LATER)
        change(ledger, change_state, run, RunState.CANCELLED, LATER)
        change(ledger, create_run, f"{run}-waiting", record.spec, LATER)
    change(ledger, change_state, LONG_RUN, RunState.PAUSED, LATER)
    assert _count_accounts() <= before + 1
    ledger.close()


def _count_accounts() -> int:
    """How many are in memory, those of other tests included."""
    gc.collect()
    return sum(isinstance(thing, RunAccount) for thing in gc.get_objects())
