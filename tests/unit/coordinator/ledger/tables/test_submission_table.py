import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.storage.records import KeyRecord, RunEnd
from oku_coordinator.ledger.tables.deletion_table import begin_deletion
from oku_coordinator.ledger.tables.run_table import fetch_runs
from oku_coordinator.ledger.tables.submission_table import (
    fetch_digests,
    fetch_key,
    fetch_key_of_run,
    fetch_used,
    is_used,
)
from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import Spec
from oku_core.spec.spec_digest import digest_spec
from oku_core.spec.values.file_reference import FileRef

SPEC = Spec(requests=5)


def end_run(ledger: Ledger, run: str, key: str | None) -> None:
    """Make a run that was submitted with a key, and is over."""
    change(ledger, create_run, run, SPEC, 1.0, key)
    change(ledger, change_state, run, RunState.CANCELLED, 2.0)


def test_a_key_is_kept_with_its_run(path: Path) -> None:
    """A crash of the coordinator loses neither or both."""
    with closing(Ledger(path)) as ledger:
        change(ledger, create_run, "r1", SPEC, 1.0, "k1")
        change(ledger, create_run, "r2", SPEC, 1.0)
    with closing(Ledger(path)) as ledger:
        assert read(ledger, fetch_key, "k1") == KeyRecord("k1", digest_spec(SPEC), "r1")
        assert read(ledger, fetch_key_of_run, "r1") == read(ledger, fetch_key, "k1")
        assert read(ledger, fetch_key, "r1") is None
        assert read(ledger, fetch_key_of_run, "r2") is None


def test_a_key_never_has_two_runs(ledger: Ledger) -> None:
    """Whoever tries that makes no run, not even after the first one was deleted."""
    end_run(ledger, "r1", "k1")
    for run in ("r2", "r3"):
        with pytest.raises(sqlite3.IntegrityError):
            change(ledger, create_run, run, SPEC, 2.0, "k1")
        assert run not in [row.run for row in read(ledger, fetch_runs)]
        if run == "r2":
            change(ledger, begin_deletion, "r1", RunEnd(3.0, b"{}"))


def test_a_run_with_a_key_is_not_deleted_without_its_end(ledger: Ledger) -> None:
    """It could be sent again; a run without a key needs none."""
    end_run(ledger, "r1", "k1")
    end_run(ledger, "r2", None)
    with pytest.raises(ValueError, match="run r1 has a key; its end must be kept"):
        change(ledger, begin_deletion, "r1")
    change(ledger, begin_deletion, "r2")
    assert [row.run for row in read(ledger, fetch_runs)] == ["r1"]


FIRST = FileRef.build("1" * 64, 5, "ca.pem")
SECOND = FileRef.build("2" * 64, 5, "body.json")


def test_the_ledger_knows_which_run_uses_which_file(ledger: Ledger) -> None:
    """They are entered with the run, each once, and go with its other rows."""
    change(ledger, create_run, "r1", Spec(cacert=str(FIRST), cert=str(FIRST), body=str(SECOND)), 1.0)
    change(ledger, create_run, "r2", Spec(cacert="/certs/ca.pem"), 2.0)
    assert sorted(read(ledger, fetch_digests, "r1")) == [FIRST.digest, SECOND.digest]
    assert read(ledger, fetch_digests, "r2") == []
    assert read(ledger, fetch_used) == {FIRST.digest, SECOND.digest}
    assert read(ledger, is_used, FIRST.digest)
    assert not read(ledger, is_used, "3" * 64)
