from pathlib import Path

from oku_cli.local.data_dir import DataDir
from oku_cli.local.local_report import leave_report
from oku_coordinator.ledger import Ledger
from oku_core.spec.spec import Spec


def test_the_report_of_a_run_is_left_in_its_folder(tmp_path: Path) -> None:
    """A page that is already there is written anew."""
    ledger = Ledger(tmp_path / "ledger.sqlite3")
    ledger.create_run("r1", Spec(requests=5, name="five"), 1.0)
    ledger.close()
    data_dir = DataDir(tmp_path)
    path = leave_report(data_dir, "r1", 2.0)
    assert path == tmp_path / "reports" / "r1.html"
    assert leave_report(data_dir, "r1", 3.0) == path
    assert path.read_text().startswith("<!DOCTYPE html>")
