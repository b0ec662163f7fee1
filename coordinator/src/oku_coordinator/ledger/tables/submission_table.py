"""The keys and files of submitted runs, and the runs that they retry."""

from collections.abc import Iterable

from oku_coordinator.ledger.storage.records import KeyRecord, RetryRecord, RunEnd
from oku_coordinator.ledger.storage.transaction import Transaction

_COLUMNS = ", ".join(KeyRecord._fields)


def insert_key(transaction: Transaction, key: str, digest: str, run: str) -> None:
    """Insert the key of a new run; no run has had it."""
    transaction.execute("INSERT INTO idempotency_keys (key, digest, run) VALUES (?, ?, ?)", key, digest, run)


def fetch_key(transaction: Transaction, key: str) -> KeyRecord | None:
    """The record of a key; None if no run was submitted with it."""
    return _fetch(transaction, "key", key)


def fetch_key_of_run(transaction: Transaction, run: str) -> KeyRecord | None:
    """The key that a run was submitted with, if it was."""
    return _fetch(transaction, "run", run)


def _fetch(transaction: Transaction, column: str, value: str) -> KeyRecord | None:
    statement = f"SELECT {_COLUMNS} FROM idempotency_keys WHERE {column} = ?"  # noqa: S608  # names of our own
    row = transaction.select_one(statement, value)
    return KeyRecord(*row) if row else None


def record_deletion(transaction: Transaction, run: str, end: RunEnd | None) -> None:
    """Record in the key of a run, if it has one, that it is deleted, and its end.

    Raises:
        ValueError: it has a key, and `end` is None.
    """
    if end is not None:
        transaction.execute(
            "UPDATE idempotency_keys SET deleted_at = ?, summary = ? WHERE run = ?", *end, run
        )
    elif fetch_key_of_run(transaction, run) is not None:
        raise ValueError(f"run {run} has a key; its end must be kept")


def delete_keys(transaction: Transaction, deleted_before: float) -> None:
    """Delete the keys of runs that were deleted before a time."""
    transaction.execute("DELETE FROM idempotency_keys WHERE deleted_at < ?", deleted_before)


def insert_files(transaction: Transaction, run: str, digests: Iterable[str]) -> None:
    """Record that a run uses these files."""
    rows = [(run, digest) for digest in dict.fromkeys(digests)]
    transaction.execute_each("INSERT INTO run_files VALUES (?, ?)", rows)


def fetch_digests(transaction: Transaction, run: str) -> list[str]:
    """The digests of the files of a run."""
    return [row["digest"] for row in transaction.select("SELECT digest FROM run_files WHERE run = ?", run)]


def fetch_used(transaction: Transaction) -> set[str]:
    """The digests of all files that any run uses."""
    return {row["digest"] for row in transaction.select("SELECT DISTINCT digest FROM run_files")}


def is_used(transaction: Transaction, digest: str) -> bool:
    """Whether any run uses a file."""
    return transaction.select_one("SELECT 1 FROM run_files WHERE digest = ?", digest) is not None


def insert_retry(transaction: Transaction, run: str, retry: RetryRecord) -> None:
    """Record the run that a new run retries."""
    transaction.execute(
        "INSERT INTO retries (run, retried, origin, requests, ok, unlisted, unjudged)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        run, *retry,
    )  # fmt: skip


def fetch_retry(transaction: Transaction, run: str) -> RetryRecord | None:
    """The retry record of a run; None if it is no retry."""
    row = transaction.select_one(
        "SELECT retried, origin, requests, ok, unlisted, unjudged FROM retries WHERE run = ?", run
    )
    return RetryRecord(*row) if row else None
