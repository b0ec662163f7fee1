"""The report of a run in a data folder: its history is read from the ledger, its page is left beside it."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from oku_cli.local.data_dir import DataDir
from oku_cli.report.page import build_page
from oku_cli.report.run_history import RunHistoryReader
from oku_coordinator.runs.run_history import write_run_history
from oku_coordinator.runs.summaries import build_summary
from oku_core.process.private_files import make_private_folder, write_private


def leave_report(data_dir: DataDir, run: str, now: float) -> Path:
    """Write the page of a run into the data folder; gives its path, as the folder was named."""
    make_private_folder(data_dir.reports)
    name = f"{run}.html"
    reader = RunHistoryReader()
    for line in read_run_history(data_dir, run, now):
        reader.take(line)
    write_private(data_dir.reports / name, build_page(reader.finish()))
    return data_dir.path / data_dir.reports.name / name


def read_run_history(data_dir: DataDir, run: str, now: float) -> Iterator[bytes]:
    """The lines of the history of a run in a data folder, which must be there."""
    with closing(data_dir.open_ledger()) as ledger:
        for piece in write_run_history(ledger, build_summary(ledger.fetch_snapshot(run), now), now):
            yield from piece.splitlines()
