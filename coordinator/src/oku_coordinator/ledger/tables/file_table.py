"""The rows that say which runs use which files."""

from collections.abc import Iterable

from oku_coordinator.ledger.storage.transaction import Transaction


def insert_files(transaction: Transaction, run: str, digests: Iterable[str]) -> None:
    """A run uses these files from now on."""
    rows = [(run, digest) for digest in dict.fromkeys(digests)]
    transaction.execute_each("INSERT INTO run_files VALUES (?, ?)", rows)


def fetch_files(transaction: Transaction, run: str) -> list[str]:
    """The digests of the files of a run."""
    return [row["digest"] for row in transaction.select("SELECT digest FROM run_files WHERE run = ?", run)]


def fetch_used(transaction: Transaction) -> set[str]:
    """The digests of all files that any run uses."""
    return {row["digest"] for row in transaction.select("SELECT DISTINCT digest FROM run_files")}


def is_used(transaction: Transaction, digest: str) -> bool:
    """Whether any run uses a file."""
    return transaction.select_one("SELECT 1 FROM run_files WHERE digest = ?", digest) is not None
