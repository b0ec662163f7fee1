"""Writes the report that a local run leaves in its data folder when it comes to rest."""

from pathlib import Path

from oku_cli.backends.data_dir import DataDir
from oku_cli.backends.ledger_backend import LedgerBackend
from oku_cli.report.history_reader import RunHistoryReader
from oku_cli.report.page import build_page
from oku_core.process.private_files import make_private_folder, write_private


async def leave_report(data_dir: DataDir, run: str) -> Path:
    """Write the report of a run; return its path under the data folder as the user named it."""
    path = data_dir.find_report(run)
    reader = RunHistoryReader()
    async for line in LedgerBackend(data_dir).read_run_history(run):
        reader.take(line)
    make_private_folder(path.parent)
    write_private(path, build_page(reader.finish()))
    return data_dir.path / path.relative_to(data_dir.absolute)
