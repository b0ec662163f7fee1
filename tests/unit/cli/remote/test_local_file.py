import hashlib
import os
from pathlib import Path

import pytest

from oku_cli.remote.local_file import read_local_file
from oku_core.errors import UserError


def test_a_file_is_known_by_what_is_in_it(tmp_path: Path) -> None:
    """Its reference has its digest, its size and its name without folders."""
    path = tmp_path / "ca.pem"
    path.write_bytes(b"abc" * 1_000_000)
    reference = read_local_file(str(path), "--cacert: @ca.pem").reference
    assert reference.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (reference.size, reference.name) == (3_000_000, "ca.pem")


def test_what_is_no_file_is_refused_in_one_line(tmp_path: Path) -> None:
    """A folder, a pipe, nothing; nobody waits for a pipe."""
    os.mkfifo(tmp_path / "pipe")
    for name, fault in (
        ("pipe", "--key: @x: is not a regular file"),
        (".", "--key: @x: is not a regular file"),
        ("none", "--key: @x: No such file or directory"),
    ):
        with pytest.raises(UserError) as caught:
            read_local_file(str(tmp_path / name), "--key: @x")
        assert str(caught.value) == fault


def test_a_file_that_was_changed_is_noticed(tmp_path: Path) -> None:
    """Whether it was written, or another took its place."""
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
