from pathlib import Path

import pytest

from oku_cli.local.data_dir import DEFAULT, DataDir, Endpoint
from oku_coordinator.ledger import Ledger
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError
from oku_core.spec.spec import Spec

ENDPOINT = Endpoint("http://127.0.0.1:1", "token")


@pytest.fixture
def data_dir(tmp_path: Path) -> DataDir:
    """A folder with one run that was running when its stack was killed."""
    folder = DataDir(tmp_path / "data")
    folder.hold()
    ledger = Ledger(folder.ledger)
    ledger.create_run("run-1", Spec(requests=10), 1.0)
    ledger.change_state("run-1", RunState.RUNNING, 2.0)
    ledger.close()
    folder.release()
    return folder


def test_a_command_names_the_folder_when_it_is_not_the_usual() -> None:
    """So that it can be typed as it stands."""
    assert DataDir(DEFAULT).flags == []
    assert DataDir(DEFAULT / "x").flags == ["--data-dir", ".oku/x"]


def test_one_stack_at_a_time_holds_a_folder(tmp_path: Path) -> None:
    """The second is refused until the first has let go."""
    first, second = DataDir(tmp_path), DataDir(tmp_path)
    first.hold()
    with pytest.raises(UserError, match="another run holds this data folder"):
        second.hold()
    first.release()
    second.hold()
    second.release()


def test_the_stack_of_a_folder_can_be_found(tmp_path: Path) -> None:
    """While it runs, and only then; its token is for its owner alone."""
    folder = DataDir(tmp_path)
    assert folder.find_endpoint() is None
    folder.hold()
    with pytest.raises(UserError, match="is being started or ended"):
        folder.find_endpoint()
    folder.write_stack(ENDPOINT, {"broker": 7})
    assert DataDir(tmp_path).find_endpoint() == ENDPOINT
    assert folder.stack_file.stat().st_mode & 0o777 == 0o600
    folder.release()
    assert DataDir(tmp_path).find_endpoint() is None


def test_a_folder_without_runs(tmp_path: Path) -> None:
    """Nothing is made by looking."""
    folder = DataDir(tmp_path / "none")

    assert folder.open_settled_ledger() is None
    with pytest.raises(UserError, match="there are no runs in this data folder"):
        folder.require_run("x")
    assert not folder.absolute.exists()


def test_a_killed_stacks_run_is_shown_as_paused(data_dir: DataDir) -> None:
    """Who looks first puts in order what the crash left."""
    assert data_dir.require_run("run-1").state == RunState.PAUSED


def test_the_run_that_is_resumed_keeps_its_state(data_dir: DataDir) -> None:
    """It goes on at once."""
    data_dir.park_interrupted(3.0, but="run-1")
    ledger = data_dir.open_ledger()

    assert ledger.fetch_run("run-1").state == RunState.RUNNING
    ledger.close()


def test_an_unknown_run_is_answered_with_the_nearest(data_dir: DataDir) -> None:
    """A slip of the keyboard is the usual reason."""
    with pytest.raises(UserError, match="there is no run run-2, did you mean run-1"):
        data_dir.require_run("run-2")


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    """In one line, with the reason."""
    (tmp_path / "file").touch()

    with pytest.raises(UserError, match="file/data: Not a directory"):
        DataDir(tmp_path / "file" / "data").hold()
