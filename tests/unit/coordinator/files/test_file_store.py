import os
from pathlib import Path

import pytest
from tests.kit.file_claims import build_claim

from oku_coordinator.files.file_store import (
    DigestError,
    FileName,
    FileStore,
    FileTooLargeError,
    NoRoomError,
    UnknownFileError,
    find_stored_file,
    read_name,
)
from oku_coordinator.settings import FileLimits
from oku_core.spec.values.file_reference import FileClaim

CONTENT = b"what is in a file"
CLAIM = build_claim(CONTENT)
DIGEST = CLAIM.digest
NAME = f"{DIGEST}.{CLAIM.proof}"
OTHER = FileClaim("0" * 64, "1" * 64)


def test_a_name_says_what_a_file_is() -> None:
    """Whole or a part, with its proof."""
    for is_part in (False, True):
        name = FileName(CLAIM, is_part)
        assert read_name(str(name)) == name
    for text in (
        "",
        "notes.txt",
        "0" * 63,
        CLAIM.digest,
        f"{CLAIM.digest}.",
        f"{CLAIM.digest}.x",
        f".{CLAIM.proof}",
        ".part",
    ):
        assert read_name(text) is None, text


def test_a_file_is_found_by_its_digest(tmp_path: Path) -> None:
    """A part is none, and what else begins like it is not looked at."""
    assert find_stored_file(tmp_path, CLAIM.digest) is None
    for name in (FileName(CLAIM, is_part=True), f"{CLAIM.digest}.old"):
        (tmp_path / str(name)).touch()
    assert find_stored_file(tmp_path / "none", CLAIM.digest) is None
    assert find_stored_file(tmp_path, CLAIM.digest) is None
    path = tmp_path / str(FileName(CLAIM))
    path.touch()
    assert find_stored_file(tmp_path, CLAIM.digest) == path


def put(store: FileStore, content: bytes = CONTENT) -> FileClaim:
    """Bring a file in; gives its claim."""
    claim = build_claim(content)
    store.admit(claim, len(content))
    store.append(claim, content)
    store.complete(claim)
    return claim


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    """An empty store."""
    return FileStore(tmp_path / "files")


def test_a_file_gets_its_name_when_it_is_whole(store: FileStore, tmp_path: Path) -> None:
    """Until then it cannot be found; from then on nobody but its owner can read it."""
    store.admit(CLAIM, len(CONTENT))
    store.append(CLAIM, CONTENT[:5])
    assert store.describe(CLAIM).received == 5
    with pytest.raises(UnknownFileError):
        store.find(DIGEST)
    store.append(CLAIM, CONTENT[5:])
    store.complete(CLAIM)
    path = store.find(DIGEST)
    assert path == tmp_path / "files" / NAME
    assert path.read_bytes() == CONTENT
    assert path.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "files").stat().st_mode & 0o777 == 0o700
    assert store.describe(CLAIM).is_complete


def test_what_has_another_digest_is_not_kept(store: FileStore, tmp_path: Path) -> None:
    """Not even as a part that could be gone on with."""
    store.admit(OTHER, len(CONTENT))
    store.append(OTHER, CONTENT)
    with pytest.raises(DigestError, match="does not have the digest 000"):
        store.complete(OTHER)
    assert store.describe(OTHER).received == 0
    assert list((tmp_path / "files").iterdir()) == []


def test_another_process_finds_what_is_there(store: FileStore, tmp_path: Path) -> None:
    """Whole files, and parts of others; what else lies there is left alone."""
    put(store)
    store.admit(OTHER, 10)
    store.append(OTHER, b"abc")
    (tmp_path / "files" / "notes.txt").write_text("mine")
    after = FileStore(tmp_path / "files")
    assert after.describe(CLAIM).is_complete
    assert after.describe(OTHER).received == 3
    after.sweep(frozenset())
    assert (tmp_path / "files" / "notes.txt").exists()


def test_the_operator_bounds_a_file_and_all_of_them(tmp_path: Path) -> None:
    """Those that are still coming in count with the size that they will have."""
    store = FileStore(tmp_path / "files", FileLimits(most_file_bytes=20, most_bytes=50))
    with pytest.raises(FileTooLargeError, match="has 21 bytes, and at most 20 are allowed"):
        store.admit(OTHER, 21)
    put(store)
    store.admit(OTHER, 20)
    with pytest.raises(FileTooLargeError, match="would have 53 bytes, and at most 50 are allowed"):
        store.admit(FileClaim("1" * 64, "1" * 64), 16)
    store.abandon(OTHER)
    store.admit(FileClaim("1" * 64, "1" * 64), 16)


def test_room_is_left_for_the_ledger(tmp_path: Path) -> None:
    """A disk that a file would fill takes none of it."""
    store = FileStore(tmp_path / "files", measure_free=lambda _: 300 << 20)
    store.admit(OTHER, 10 << 20)
    with pytest.raises(NoRoomError, match="256 MiB are kept free for the ledger"):
        store.admit(OTHER, 50 << 20)


def test_a_disk_that_is_full_after_all_is_said(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was there before stays."""
    store.admit(CLAIM, len(CONTENT))
    store.append(CLAIM, CONTENT[:5])

    def fail(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "write", fail)
        with pytest.raises(NoRoomError, match="No space left on device"):
            store.append(CLAIM, CONTENT[5:])
    assert store.describe(CLAIM).received == 5
    store.append(CLAIM, CONTENT[5:])
    store.complete(CLAIM)


def test_a_file_goes_when_nobody_uses_it(store: FileStore) -> None:
    """Unless somebody has just asked for it, who is about to."""
    put(store)
    store.delete(DIGEST)
    assert store.describe(CLAIM).is_complete
    assert store.claim_whole(DIGEST) == len(CONTENT)
    store.delete(DIGEST)
    assert store.claim_whole(DIGEST) is None


def test_whoever_asks_for_an_old_file_has_time_to_use_it(tmp_path: Path) -> None:
    """As much as after an upload, for nothing of it is sent again."""
    now = [0.0]
    store = FileStore(tmp_path / "files", FileLimits(unused_s=60.0), clock=lambda: now[0])
    put(store)
    now[0] = (tmp_path / "files" / NAME).stat().st_mtime + 100
    assert store.describe(CLAIM).is_complete
    store.sweep(frozenset())
    assert store.claim_whole(DIGEST) == len(CONTENT)
    store.sweep(frozenset())
    assert store.claim_whole(DIGEST) is None


def test_what_no_run_uses_goes_after_a_while(tmp_path: Path) -> None:
    """Whole files and parts alike; what a run uses, or is coming in, stays."""
    now = [0.0]
    store = FileStore(tmp_path / "files", FileLimits(unused_s=60.0), clock=lambda: now[0])
    used, unused = put(store, b"used"), put(store, b"unused")
    store.admit(OTHER, 10)
    store.append(OTHER, b"abc")
    store.abandon(OTHER)
    now[0] = max(path.stat().st_mtime for path in (tmp_path / "files").iterdir()) + 30
    store.sweep({used.digest})
    assert store.describe(unused).is_complete
    now[0] += 60
    store.sweep({used.digest})
    assert store.describe(used).is_complete
    assert not store.describe(unused).is_complete
    assert store.describe(OTHER).received == 0
    assert [path.name for path in (tmp_path / "files").iterdir()] == [".".join(used)]


def test_a_caller_without_the_right_proof_finds_nothing(store: FileStore) -> None:
    """Neither a file nor a part of one, and they cannot go on with that part, nor keep a file for a day."""
    guess = FileClaim(DIGEST, "2" * 64)
    store.admit(CLAIM, len(CONTENT))
    store.append(CLAIM, CONTENT[:-1])
    assert store.describe(guess).received == 0
    store.admit(guess, len(CONTENT))
    store.append(guess, CONTENT[-1:])
    with pytest.raises(DigestError):
        store.complete(guess)
    store.append(CLAIM, CONTENT[-1:])
    store.complete(CLAIM)
    assert store.claim_whole(DIGEST) == len(CONTENT)
    absent = store.describe(guess)
    assert (absent.received, absent.is_complete) == (0, False)
    assert not store.is_proven(guess)
    assert not store.is_proven(FileClaim(DIGEST, ""))
    store.delete(DIGEST)
    assert not store.describe(CLAIM).is_complete


def test_the_whole_content_without_its_proof_is_not_kept(store: FileStore) -> None:
    """A file has one proof, so nobody can give it another one for those who come later."""
    guess = FileClaim(DIGEST, "2" * 64)
    store.admit(guess, len(CONTENT))
    store.append(guess, CONTENT)
    with pytest.raises(DigestError, match="and its proof"):
        store.complete(guess)
    assert store.claim_whole(DIGEST) is None
