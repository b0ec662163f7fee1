import fcntl
import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.file_reference import CodeFile, FileRef
from oku_core.spec.values.url import Url
from oku_workers.engines.contract.engine_protocol import EngineError
from oku_workers.engines.user_code.code_folder import (
    build_code_folder,
    fill_code_folder,
    list_code,
    remove_code_folder,
)


def build_spec(files: Mapping[str, bytes], folder: Path) -> Spec:
    """A spec of these files, the first of which is the scenario; they are kept by their digests."""
    named = []
    for path, content in files.items():
        digest = hashlib.sha256(content).hexdigest()
        (folder / digest).write_bytes(content)
        named.append(CodeFile.build(path, FileRef.build(digest, len(content), Path(path).name)))
    return Spec(engine=Engine.PYTHON, scenario=named[0], include=tuple(named[1:]))


def test_files_stand_under_their_paths(tmp_path: Path) -> None:
    """Two with the same content are two; they are copies, which user code may change."""
    files = {"a.py": b"1", "parts/b.py": b"2", "parts/deep/c.txt": b"2"}
    spec = build_spec(files, tmp_path)
    folder = build_code_folder(spec, tmp_path.joinpath)
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.*")}
    assert found == files
    (folder / "parts" / "b.py").write_bytes(b"changed")
    assert (tmp_path / list_code(spec)[1].file.digest).read_bytes() == b"2"
    (folder / "new").mkdir()
    remove_code_folder(folder)
    assert not folder.exists()
    remove_code_folder(folder)


def test_removed_files_are_restored(tmp_path: Path) -> None:
    """Single files, or all of the folder, which is locked then; what user code has written stays."""
    spec = build_spec({"a.py": b"1", "parts/b.py": b"2"}, tmp_path)
    folder = build_code_folder(spec, tmp_path.joinpath)
    (folder / "a.py").write_bytes(b"changed")
    shutil.rmtree(folder / "parts")
    fill_code_folder(folder, spec, tmp_path.joinpath)
    assert [(folder / name).read_bytes() for name in ("a.py", "parts/b.py")] == [b"changed", b"2"]
    shutil.rmtree(folder)
    fill_code_folder(folder, spec, tmp_path.joinpath)
    assert [(folder / name).read_bytes() for name in ("a.py", "parts/b.py")] == [b"1", b"2"]
    assert folder.stat().st_mode & 0o777 == 0o700
    opened = os.open(folder, os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(opened)
    remove_code_folder(folder)


def test_no_file_is_restored_through_a_link(tmp_path: Path) -> None:
    """User code may be confined to its folder; its worker is not, and would write elsewhere for it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    spec = build_spec({"a.py": b"1", "parts/deep/b.py": b"2", "c.py": b"3"}, tmp_path)
    folder = build_code_folder(spec, tmp_path.joinpath)
    shutil.rmtree(folder / "parts")
    (folder / "parts").symlink_to(outside)
    for name in ("a.py", "c.py"):
        (folder / name).unlink()
    (folder / "a.py").symlink_to(outside / "new")
    (folder / "c.py").symlink_to(tmp_path / list_code(spec)[0].file.digest)
    fill_code_folder(folder, spec, tmp_path.joinpath)
    assert list(outside.iterdir()) == []
    found = {name: (folder / name).read_bytes() for name in ("a.py", "parts/deep/b.py", "c.py")}
    assert found == {"a.py": b"1", "parts/deep/b.py": b"2", "c.py": b"3"}
    assert not any(path.is_symlink() for path in folder.rglob("*"))
    remove_code_folder(folder)


def test_a_file_that_is_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line; no folder stays behind."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "folders"))
    (tmp_path / "folders").mkdir()
    spec = build_spec({"a.py": b"1"}, tmp_path)
    with pytest.raises(EngineError, match="the files of the scenario cannot be written: No such file"):
        build_code_folder(spec, lambda digest: tmp_path / f"not-{digest}")
    assert list((tmp_path / "folders").iterdir()) == []


def test_what_a_killed_worker_has_left_is_removed_with_the_next_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of a worker that lives is locked; a new one may be about to be; others are not ours."""
    folders = tmp_path / "folders"
    monkeypatch.setattr("tempfile.tempdir", str(folders))
    for name in ("oku-code-dead", "oku-code-new", "other"):
        (folders / name / "parts").mkdir(parents=True)
    spec = build_spec({"a.py": b"1"}, tmp_path)
    living = build_code_folder(spec, tmp_path.joinpath)
    for folder in (folders / "oku-code-dead", folders / "other", living):
        os.utime(folder, (1.0, 1.0))
    last = build_code_folder(spec, tmp_path.joinpath)
    assert set(folders.iterdir()) == {folders / "oku-code-new", folders / "other", living, last}
    remove_code_folder(living)
    remove_code_folder(last)


def test_a_spec_of_requests_has_no_code() -> None:
    """There is nothing to copy."""
    assert list_code(Spec(urls=(Url("http://h/"),))) == ()
