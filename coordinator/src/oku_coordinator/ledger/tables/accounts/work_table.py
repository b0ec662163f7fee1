"""Work of workers, memory of processes, delay servers and flags of runs."""

from collections.abc import Iterable

from oku_coordinator.ledger.storage.transaction import Transaction
from oku_core.summary.summary import ProcessSummary, WorkerSummary
from oku_core.summary.validity import Flag


def add_work(
    transaction: Transaction, run: str, worker: str, *, requests: int, cpu_s: float, peak_rss_mb: float
) -> None:
    """Add to the work of a worker for a run."""
    transaction.execute(
        "INSERT INTO workers (run, worker, requests, cpu_s, peak_rss_mb) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, cpu_s = cpu_s + excluded.cpu_s,"
        " peak_rss_mb = max(peak_rss_mb, excluded.peak_rss_mb)",
        run, worker, requests, cpu_s, peak_rss_mb,
    )  # fmt: skip


def add_flag(transaction: Transaction, run: str, flag: Flag, requests: int, figure: float) -> None:
    """Flag more requests of a run; the worst of all figures is stored."""
    transaction.execute(
        "INSERT INTO flags (run, flag, requests, worst) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
        " requests = requests + excluded.requests, worst = max(worst, excluded.worst)",
        run, flag, requests, figure,
    )  # fmt: skip


def record_lost_worker(transaction: Transaction, run: str, worker: str, requests: int) -> None:
    """Record that a worker died with leases of this many requests."""
    add_flag(transaction, run, Flag.WORKER_LOST, requests, 0)
    transaction.execute(
        "INSERT INTO workers (run, worker, lost) VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET lost = 1",
        run, worker,
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


def fetch_worker_names(transaction: Transaction, run: str) -> set[str]:
    """The names of the workers that have worked on a run."""
    return {row["worker"] for row in transaction.select("SELECT worker FROM workers WHERE run = ?", run)}


def sum_requests(transaction: Transaction, run: str) -> int:
    """The sum of the requests of all workers of a run."""
    rows = transaction.select("SELECT coalesce(sum(requests), 0) FROM workers WHERE run = ?", run)
    return int(rows[0][0])


def fetch_processes(transaction: Transaction, run: str) -> list[ProcessSummary]:
    """The peak memory of the other processes, ordered by name."""
    rows = transaction.select("SELECT * FROM processes WHERE run = ? ORDER BY process", run)
    return [ProcessSummary(name=row["process"], peak_mb=row["peak_mb"]) for row in rows]


def keep_processes(transaction: Transaction, run: str, processes: Iterable[ProcessSummary]) -> None:
    """Store the peak memory of processes; a larger earlier peak stays."""
    transaction.execute_each(
        "INSERT INTO processes (run, process, peak_mb) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET peak_mb = max(peak_mb, excluded.peak_mb)",
        [(run, process.name, process.peak_mb) for process in processes],
    )


def fetch_flags(transaction: Transaction, run: str) -> list[tuple[Flag, int, float]]:
    """The flags of a run, each with the number of its requests and its worst figure."""
    rows = transaction.select("SELECT * FROM flags WHERE run = ? ORDER BY flag", run)
    return [(Flag(row["flag"]), row["requests"], row["worst"]) for row in rows]


def record_servers(transaction: Transaction, run: str, stores: Iterable[str], now: float) -> None:
    """Record that these stores answered for a run."""
    transaction.execute_each(
        "INSERT OR REPLACE INTO servers VALUES (?, ?, ?)",
        [(run, store, now) for store in stores],
    )


def fetch_servers(transaction: Transaction, run: str) -> dict[str, float]:
    """The stores of a run, and when each answered last."""
    rows = transaction.select("SELECT store, seen_at FROM servers WHERE run = ?", run)
    return {row["store"]: row["seen_at"] for row in rows}
