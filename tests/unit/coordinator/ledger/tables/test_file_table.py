from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_coordinator.ledger.tables.file_table import fetch_files, fetch_used, is_used
from oku_core.spec.spec import Spec
from oku_core.spec.values.file_reference import FileRef

FIRST = FileRef.build("1" * 64, 5, "ca.pem")
SECOND = FileRef.build("2" * 64, 5, "body.json")


def test_the_ledger_knows_which_run_uses_which_file(ledger: Ledger) -> None:
    """They are entered with the run, each once, and go with its other rows."""
    change(ledger, create_run, "r1", Spec(cacert=str(FIRST), cert=str(FIRST), body=str(SECOND)), 1.0)
    change(ledger, create_run, "r2", Spec(cacert="/certs/ca.pem"), 2.0)
    assert sorted(read(ledger, fetch_files, "r1")) == [FIRST.digest, SECOND.digest]
    assert read(ledger, fetch_files, "r2") == []
    assert read(ledger, fetch_used) == {FIRST.digest, SECOND.digest}
    assert read(ledger, is_used, FIRST.digest)
    assert not read(ledger, is_used, "3" * 64)
