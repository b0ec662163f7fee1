from pathlib import Path

import pytest
from tests.unit.server.client import build_registry

from oku_core.errors import UserError
from oku_server.counts.count_store import CountStore, FileCountStore, MemoryCountStore, read_served
from oku_server.counts.count_table import EMPTY_TABLE, CountTable
from oku_server.counts.run_registry import KEPT_S, PLACES


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> CountStore:
    """A store for three processes."""
    return MemoryCountStore(3) if request.param == "memory" else FileCountStore(tmp_path / "counts", 3)


def test_the_counts_of_all_processes_are_summed(store: CountStore) -> None:
    """The served requests of a run are the sum over the tables of all processes."""
    for block in store.blocks:
        table = CountTable(block, store.registry)
        for run in ("a", "a", "b", ""):
            table.add(run)
    assert [store.sum_up(run).served for run in ("a", "b", "", "c")] == [6, 3, 3, 0]
    # A name that is not a run was served nothing.
    CountTable(store.blocks[0], store.registry).add("")
    assert store.sum_up("x" * 41).served == 0


def test_two_servers_of_a_directory_have_files_of_their_own_and_one_sum(tmp_path: Path) -> None:
    """No two processes write to the same file, and both servers report the same sum."""
    stores = [FileCountStore(tmp_path, 2), FileCountStore(tmp_path, 1)]
    for store in stores:
        for block in store.blocks:
            CountTable(block, store.registry).add("a")
    assert [store.sum_up("a").served for store in stores] == [3, 3]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".gitignore",
        "runs.bin",
        "served-0.bin",
        "served-1.bin",
        "served-2.bin",
        "served-id",
    ]


def test_a_file_without_an_owner_is_carried_on(tmp_path: Path) -> None:
    """The counts of an earlier process stay, and its file is reused."""
    block = bytearray(EMPTY_TABLE)
    CountTable(block, build_registry()).add("a")
    (tmp_path / "served-0.bin").write_bytes(block)
    store = FileCountStore(tmp_path, 1)
    CountTable(store.blocks[0], store.registry).add("a")
    assert store.sum_up("a").served == 2
    assert [path.name for path in tmp_path.glob("served-*.bin")] == ["served-0.bin"]


@pytest.mark.parametrize("length", [0, 5, 4096])
def test_a_file_whose_making_was_cut_short_is_made_again(tmp_path: Path, length: int) -> None:
    """A crash at the wrong moment does not keep a server from starting."""
    (tmp_path / "served-0.bin").write_bytes(EMPTY_TABLE[:length])
    store = FileCountStore(tmp_path, 1)
    CountTable(store.blocks[0], store.registry).add("a")
    assert store.sum_up("a").served == 1


def test_a_file_in_the_making_is_left_out_of_the_sum(tmp_path: Path) -> None:
    """Another server may be creating its file at this moment."""
    store = FileCountStore(tmp_path, 1)
    CountTable(store.blocks[0], store.registry).add("a")
    (tmp_path / "served-1.bin").touch()
    assert store.sum_up("a").served == 1


def test_what_cannot_be_used_is_named(tmp_path: Path) -> None:
    """The error names the file."""
    path = tmp_path / "served-0.bin"
    path.write_bytes(b"precious")
    with pytest.raises(UserError, match=rf"^--counts-dir: {path} is not a file of counts$"):
        FileCountStore(tmp_path, 1)
    assert path.read_bytes() == b"precious"
    # A directory that cannot be used is named with the reason.
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(UserError, match=rf"^--counts-dir: {path} cannot be used: Not a directory$"):
        FileCountStore(path, 1)


def test_stores_with_the_same_counts_have_the_same_id(tmp_path: Path) -> None:
    """The id shows anyone who asks several servers whose counts to add up."""
    (tmp_path / "link").symlink_to(tmp_path / "a")
    stores: list[CountStore] = [FileCountStore(tmp_path / name, 1) for name in ("a", "a", "link", "b")]
    stores += [MemoryCountStore(1), MemoryCountStore(1)]
    first, second, linked, *others = [store.sum_up("a").id for store in stores]
    assert first == second == linked
    assert len({first, *others}) == 4


def test_an_announced_run_is_known_to_all_processes(store: CountStore) -> None:
    """Only one process was told of the run; made-up names at any process do not touch its count."""
    tables = [CountTable(block, store.registry) for block in store.blocks]
    assert store.registry.announce("live", 1000.0)
    before = store.sum_up("live")
    assert (before.served, before.is_kept) == (0, True)
    for table in tables:
        for number in range(2000):
            table.add(f"made-up-{number}")
            if number % 1000 == 500:
                table.add("live")
    assert store.sum_up("live") == before._replace(served=6, forgotten=store.sum_up("x").forgotten)
    assert store.sum_up("made-up-1999").is_kept is False


def test_a_server_that_comes_back_knows_what_was_announced(tmp_path: Path) -> None:
    """The server reads the announced runs and their counts from its files."""
    store = FileCountStore(tmp_path, 1)
    store.registry.announce("live", 1000.0)
    CountTable(store.blocks[0], store.registry).add("live")
    again = FileCountStore(tmp_path, 1)
    assert again.sum_up("live") == store.sum_up("live")
    assert read_served(tmp_path, "live") == 1


def test_a_count_that_began_anew_has_another_id(store: CountStore) -> None:
    """Anyone who saw the old id knows that its count is gone."""
    store.registry.announce("live", 1.0)
    first = store.sum_up("live").id
    for number in range(PLACES):
        store.registry.announce(f"run-{number}", KEPT_S + 2.0)
    without = store.sum_up("live")
    store.registry.announce("live", 3 * KEPT_S)
    assert len({first, without.id, store.sum_up("live").id}) == 3
    assert without.is_kept is False


def test_no_run_loses_its_place_while_it_is_announced_again_and_again(store: CountStore) -> None:
    """When all places are taken, a new run is told that its count is not kept."""
    for number in range(PLACES):
        assert store.registry.announce(f"run-{number}", 1000.0)
    assert not store.registry.announce("new", 1001.0)
    assert store.sum_up("new").is_kept is False
    assert store.registry.announce("run-7", 1001.0)
