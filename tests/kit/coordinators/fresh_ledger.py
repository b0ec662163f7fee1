"""A ledger without runs, for tests that do not ask how it was made.

SQLite takes longer to write its tables, and to flush them to the disk, than most tests take for all the rest.
"""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from oku_coordinator.ledger import Ledger
from oku_core.process.private_files import prepare_private_file


def open_ledger(path: Path, **options: Any) -> Ledger:
    """Open the ledger at a path; where there is none, a copy of a new one."""
    place_ledger(path)
    return Ledger(path, **options)


def place_ledger(path: Path) -> None:
    """Put a copy of a new ledger where there is none."""
    if not path.exists():
        prepare_private_file(path)
        path.write_bytes(_build_ledger())


@cache
def _build_ledger() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite3"
        Ledger(path).close()
        return path.read_bytes()
