import os
import socket
import stat
from pathlib import Path

import pytest

from oku_core.process.private_files import (
    NotPrivateError,
    check_private_folder,
    make_private_folder,
    open_private,
    prepare_private_file,
    tighten_private_file,
    write_private,
)

FILES = os.O_RDWR | os.O_CREAT


@pytest.fixture(autouse=True)
def _lax_umask() -> object:
    """Who has a lax umask is protected, too."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is there belongs to somebody else: this process takes itself for another user."""
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)


def find_mode(path: Path) -> int:
    """What the system lets whom do with it."""
    return stat.S_IMODE(path.stat().st_mode)


def test_a_folder_is_made_for_us_alone(tmp_path: Path) -> None:
    """And one of ours that others may read is closed to them."""
    make_private_folder(tmp_path / "a" / "b")
    (tmp_path / "open").mkdir(mode=0o755)
    make_private_folder(tmp_path / "open")

    assert find_mode(tmp_path / "a" / "b") == find_mode(tmp_path / "open") == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o775, 0o777, 0o1777, 0o2770])
def test_a_folder_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    """They may have put anything there; its mode is said and left."""
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(mode)

    for use in (make_private_folder, check_private_folder):
        with pytest.raises(NotPrivateError) as caught:
            use(folder)
        assert f"others may write this folder (mode {mode:04o})" in str(caught.value.strerror)
    assert find_mode(folder) == mode
    make_private_folder(folder, is_trusted=True)
    assert find_mode(folder) == mode


@pytest.mark.usefixtures("somebody_else")
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    """With his name, unless it is to be trusted."""
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)

    with pytest.raises(NotPrivateError, match=r"^\[Errno 1\] belongs to .+, not to .+"):
        make_private_folder(folder)
    make_private_folder(folder, is_trusted=True)


def test_what_is_no_folder_is_said(tmp_path: Path) -> None:
    """A file, or nothing."""
    (tmp_path / "file").touch(mode=0o600)

    with pytest.raises(NotADirectoryError):
        check_private_folder(tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        check_private_folder(tmp_path / "none")


def test_a_file_is_made_for_us_alone_and_closed_to_others(tmp_path: Path) -> None:
    """Whichever way it is made, and whatever its mode was."""
    os.close(open_private(tmp_path / "opened", FILES))
    prepare_private_file(tmp_path / "prepared")
    write_private(tmp_path / "written", "text")
    for name in ("lax-opened", "lax-prepared", "lax-written"):
        (tmp_path / name).write_text("kept")
    os.close(open_private(tmp_path / "lax-opened", FILES))
    prepare_private_file(tmp_path / "lax-prepared")
    write_private(tmp_path / "lax-written", "new")

    assert {path.name: find_mode(path) for path in tmp_path.iterdir()} == dict.fromkeys(
        ["opened", "prepared", "written", "lax-opened", "lax-prepared", "lax-written"], 0o600
    )
    assert (tmp_path / "lax-opened").read_text() == (tmp_path / "lax-prepared").read_text() == "kept"
    assert (tmp_path / "lax-written").read_text() == "new"


def test_no_link_is_followed(tmp_path: Path) -> None:
    """Neither one that leads to a file nor one that leads nowhere; one that is in the way is replaced."""
    goal = tmp_path / "goal"
    goal.write_text("of somebody else")
    for name, leads_to in (("link", goal), ("dangling", tmp_path / "none")):
        link = tmp_path / name
        link.symlink_to(leads_to)
        for use in (lambda path: open_private(path, FILES), prepare_private_file, tighten_private_file):
            with pytest.raises(NotPrivateError, match="is not a regular file"):
                use(link)
        write_private(link, "ours")
        assert not link.is_symlink()
    assert goal.read_text() == "of somebody else"
    assert not (tmp_path / "none").exists()


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    """A pipe would hold up whoever opens it."""
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))

    for name in ("pipe", "socket"):
        with pytest.raises(OSError, match=r"regular|device"):
            open_private(tmp_path / name, FILES)
        with pytest.raises(NotPrivateError, match="is not a regular file"):
            prepare_private_file(tmp_path / name)


def test_a_file_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the folder is his, too: a volume that was trusted."""
    (tmp_path / "file").touch()
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    os.close(open_private(tmp_path / "file", FILES))

    theirs = os.stat_result((stat.S_IFDIR | 0o700, 0, 0, 1, os.getuid() + 1, 0, 0, 0, 0, 0))
    monkeypatch.setattr(Path, "stat", lambda *_, **__: theirs)
    with pytest.raises(NotPrivateError, match="belongs to"):
        open_private(tmp_path / "file", FILES)


def test_a_file_that_is_not_there_is_not_made_by_looking(tmp_path: Path) -> None:
    """What SQLite puts beside its file comes and goes."""
    tighten_private_file(tmp_path / "none")

    assert list(tmp_path.iterdir()) == []
