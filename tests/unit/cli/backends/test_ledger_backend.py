from pathlib import Path

import pytest
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.leases import deal_lease
from tests.kit.coordinators.transactions import change
from tests.kit.file_claims import name_by_claim
from tests.kit.runs.scanned import keep_data

from oku_cli.backends.data_dir import DataDir
from oku_cli.backends.ledger_backend import LedgerBackend
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run, start_run
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError
from oku_core.spec.spec import Hook, Spec


@pytest.fixture
def data_dir(tmp_path: Path) -> DataDir:
    """A folder with one run that was running when its stack was killed."""
    folder = DataDir(tmp_path / "data")
    folder.hold()
    ledger = open_ledger(folder.ledger)
    change(ledger, create_run, "run-1", Spec(requests=10), 1.0)
    change(ledger, change_state, "run-1", RunState.RUNNING, 2.0)
    ledger.close()
    folder.release()
    return folder


async def test_a_folder_without_runs(tmp_path: Path) -> None:
    """Looking at it creates nothing."""
    folder = DataDir(tmp_path / "none")

    ledger = LedgerBackend.settle(folder)
    assert await ledger.fetch_runs() == []
    assert await ledger.fetch_runs(reference="x") == []
    assert not folder.absolute.exists()


async def test_a_run_that_is_cancelled_where_no_worker_runs_is_not_torn_down(data_dir: DataDir) -> None:
    """It is over, and says why its teardown was not called."""
    ledger = Ledger(data_dir.ledger)
    change(ledger, change_state, "run-1", RunState.PAUSED, 3.0)
    change(ledger, create_run, "run-2", Spec(requests=10, hooks=(Hook.TEARDOWN,)), 4.0)
    change(ledger, start_run, "run-2", 5.0)
    deal_lease(ledger, "run-2", 5, 5.0)
    ledger.close()
    backend = LedgerBackend.settle(data_dir)
    assert await backend.cancel("run-2") == RunState.CANCELLED
    assert backend.require_run("run-2").reason == (
        "teardown was not called: the run was cancelled where no worker runs"
    )


async def test_the_run_of_a_killed_stack_is_paused(data_dir: DataDir) -> None:
    """The first access repairs the ledger; nothing can be paused then, and the run can be cancelled once."""
    assert LedgerBackend.settle(data_dir).require_run("run-1").state == RunState.PAUSED
    with pytest.raises(UserError, match="run run-1 is not running, there is nothing to pause"):
        await LedgerBackend.settle(data_dir).pause("run-1")
    with pytest.raises(UserError, match="data: there is no run run-2"):
        LedgerBackend(data_dir).require_run("run-2")
    ledger = LedgerBackend.settle(data_dir)
    assert await ledger.cancel("run-1") == RunState.CANCELLED
    with pytest.raises(UserError, match="cancelled"):
        await ledger.cancel("run-1")
    assert (await ledger.fetch_summary("run-1")).state == RunState.CANCELLED


async def test_rows_and_files_of_a_run_are_those_of_the_folder(tmp_path: Path) -> None:
    """One that is not there any more is named."""
    folder = DataDir(tmp_path / "data")
    folder.hold()
    spec = Spec(requests=2, data=keep_data(tmp_path, "a\n1\n2\n", folder.files))
    ledger = Ledger(folder.ledger)
    change(ledger, create_run, "run-1", spec, 1.0)
    ledger.close()
    folder.release()
    backend = LedgerBackend(folder)
    assert spec.data is not None

    name_by_claim(folder.files)
    assert (await backend.fetch_rows("run-1", 1, 2)).rows == [{"a": "2"}]
    assert await backend.fetch_run_file("run-1", spec.data.digest) == b"a\n1\n2\n"
    for path in folder.files.glob(f"{spec.data.digest}*"):
        path.rename(f"{path}.part")
    with pytest.raises(UserError, match="this file of the run is not there any more"):
        await backend.fetch_rows("run-1", 1, 2)


def test_the_holder_of_a_folder_settles_what_its_stack_has_left(data_dir: DataDir) -> None:
    """The run that is resumed keeps its state; others are paused or cancelled, once."""
    ledger = LedgerBackend(data_dir)
    ledger.pause_interrupted(but="run-1")
    assert ledger.require_run("run-1").state == RunState.RUNNING
    with data_dir.held():
        ledger.pause_interrupted()
        assert ledger.cancel_interrupted("run-1") == RunState.CANCELLED
        with pytest.raises(UserError, match="run run-1 is cancelled, it cannot become cancelled"):
            ledger.cancel_interrupted("run-1")
