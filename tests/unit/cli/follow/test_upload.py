import asyncio
import hashlib
import os
from pathlib import Path

import pytest
from tests.kit.file_claims import build_claim

from oku_cli.backends.client import FileStatus, WrongDigestError
from oku_cli.backends.coordinator_ref import UnreachableError
from oku_cli.follow import upload
from oku_cli.follow.upload import LocalFile, read_local_file, upload_files
from oku_core.errors import UserError
from oku_core.spec.values.file_reference import FileClaim

CONTENT = bytes(range(256)) * 100


class FakeClient:
    """A coordinator in memory.

    Args:
        fails_every: of so many calls in a row, the last one is not answered.
    """

    def __init__(self, fails_every: int = 1000) -> None:
        self.content = b""
        self.offsets: list[int] = []
        self._fails_every = fails_every
        self._calls = 0

    async def fetch_file(self, file: FileClaim) -> FileStatus:
        """What is here."""
        self._fail()
        return self._describe(file)

    def _describe(self, file: FileClaim) -> FileStatus:
        is_complete = build_claim(self.content) == file
        return FileStatus(digest=file.digest, received=len(self.content), is_complete=is_complete)

    async def send_piece(self, file: FileClaim, size: int, offset: int, piece: bytes) -> FileStatus:
        """Take a piece."""
        self._fail()
        self.offsets.append(offset)
        if offset == len(self.content):
            self.content += piece
        stored = self._describe(file)
        if len(self.content) == size and not stored.is_complete:
            self.content = b""
            raise WrongDigestError("what was uploaded does not have the digest")
        return stored

    def _fail(self) -> None:
        self._calls += 1
        if self._calls % self._fails_every == 0:
            raise UnreachableError("the coordinator does not answer")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalFile:
    """A file of several pieces, and no pauses."""
    monkeypatch.setattr(upload, "_PIECE_BYTES", 10_000)
    monkeypatch.setattr(upload, "_FIRST_PAUSE_S", 0.0)
    path = tmp_path / "body.bin"
    path.write_bytes(CONTENT)
    return read_local_file(str(path), "--body: @body.bin")


def send(client: FakeClient, *files: LocalFile) -> None:
    """Upload files."""
    asyncio.run(upload_files(client, files, quiet=True))  # type: ignore[arg-type]


def test_a_file_goes_piece_by_piece(file: LocalFile) -> None:
    """One that is named twice goes once, and an upload goes on where another one ended."""
    client = FakeClient()
    send(client, file, file)
    assert client.content == CONTENT
    assert client.offsets == [0, 10_000, 20_000]
    send(client, file)
    assert client.offsets == [0, 10_000, 20_000]
    client = FakeClient()
    client.content = CONTENT[:12_345]
    send(client, file)
    assert client.offsets == [12_345, 22_345]


def test_an_upload_outlives_outages(file: LocalFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks which bytes have arrived, and goes on; after a while it ends with the reason."""
    client = FakeClient(fails_every=3)
    send(client, file)
    assert client.content == CONTENT
    monkeypatch.setattr(upload, "_PATIENCE_S", -1.0)
    with pytest.raises(UnreachableError, match="does not answer"):
        send(FakeClient(fails_every=1), file)


def test_a_wrong_part_is_sent_anew_once(file: LocalFile) -> None:
    """A disk may have lost it; the coordinator drops what has another digest."""
    client = FakeClient()
    client.content = b"x" * 10_000
    send(client, file)
    assert client.content == CONTENT
    assert client.offsets == [10_000, 20_000, 0, 10_000, 20_000]


def test_a_file_that_changes_meanwhile_ends_it(file: LocalFile) -> None:
    """In one line, before a run is submitted."""

    class Changing(FakeClient):
        async def send_piece(self, sent: FileClaim, size: int, offset: int, piece: bytes) -> FileStatus:
            file.path.write_bytes(b"y" * len(CONTENT))
            return await super().send_piece(sent, size, offset, piece)

    with pytest.raises(
        UserError, match=r"^--body: @body.bin: was changed while it was uploaded; nothing was"
    ):
        send(Changing(), file)


def test_a_file_is_known_by_what_is_in_it_and_a_change_is_noticed(tmp_path: Path) -> None:
    """Its reference has its digest, its size and its name without folders."""
    path = tmp_path / "ca.pem"
    path.write_bytes(b"abc" * 1_000_000)
    reference = read_local_file(str(path), "--cacert: @ca.pem").reference
    assert reference.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (reference.size, reference.name) == (3_000_000, "ca.pem")
    # What is no file is refused in one line. A folder, a pipe, nothing; nobody waits for a pipe.
    os.mkfifo(tmp_path / "pipe")
    for name, fault in (
        ("pipe", "--key: @x: is not a regular file"),
        (".", "--key: @x: is not a regular file"),
        ("none", "--key: @x: No such file or directory"),
    ):
        with pytest.raises(UserError) as caught:
            read_local_file(str(tmp_path / name), "--key: @x")
        assert str(caught.value) == fault
    # A file that was changed is noticed. Whether it was written, or another took its place.
    path = tmp_path / "body.json"
    path.write_text("before")
    file = read_local_file(str(path), "--body: @body.json")
    with file.open() as opened:
        file.check(opened)
        path.write_text("after it")
        with pytest.raises(
            UserError, match=r"^--body: @body.json: was changed while it was uploaded; nothing"
        ):
            file.check(opened)
    path.unlink()
    with pytest.raises(UserError, match="No such file"), file.open():
        pass
