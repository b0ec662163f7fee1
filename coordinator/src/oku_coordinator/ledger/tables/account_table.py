"""The accounts of runs in the ledger, with what is kept beside them: workers, processes and flags.

An account is folded in memory and written once at the end of a transaction, however many checkpoints came.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence

from oku_coordinator.ledger.storage.records import BreachError, UnknownRunError
from oku_coordinator.ledger.storage.run_account import Account
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_core.accounting import hdr
from oku_core.accounting.histogram import Histogram, HistogramSnapshot
from oku_core.accounting.outcome import is_account
from oku_core.results.summary import Flag, ProcessSummary, WorkerSummary
from oku_core.results.validity import LeaseFlag

_LOW_LIMIT = 2**62
"""An integer of SQLite has 64 bits, with a sign; the microseconds of 10**13 requests have more."""
_COLUMNS = (
    "outcomes, statuses, bytes_received_high, bytes_received, sum_us_high, sum_us, min_us, max_us, histogram"
)
"""Of `runs`: what an account is kept in."""


def fetch_account(transaction: Transaction, run: str) -> Account:
    """What the checkpoints of a run sum to, to read only; `BreachError` when its row cannot be read.

    An account that is in memory is taken from there. None is put there, or the accounts of all runs that
    anybody ever looked at would stay.
    """
    if account := transaction.accounts.get(run):
        return account
    row = transaction.select_one(f"SELECT {_COLUMNS} FROM runs WHERE run = ?", run)  # noqa: S608  # names of our own
    if row is None:
        raise UnknownRunError(run)
    try:
        return build_account(row)
    except ValueError as error:
        raise BreachError(run, f"its account cannot be read: {error}") from error


def open_account(transaction: Transaction, run: str) -> Account:
    """The account of a run, to fold into; it is written at the end of the transaction."""
    account = transaction.accounts[run] = fetch_account(transaction, run)
    transaction.folded.add(run)
    transaction.touched.add(run)
    return account


def add_work(
    transaction: Transaction, run: str, worker: str, *, requests: int, cpu_s: float, peak_rss_mb: float
) -> None:
    """Add to what a worker has done for a run."""
    transaction.execute(
        "INSERT INTO workers (run, worker, requests, cpu_s, peak_rss_mb) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, cpu_s = cpu_s + excluded.cpu_s,"
        " peak_rss_mb = max(peak_rss_mb, excluded.peak_rss_mb)",
        run, worker, requests, cpu_s, peak_rss_mb,
    )  # fmt: skip


def add_flags(transaction: Transaction, run: str, flags: Iterable[LeaseFlag]) -> None:
    """Add flags of leases to those of their run."""
    for flag in flags:
        _add_flag(transaction, run, *flag)


def note_lost_worker(transaction: Transaction, run: str, worker: str, requests: int) -> None:
    """Note that a worker died with leases of so many requests."""
    _add_flag(transaction, run, Flag.WORKER_LOST, requests, 0)
    transaction.execute(
        "INSERT INTO workers (run, worker, lost) VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET lost = 1",
        run, worker,
    )  # fmt: skip


def note_missing_workers(transaction: Transaction, run: str, missing: int) -> None:
    """Note that a run began without so many of its workers."""
    _add_flag(transaction, run, Flag.WORKERS_MISSING, 0, missing)


def note_clock_step(transaction: Transaction, run: str, requests: int, step_s: float) -> None:
    """Note that the coordinator's clock was set while so many requests were leased."""
    _add_flag(transaction, run, Flag.CLOCK_SET, requests, abs(step_s))


def write_accounts(transaction: Transaction) -> None:
    """Write the accounts that have changed in memory."""
    for run in transaction.folded:
        transaction.execute(
            f"UPDATE runs SET ({_COLUMNS}) = (?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE run = ?",  # noqa: S608  # names of our own
            *build_account_columns(transaction.accounts[run]), run,
        )  # fmt: skip


def fetch_workers(transaction: Transaction, run: str) -> list[WorkerSummary]:
    """The workers of a run, ordered by name."""
    return [
        WorkerSummary(
            name=row["worker"],
            requests=row["requests"],
            cpu_s=round(row["cpu_s"], 3),
            peak_rss_mb=round(row["peak_rss_mb"], 1),
            lost=bool(row["lost"]),
        )
        for row in transaction.select("SELECT * FROM workers WHERE run = ? ORDER BY worker", run)
    ]


def sum_requests(transaction: Transaction, run: str) -> int:
    """The sum of the requests of all workers of a run."""
    rows = transaction.select("SELECT coalesce(sum(requests), 0) FROM workers WHERE run = ?", run)
    return int(rows[0][0])


def fetch_processes(transaction: Transaction, run: str) -> list[ProcessSummary]:
    """The peak memory of the other processes, ordered by name."""
    rows = transaction.select("SELECT * FROM processes WHERE run = ? ORDER BY process", run)
    return [ProcessSummary(name=row["process"], peak_mb=row["peak_mb"]) for row in rows]


def keep_processes(transaction: Transaction, run: str, processes: Iterable[ProcessSummary]) -> None:
    """Keep the peak memory of processes; a larger peak from before stays."""
    transaction.execute_each(
        "INSERT INTO processes (run, process, peak_mb) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET peak_mb = max(peak_mb, excluded.peak_mb)",
        [(run, process.name, process.peak_mb) for process in processes],
    )


def fetch_flags(transaction: Transaction, run: str) -> list[tuple[Flag, int, float]]:
    """The flags of a run, each with how many requests it concerns and its worst figure."""
    rows = transaction.select("SELECT * FROM flags WHERE run = ? ORDER BY flag", run)
    return [(Flag(row["flag"]), row["requests"], row["worst"]) for row in rows]


def _add_flag(transaction: Transaction, run: str, flag: Flag, requests: int, figure: float) -> None:
    transaction.execute(
        "INSERT INTO flags (run, flag, requests, worst) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
        " requests = requests + excluded.requests, worst = max(worst, excluded.worst)",
        run, flag, requests, figure,
    )  # fmt: skip


def build_account(row: sqlite3.Row) -> Account:
    """Decode the account in a row of `runs`; `ValueError` when it cannot be read."""
    histogram = Histogram()
    if row["histogram"]:
        latency = hdr.decode(row["histogram"])
        histogram.add(
            HistogramSnapshot(
                buckets=latency.buckets,
                sum_us=_join(row["sum_us_high"], row["sum_us"]),
                min_us=row["min_us"],
                max_us=row["max_us"],
            )
        )
    outcomes = json.loads(row["outcomes"])
    if not is_account(outcomes):
        raise ValueError("the outcomes are not six counts")
    return Account(
        outcomes=outcomes,
        statuses=json.loads(row["statuses"]),
        bytes_received=_join(row["bytes_received_high"], row["bytes_received"]),
        histogram=histogram,
    )


def build_account_columns(account: Account) -> Sequence[object]:
    """Encode an account as the values of its columns."""
    histogram = account.histogram
    return (
        json.dumps(account.outcomes),
        json.dumps(account.statuses, sort_keys=True),
        *divmod(account.bytes_received, _LOW_LIMIT),
        *divmod(histogram.sum_us, _LOW_LIMIT),
        histogram.min_us,
        histogram.max_us,
        hdr.encode(histogram),
    )


def _join(high: int, low: int) -> int:
    return high * _LOW_LIMIT + low
