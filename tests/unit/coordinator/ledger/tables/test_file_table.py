from oku_coordinator.ledger import Ledger
from oku_core.spec.spec import Spec
from oku_core.spec.values.file_reference import FileRef

FIRST = FileRef.build("1" * 64, 5, "ca.pem")
SECOND = FileRef.build("2" * 64, 5, "body.json")


def test_the_ledger_knows_which_run_uses_which_file(ledger: Ledger) -> None:
    """They are entered with the run, each once, and go with its other rows."""
    ledger.runs.create("r1", Spec(cacert=str(FIRST), cert=str(FIRST), body=str(SECOND)), 1.0)
    ledger.runs.create("r2", Spec(cacert="/certs/ca.pem"), 2.0)
    assert sorted(ledger.files.fetch("r1")) == [FIRST.digest, SECOND.digest]
    assert ledger.files.fetch("r2") == []
    assert ledger.files.fetch_used() == {FIRST.digest, SECOND.digest}
    assert ledger.files.is_used(FIRST.digest)
    assert not ledger.files.is_used("3" * 64)
