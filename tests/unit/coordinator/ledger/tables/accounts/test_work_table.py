from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.tables.accounts.work_table import fetch_servers, record_servers


def test_servers_are_kept_with_the_run_that_they_were_seen_with(ledger: Ledger) -> None:
    """Each is there once, with the time when it was last seen."""
    change(ledger, record_servers, "r1", ["a", "b"], 1.0)
    change(ledger, record_servers, "r1", ["b", "c"], 2.0)
    change(ledger, record_servers, "r2", [""], 3.0)
    assert read(ledger, fetch_servers, "r1") == {"a": 1.0, "b": 2.0, "c": 2.0}
    assert read(ledger, fetch_servers, "r2") == {"": 3.0}
    assert read(ledger, fetch_servers, "r3") == {}
