from pathlib import Path

import pytest
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.transactions import change

from oku_cli.backends.data_dir import DataDir
from oku_cli.local.run_end import leave_report
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_core.spec.spec import Spec


@pytest.fixture
def data_dir(tmp_path: Path) -> DataDir:
    """A data folder with a run that nobody has begun."""
    ledger = open_ledger(tmp_path / "ledger.sqlite3")
    change(ledger, create_run, "r1", Spec(requests=5, name="five"), 1.0)
    ledger.close()
    return DataDir(tmp_path)


async def test_the_report_of_a_run_is_left_in_its_folder(data_dir: DataDir) -> None:
    """An existing report is replaced."""
    path = await leave_report(data_dir, "r1")
    assert path == data_dir.reports / "r1.html"
    assert await leave_report(data_dir, "r1") == path
    assert path.read_text().startswith("<!DOCTYPE html>")
