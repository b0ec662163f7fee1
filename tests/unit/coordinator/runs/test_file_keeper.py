from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.kit.coordinators.transactions import change, read
from tests.kit.file_claims import build_claim

from oku_coordinator.files.file_store import FileStore
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.tables.deletion_table import begin_deletion
from oku_coordinator.ledger.tables.submission_table import fetch_digests, fetch_used
from oku_coordinator.runs.file_keeper import FileKeeper
from oku_coordinator.runs.retention import Retention
from oku_coordinator.settings import FileLimits, RetentionRule
from oku_core.accounting.run_state import RunState
from oku_core.data.data_format import DataFormat
from oku_core.errors import UserError
from oku_core.spec.data_file import DataFile
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.target import Target
from oku_core.spec.values.file_reference import CodeFile, FileRef

CONTENT = b"what is in a file"
CLAIM = build_claim(CONTENT)
FILE = FileRef.build(CLAIM.digest, len(CONTENT), "ca.pem")
SPEC = Spec(cacert=str(FILE), body=str(FILE), requests=1)

NOT_HERE = "was not uploaded to this coordinator, or proofs has no proof that you have it"


def build_data(digest: str, index: str, size: int = len(CONTENT)) -> DataFile:
    """Data with this file of rows, and this index of them."""
    return DataFile(
        name="ca.pem", format=DataFormat.CSV, digest=digest, size=size, rows=1, columns=("a",), index=index
    )


PLACES: Mapping[str, Callable[[FileRef], Spec]] = {
    "body": lambda file: Spec(body=file),
    "body of a target": lambda file: Spec(targets=(Target(name="a", url="http://h/", body=file),)),
    "cacert": lambda file: Spec(cacert=file),
    "cert": lambda file: Spec(cert=file, key="/certs/key.pem"),
    "key": lambda file: Spec(cert="/certs/cert.pem", key=file),
    "data": lambda file: Spec(data=build_data(file.digest, file.digest)),
    "scenario": lambda file: Spec(engine=Engine.PYTHON, scenario=CodeFile.build("a.py", file)),
    "include": lambda file: Spec(
        engine=Engine.PYTHON,
        scenario=CodeFile.build("a.py", file),
        include=(CodeFile.build("b.py", file),),
    ),
}
"""Every place of a spec that names a file of the run."""


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    """A store with one file."""
    store = FileStore(tmp_path / "files", FileLimits(most_per_run=1))
    store.admit(CLAIM, FILE.size)
    store.append(CLAIM, CONTENT)
    store.complete(CLAIM)
    return store


def test_a_run_needs_its_files(ledger: Ledger, store: FileStore) -> None:
    """All of them are here, as large as the spec says, and not too many; one used twice counts once."""
    keeper = FileKeeper(ledger, store)
    keeper.check(Spec())
    keeper.check(SPEC)
    missing = FileRef.build("0" * 64, 1, "other.pem")
    with pytest.raises(UserError, match=r"^other.pem: was not uploaded to this coordinator, or proofs"):
        keeper.check(Spec(cacert=str(missing)))
    wrong = FileRef.build(FILE.digest, 1, "ca.pem")
    with pytest.raises(UserError, match=r"^ca.pem: has 17 bytes here, and 1 in the spec$"):
        keeper.check(Spec(cacert=str(wrong)))
    with pytest.raises(UserError, match="the run uses 2 files, and at most 1 are allowed"):
        keeper.check(Spec(cacert=str(missing), cert=str(FILE)))


def test_a_digest_gives_nobody_a_file(ledger: Ledger, store: FileStore) -> None:
    """In each place of a spec that names files: no proof, a wrong one and no such file are the same."""
    keeper = FileKeeper(ledger, store)
    absent = FileRef.build("0" * 64, len(CONTENT), "ca.pem")

    def refuse(spec: Spec, proofs: dict[str, str]) -> str:
        try:
            keeper.check_proofs(spec, proofs)
        except UserError as error:
            return str(error).partition(": ")[2]
        return ""

    wrong, refusals = [], set()
    for place, build in PLACES.items():
        if refusal := refuse(build(FILE), dict([CLAIM])):
            wrong.append((place, refusal))
        for file, proofs in (
            (FILE, {}),
            (FILE, {CLAIM.digest: "1" * 64}),
            (FILE, {"0" * 64: CLAIM.proof}),
            (absent, {}),
        ):
            refusals.add(refuse(build(file), proofs))
    assert not wrong
    assert refusals == {NOT_HERE}


async def test_a_file_goes_with_the_last_run_that_uses_it(
    ledger: Ledger, store: FileStore, tmp_path: Path
) -> None:
    """As long as there is another one it stays, and is not taken for an unused one."""
    keeper = FileKeeper(ledger, store)
    for number in (1, 2):
        keeper.check(SPEC)
        change(ledger, create_run, f"r{number}", SPEC, float(number))
        change(ledger, change_state, f"r{number}", RunState.CANCELLED, float(number))
    assert read(ledger, fetch_digests, "r1") == [FILE.digest]
    retention = Retention(ledger, tmp_path, RetentionRule(), lambda: 100.0, keeper)
    change(ledger, begin_deletion, "r1")
    await retention.clear()
    keeper.sweep()
    assert store.find(FILE.digest).exists()
    change(ledger, begin_deletion, "r2")
    await retention.clear()
    assert read(ledger, fetch_used) == set()
    assert store.claim_whole(FILE.digest) is None
