from pathlib import Path

from oku_cli.backends.data_dir import DataDir
from oku_cli.backends.ledger_backend import LedgerBackend
from oku_cli.backends.run_backend import open_backend
from oku_cli.remote.client import Client
from oku_cli.remote.endpoint import Endpoint


async def test_a_coordinator_that_was_named_is_asked_first(tmp_path: Path) -> None:
    """It does not matter what runs in the data folder."""
    endpoint = Endpoint("http://h:1", "t", ["--coordinator", "http://h:1"])
    async with open_backend(endpoint, tmp_path) as backend:
        assert isinstance(backend, Client)
        assert backend.flags == ["--coordinator", "http://h:1"]


async def test_a_folder_is_asked_through_the_stack_that_runs_in_it(tmp_path: Path) -> None:
    """Only the stack may write the ledger meanwhile; commands still name the folder."""
    folder = DataDir(tmp_path)
    with folder.held():
        folder.write_stack(Endpoint("http://127.0.0.1:1", "t"), {})
        async with open_backend(None, tmp_path) as backend:
            assert isinstance(backend, Client)
            assert backend.flags == ["--data-dir", str(tmp_path)]


async def test_a_folder_at_rest_is_asked_through_its_ledger(tmp_path: Path) -> None:
    """No process has to be started to look at a run."""
    async with open_backend(None, tmp_path) as backend:
        assert isinstance(backend, LedgerBackend)
        assert backend.flags == ["--data-dir", str(tmp_path)]
