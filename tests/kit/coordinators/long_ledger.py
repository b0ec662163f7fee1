"""A ledger of many runs and of one that has very many leases, as days of use leave it, made in seconds.

A few rows come about as always. The others are copies of them, and leases that tile what one lease covered:
the ledger cannot tell them from what a coordinator wrote, and the first law holds.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.leases import apply_batches, build_batch, build_checkpoint, build_part, deal_lease
from tests.kit.coordinators.transactions import change
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.history import keep_events, keep_second
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.measured_time import Time
from oku_core.accounting.run_state import RunState
from oku_core.results.event import Event, EventType
from oku_core.results.sample import Sample
from oku_core.spec.spec import Spec
from oku_core.spec.values.url import Url

LONG_RUN = "long-run"
LEASE_LENGTH = 1000
REST = 10_000_000
"""Requests of the long run that are pending."""
_BEGIN = 1_769_965_512.0
_WORKERS = 1000
_EVENTS = 20


def make_long_ledger(path: Path, *, runs: int, leases: int, samples: int, body: str = "") -> None:
    """Make a ledger at `path`, which must not be there.

    Args:
        path: of its file.
        runs: that are completed.
        leases: of `LONG_RUN`, all closed; it is paused.
        samples: of each run, at most 120 of a completed one.
        body: of the requests of completed runs.
    """
    with closing(open_ledger(path)) as ledger:
        if runs:
            _carry_out(ledger, "run-0", Spec(requests=4000, name="short", method="POST", body=body), 4000)
            _keep_history(ledger, "run-0", min(samples, 120))
        requests = leases * LEASE_LENGTH + REST
        # Nobody asks this address: whoever goes on with the run sends nothing.
        spec = Spec(
            requests=requests, name="long", urls=(Url("http://127.0.0.1:9/{i}"),), range_size=LEASE_LENGTH,
            concurrency=10,
        )  # fmt: skip
        _carry_out(ledger, LONG_RUN, spec, leases * LEASE_LENGTH)
        _keep_history(ledger, LONG_RUN, samples)
        change(ledger, change_state, LONG_RUN, RunState.PAUSING, _BEGIN + 7200)
    with closing(sqlite3.connect(path)) as database, database:
        _copy_run(database, "run-0", runs)
        _tile(database, leases)


def _carry_out(ledger: Ledger, run: str, spec: Spec, requests: int) -> None:
    """Carry out one lease of so many requests by one worker."""
    change(ledger, create_run, run, spec, _BEGIN)
    change(ledger, change_state, run, RunState.RUNNING, _BEGIN + 1)
    lease = deal_lease(ledger, run, requests, _BEGIN + 1, worker="worker-0")
    part = build_part(requests, int(_BEGIN) + 60, 12_345)
    checkpoint = build_checkpoint(lease, parts=[part], started_at=_BEGIN + 1, ended_at=_BEGIN + 60)
    apply_batches(ledger, [build_batch(lease, checkpoint)], _BEGIN + 60)


def _keep_history(ledger: Ledger, run: str, samples: int) -> None:
    histogram = Histogram()
    for number in range(200):
        histogram.record(1000 + 97 * number)
    latency = histogram.build_latency()
    for second in range(samples):
        sample = Sample(
            at=_BEGIN + 2 + second, seconds=1.0, requests_total=0, accounted=0, leased=0, pending=0,
            done=0, resent_at_most=0, in_flight=100.0, workers=_WORKERS, outcomes=make_counts(200),
            times={Time.LATENCY: latency},
        )  # fmt: skip
        change(ledger, keep_second, run, sample)
    events = [
        Event(at=_BEGIN + number, type=EventType.WORKER_JOINED, text=f"worker worker-{number} joined")
        for number in range(_EVENTS)
    ]
    change(ledger, keep_events, run, events)


def _copy_run(database: sqlite3.Connection, run: str, copies: int) -> None:
    """Copy the rows of a run under other ids, in all tables that have rows of runs."""
    tables = [row[0] for row in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    for table in tables:
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        if "run" not in columns:
            continue
        # A whole number as the key of a table is chosen by SQLite.
        kept = [name for name in columns if not (name == "id" and table in ("events", "outbox"))]
        values = {name: _quote(name) for name in kept} | {"run": "'run-' || number"}
        if table == "leases":
            values["id"] = "'run-' || number || substr(id, length(run) + 1)"
        if table == "runs":
            values["created_at"] = values["queued_at"] = "created_at - number"
        database.execute(
            "WITH RECURSIVE numbers(number) AS (VALUES (1) UNION ALL SELECT number + 1 FROM numbers"
            f" WHERE number < {copies - 1}) INSERT INTO {table} ({', '.join(_quote(name) for name in kept)})"
            f" SELECT {', '.join(values[name] for name in kept)} FROM {table}, numbers WHERE run = ?",
            (run,),
        )


def _quote(name: str) -> str:
    """The name of a column, which may be a word of SQL."""
    return f'"{name}"'


def _tile(database: sqlite3.Connection, leases: int) -> None:
    """Put leases in the place of the one that covers as much as all of them, over two hours."""
    database.execute("DELETE FROM leases WHERE run = ?", (LONG_RUN,))
    database.execute(
        "WITH RECURSIVE numbers(number) AS (VALUES (0) UNION ALL SELECT number + 1 FROM numbers"
        f" WHERE number < {leases - 1})"
        " INSERT INTO leases (id, run, start, stop, length, worker, incarnation, state, cut_at, closed_at,"
        ' "limit", "end", reported_end, done, covered, sequence, outcomes)'
        f" SELECT printf('{LONG_RUN}.%09d.%08x', number + 1, number), '{LONG_RUN}',"
        f" number * {LEASE_LENGTH}, (number + 1) * {LEASE_LENGTH}, {LEASE_LENGTH},"
        f" 'worker-' || (number % {_WORKERS}), 'b1', 'closed',"
        f" {_BEGIN} + 7000.0 * number / {leases}, {_BEGIN} + 10 + 7000.0 * number / {leases},"
        f" {LEASE_LENGTH}, {LEASE_LENGTH}, {LEASE_LENGTH}, {LEASE_LENGTH}, {LEASE_LENGTH}, 1,"
        f" '[{LEASE_LENGTH},0,0,0,0,0]'"
        " FROM numbers"
    )
    database.execute("UPDATE runs SET leases_cut = ? WHERE run = ?", (leases, LONG_RUN))
