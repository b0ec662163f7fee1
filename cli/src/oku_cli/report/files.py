"""Where a dossier comes from in a data folder, and the files that are made of one."""

import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from oku_cli.data_dir import DataDir
from oku_cli.printable import write_note
from oku_cli.report.page import build_page
from oku_coordinator.dossier import Dossier, build_dossier
from oku_coordinator.summaries import build_summary
from oku_core.errors import UserError
from oku_core.private_files import make_private_folder, write_private
from oku_core.quantity import format_bytes

STANDARD_OUTPUT = "-"


@dataclass(frozen=True)
class OutputFile:
    """A file to be written.

    Attributes:
        flag: that asked for it.
        path: where; `-` is standard output, None nowhere.
        build: makes its content.
    """

    flag: str
    path: str | None
    build: Callable[[Dossier], str | bytes]

    def check(self) -> None:
        """Find out early whether it can be written; `UserError` if not."""
        if self.path is None or self.path == STANDARD_OUTPUT:
            return
        path = Path(self.path)
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise UserError(f"{self.flag}: {self.path} is no file that can be written")

    def write(self, dossier: Dossier) -> None:
        """Write it and say so; `UserError` if it cannot be written."""
        if self.path is None:
            return
        content = self.build(dossier)
        data = content if isinstance(content, bytes) else content.encode()
        if self.path == STANDARD_OUTPUT:
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
            return
        try:
            Path(self.path).write_bytes(data)
        except OSError as error:
            raise UserError(f"{self.flag}: {self.path}: {error.strerror}") from error
        write_note(f"wrote {self.path} ({format_bytes(len(data))})")


def leave_report(data_dir: DataDir, run: str, now: float) -> Path:
    """Write the page of a run into the data folder; gives its path, as the folder was named."""
    make_private_folder(data_dir.reports)
    name = f"{run}.html"
    write_private(data_dir.reports / name, build_page(fetch_dossier(data_dir, run, now)))
    return data_dir.path / data_dir.reports.name / name


def fetch_dossier(data_dir: DataDir, run: str, now: float) -> Dossier:
    """All that a data folder keeps of a run, which must be there."""
    with closing(data_dir.open_ledger()) as ledger:
        return build_dossier(ledger, build_summary(ledger.fetch_snapshot(run), now), now)
