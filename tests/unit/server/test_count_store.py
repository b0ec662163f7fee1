from pathlib import Path

import pytest

from oku_core.errors import UserError
from oku_server.count_store import CountStore, FileStore, MemoryStore
from oku_server.count_table import EMPTY_TABLE, CountTable


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> CountStore:
    """A store for three processes."""
    return MemoryStore(3) if request.param == "memory" else FileStore(tmp_path / "counts", 3)


def test_the_counts_of_all_processes_are_summed(store: CountStore) -> None:
    """What a run was served is the sum over the tables of its processes."""
    for block in store.blocks:
        table = CountTable(block)
        for run in ("a", "a", "b", ""):
            table.add(run)
    assert [store.fetch_served(run) for run in ("a", "b", "", "c")] == [6, 3, 3, 0]


def test_a_name_that_is_no_run_was_served_nothing(store: CountStore) -> None:
    """A name that fits no row is not the requests without a run."""
    CountTable(store.blocks[0]).add("")
    assert store.fetch_served("x" * 41) == 0


def test_two_servers_of_a_directory_have_files_of_their_own_and_one_sum(tmp_path: Path) -> None:
    """No two processes write to one file, and both servers tell the same."""
    stores = [FileStore(tmp_path, 2), FileStore(tmp_path, 1)]
    for store in stores:
        for block in store.blocks:
            CountTable(block).add("a")
    assert [store.fetch_served("a") for store in stores] == [3, 3]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "counts-0.bin",
        "counts-1.bin",
        "counts-2.bin",
        "store-id",
    ]


def test_a_file_without_an_owner_is_carried_on(tmp_path: Path) -> None:
    """The counts of an earlier process stay, and its file is used again."""
    block = bytearray(EMPTY_TABLE)
    CountTable(block).add("a")
    (tmp_path / "counts-0.bin").write_bytes(block)
    store = FileStore(tmp_path, 1)
    CountTable(store.blocks[0]).add("a")
    assert store.fetch_served("a") == 2
    assert [path.name for path in tmp_path.glob("counts-*")] == ["counts-0.bin"]


@pytest.mark.parametrize("length", [0, 5, 4096])
def test_a_file_whose_making_was_cut_short_is_made_again(tmp_path: Path, length: int) -> None:
    """A crash at the wrong moment does not keep a server from starting."""
    (tmp_path / "counts-0.bin").write_bytes(EMPTY_TABLE[:length])
    store = FileStore(tmp_path, 1)
    CountTable(store.blocks[0]).add("a")
    assert store.fetch_served("a") == 1


def test_a_file_in_the_making_is_left_out_of_the_sum(tmp_path: Path) -> None:
    """Another server may be making its file just now."""
    store = FileStore(tmp_path, 1)
    CountTable(store.blocks[0]).add("a")
    (tmp_path / "counts-1.bin").touch()
    assert store.fetch_served("a") == 1


def test_a_file_of_something_else_is_not_overwritten(tmp_path: Path) -> None:
    """The user is told the name of the file."""
    path = tmp_path / "counts-0.bin"
    path.write_bytes(b"precious")
    with pytest.raises(UserError, match=rf"^--counts-dir: {path} is not a file of counts$"):
        FileStore(tmp_path, 1)
    assert path.read_bytes() == b"precious"


def test_a_directory_that_cannot_be_used_is_named_with_the_reason(tmp_path: Path) -> None:
    """A file in place of the directory is the user's mistake."""
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(UserError, match=rf"^--counts-dir: {path} cannot be used: Not a directory$"):
        FileStore(path, 1)


def test_stores_with_the_same_counts_have_the_same_id(tmp_path: Path) -> None:
    """So that whoever asks several servers can tell whose counts to add up."""
    (tmp_path / "link").symlink_to(tmp_path / "a")
    stores: list[CountStore] = [FileStore(tmp_path / name, 1) for name in ("a", "a", "link", "b")]
    stores += [MemoryStore(1), MemoryStore(1)]
    first, second, linked, *others = [store.id for store in stores]
    assert first == second == linked
    assert len({first, *others}) == 4
