"""Files of data as a command has scanned them."""

from pathlib import Path

from oku_core.data.scan import DataTable, Scan, Use, read_table, scan
from oku_core.spec.data_file import DataFile, describe_scan, parse_data_file


def scan_table(folder: Path, name: str, *columns: str) -> tuple[DataTable, Scan]:
    """What a file in a folder is, whose row index goes beside it, as `index`."""
    table = read_table(folder / name, name)
    return table, scan(folder / name, name, folder / "index", Use(frozenset(columns)))


def keep_data(folder: Path, content: str, files: Path, name: str = "rows.csv") -> DataFile:
    """Scan a table, and keep it and its row index as files of runs, each called by its digest."""
    (folder / name).write_text(content)
    table, found = scan_table(folder, name)
    files.mkdir(exist_ok=True, mode=0o700)
    (folder / name).rename(files / found.digest)
    (folder / "index").rename(files / found.index_digest)
    return parse_data_file(describe_scan(name, table, found, repeat=False))
