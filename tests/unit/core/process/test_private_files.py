import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from oku_core.errors import UserError
from oku_core.process.private_files import (
    FileLock,
    NotPrivateError,
    check_private_folder,
    make_data_folder,
    make_own_folder,
    make_private_folder,
    open_private,
    prepare_private_file,
    remove_ready_file,
    restore_private_folder,
    tighten_private_file,
    write_private,
    write_ready_file,
)

FILES = os.O_RDWR | os.O_CREAT


@pytest.fixture(autouse=True)
def _lax_umask() -> object:
    """Set a lax umask, from which users are protected, too."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every existing file belong to another user, by giving this process another user id."""
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)


def find_mode(path: Path) -> int:
    """Return the permission bits of a path."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o775, 0o777, 0o1777, 0o2770])
def test_a_folder_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    """They may have put anything there; the error shows its mode, which stays."""
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


def test_a_folder_is_made_for_us_alone(tmp_path: Path) -> None:
    """An existing folder of ours that others may read is closed to them."""
    make_private_folder(tmp_path / "a" / "b")
    (tmp_path / "open").mkdir(mode=0o755)
    make_private_folder(tmp_path / "open")
    assert find_mode(tmp_path / "a" / "b") == find_mode(tmp_path / "open") == 0o700
    # All our processes find the same folder.
    folder = make_own_folder(tmp_path, "cache")
    assert (folder, find_mode(folder)) == (tmp_path / "cache", 0o700)
    assert make_own_folder(tmp_path, "cache") == folder


@pytest.mark.parametrize(
    "squat", [Path.touch, lambda path: path.symlink_to("/"), lambda path: path.mkdir(0o777)]
)
def test_a_name_that_is_taken_keeps_us_from_no_folder(
    tmp_path: Path, squat: Callable[[Path], object]
) -> None:
    """Neither by a file nor by a link, nor by a folder that others may write, nor by several of them."""
    for name in ("cache", "cache-0", "cache-zzz"):
        squat(tmp_path / name)
    folder = make_own_folder(tmp_path, "cache")
    assert folder.name.startswith("cache-")
    assert find_mode(folder) == 0o700
    assert make_own_folder(tmp_path, "cache") == folder
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.usefixtures("somebody_else")
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    """The error names its owner; a trusted folder is accepted."""
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)

    with pytest.raises(NotPrivateError, match=r"^\[Errno 1\] belongs to .+, not to .+"):
        make_private_folder(folder)
    make_private_folder(folder, is_trusted=True)


def test_a_file_is_made_for_us_alone_and_closed_to_others(tmp_path: Path) -> None:
    """This holds for every way to create it, and for every mode that it had."""
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
    """Links to a file and dangling links are refused; a link in the way of a new file is replaced."""
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


def test_a_path_without_a_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    """Opening a pipe would block."""
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))

    for name in ("pipe", "socket"):
        with pytest.raises(OSError, match=r"regular|device"):
            open_private(tmp_path / name, FILES)
        with pytest.raises(NotPrivateError, match="is not a regular file"):
            prepare_private_file(tmp_path / name)


def test_a_file_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is accepted if the folder has the same owner, as on a trusted volume."""
    (tmp_path / "file").touch()
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    os.close(open_private(tmp_path / "file", FILES))

    theirs = os.stat_result((stat.S_IFDIR | 0o700, 0, 0, 1, os.getuid() + 1, 0, 0, 0, 0, 0))
    monkeypatch.setattr(Path, "stat", lambda *_, **__: theirs)
    with pytest.raises(NotPrivateError, match="belongs to"):
        open_private(tmp_path / "file", FILES)


def test_what_is_not_there_is_not_made(tmp_path: Path) -> None:
    """The path may be that of a file, or may not exist."""
    (tmp_path / "file").touch(mode=0o600)
    with pytest.raises(NotADirectoryError):
        check_private_folder(tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        check_private_folder(tmp_path / "none")
    # Checking a missing file does not create it.
    tighten_private_file(tmp_path / "none")
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def ignores_everything(folder: Path) -> bool:
    """Whether a folder has a `.gitignore` of Oku's, closed to others."""
    file = folder / ".gitignore"
    return file.exists() and file.read_text().splitlines()[-1] == "*" and find_mode(file) == 0o600


def test_a_data_folder_keeps_what_is_in_it_out_of_git_if_it_is_only_ours(tmp_path: Path) -> None:
    """Someone may name the folder of a project, whose files must not vanish from Git; or a volume."""
    (tmp_path / "project").mkdir(mode=0o700)
    (tmp_path / "project" / "main.py").touch()
    (tmp_path / "volume").mkdir(mode=0o700)
    make_data_folder(tmp_path / "project")
    make_data_folder(tmp_path / "volume", is_trusted=True)
    assert [path.name for path in tmp_path.rglob("*")].count(".gitignore") == 0
    # A gitignore that exists is never changed.
    for name, content in (("written", "!reports\n"), ("emptied", "")):
        folder = tmp_path / name / ".oku"
        folder.mkdir(parents=True, mode=0o700)
        (folder / ".gitignore").write_text(content)
        make_data_folder(folder)
        assert (folder / ".gitignore").read_text() == content
    linked = tmp_path / "linked" / ".oku"
    linked.mkdir(parents=True, mode=0o700)
    (linked / ".gitignore").symlink_to(tmp_path / "elsewhere")
    make_data_folder(linked)
    assert not (tmp_path / "elsewhere").exists()
    # A data folder of our own keeps what is in it out of git.
    (tmp_path / "empty").mkdir(mode=0o700)
    (tmp_path / "older" / ".oku").mkdir(parents=True, mode=0o700)
    (tmp_path / "older" / ".oku" / "message.key").touch()
    for name in ("new", "empty", "older/.oku", "a/b/.oku"):
        make_data_folder(tmp_path / name)
        assert ignores_everything(tmp_path / name), name
        assert find_mode(tmp_path / name) == 0o700
    # A folder within a data folder needs no gitignore. Git does not look into it.
    make_data_folder(tmp_path / ".oku")
    make_data_folder(tmp_path / ".oku" / "servers")
    assert [path.name for path in (tmp_path / ".oku" / "servers").iterdir()] == []


def test_a_gitignore_that_could_not_be_written_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty one would hide nothing, and would never be changed."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fdopen", fail)
        with pytest.raises(OSError, match="No space left"):
            make_data_folder(tmp_path / ".oku")
    assert not (tmp_path / ".oku" / ".gitignore").exists()
    make_data_folder(tmp_path / ".oku")
    assert ignores_everything(tmp_path / ".oku")


@pytest.mark.parametrize("mode", [0, 0o500, 0o777])
def test_a_private_folder_gets_its_mode_back(tmp_path: Path, mode: int) -> None:
    """Whether it was closed to us or opened to others; what a link leads to stays as it is."""
    folder, link = tmp_path / "folder", tmp_path / "link"
    folder.mkdir()
    folder.chmod(mode)
    link.symlink_to(folder)

    restore_private_folder(link)
    assert find_mode(folder) == mode
    restore_private_folder(folder)
    assert find_mode(folder) == 0o700
    restore_private_folder(tmp_path / "missing")


def test_a_lock_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restarted coordinator waits until the old one has gone."""
    held = FileLock(tmp_path / "lock")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        held.release()

    monkeypatch.setattr("oku_core.process.private_files.time.sleep", pause)
    FileLock(tmp_path / "lock", wait_s=60.0).release()
    assert len(pauses) == 1


def test_the_ready_file_has_the_address_in_one_line(tmp_path: Path) -> None:
    """The file replaces an earlier one, and no temporary file remains."""
    path = tmp_path / "ready"
    path.write_text("10.0.0.1:1\n")
    write_ready_file(path, "127.0.0.1:8080")
    assert path.read_text() == "127.0.0.1:8080\n"
    assert list(tmp_path.iterdir()) == [path]
    # The file of an earlier server is removed.
    for _ in range(2):
        remove_ready_file(path)
        assert not path.exists()
    # A ready file that cannot be written is named with the reason. A missing folder is the user's mistake.
    path = tmp_path / "none" / "ready"
    with pytest.raises(UserError, match=rf"^--ready-file: {path} cannot be written: No such file"):
        write_ready_file(path, "127.0.0.1:8080")
    # A ready file that cannot be replaced is named with the reason.
    with pytest.raises(UserError, match=rf"^--ready-file: {tmp_path} cannot be replaced: "):
        remove_ready_file(tmp_path)
