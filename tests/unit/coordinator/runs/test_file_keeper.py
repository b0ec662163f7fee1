import hashlib
from pathlib import Path

import pytest

from oku_coordinator.files.file_store import FileStore
from oku_coordinator.ledger import Ledger
from oku_coordinator.runs.file_keeper import FileKeeper
from oku_coordinator.runs.retention import Retention
from oku_coordinator.settings import FileLimits, RetentionRule
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError
from oku_core.spec.spec import Spec
from oku_core.spec.values.file_reference import FileRef

CONTENT = b"what is in a file"
FILE = FileRef.build(hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), "ca.pem")
SPEC = Spec(cacert=str(FILE), body=str(FILE), requests=1)


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    """A store with one file."""
    store = FileStore(tmp_path / "files", FileLimits(most_per_run=1))
    store.admit(FILE.digest, FILE.size)
    store.append(FILE.digest, CONTENT)
    store.complete(FILE.digest)
    return store


def test_a_run_needs_its_files(ledger: Ledger, store: FileStore) -> None:
    """All of them are here, as large as the spec says, and not too many; one used twice counts once."""
    keeper = FileKeeper(ledger, store)
    keeper.check(Spec())
    keeper.check(SPEC)
    missing = FileRef.build("0" * 64, 1, "other.pem")
    with pytest.raises(UserError, match=r"^other.pem: was not uploaded to this coordinator$"):
        keeper.check(Spec(cacert=str(missing)))
    wrong = FileRef.build(FILE.digest, 1, "ca.pem")
    with pytest.raises(UserError, match=r"^ca.pem: has 17 bytes here, and 1 in the spec$"):
        keeper.check(Spec(cacert=str(wrong)))
    with pytest.raises(UserError, match="the run uses 2 files, and at most 1 are allowed"):
        keeper.check(Spec(cacert=str(missing), cert=str(FILE)))


async def test_a_file_goes_with_the_last_run_that_uses_it(
    ledger: Ledger, store: FileStore, tmp_path: Path
) -> None:
    """As long as there is another one it stays, and is not taken for an unused one."""
    keeper = FileKeeper(ledger, store)
    for number in (1, 2):
        keeper.check(SPEC)
        ledger.runs.create(f"r{number}", SPEC, float(number))
        ledger.runs.change_state(f"r{number}", RunState.CANCELLED, float(number))
    assert ledger.files.fetch("r1") == [FILE.digest]
    retention = Retention(ledger, tmp_path, RetentionRule(), lambda: 100.0, keeper)
    ledger.deletions.begin("r1")
    await retention.clear()
    keeper.sweep()
    assert store.find(FILE.digest).exists()
    ledger.deletions.begin("r2")
    await retention.clear()
    assert ledger.files.fetch_used() == set()
    assert store.hand_over(FILE.digest) is None
