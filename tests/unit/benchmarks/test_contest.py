import sqlite3
from contextlib import closing
from pathlib import Path

from oku_benchmarks.contest import OwnServers
from oku_server.counts.count_store import FileCountStore
from oku_server.counts.count_table import CountTable


def test_own_servers_are_counted_under_the_name_that_the_ledger_knows(tmp_path: Path) -> None:
    """It is random; the id of the run, or a request that names no run, finds nothing."""
    servers = OwnServers(tmp_path)
    assert servers.read_served() == 0
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite3")) as ledger:
        ledger.execute("CREATE TABLE runs (run TEXT, count_name TEXT)")
        ledger.commit()
        assert servers.read_served() == 0
        ledger.execute("INSERT INTO runs VALUES ('run-1', 'c0ffee')")
        ledger.commit()
    for server, names in (("server-1", ["c0ffee"] * 2), ("server-2", ["c0ffee", "run-1", ""])):
        store = FileCountStore(tmp_path / "servers" / server, 1, is_trusted=True)
        table = CountTable(store.blocks[0], store.registry)
        for name in names:
            table.add(name)
    assert servers.read_served() == 3
