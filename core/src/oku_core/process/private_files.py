"""Folders and files that only their owner can read or change, with locks and ready files among them.

Anyone who may write to a folder can place a link where a file is about to be created, or keep a file open
that is about to be filled. So folders that belong to others, or that others may write to, are refused. A file
must be created by us or belong to us, and is never opened through a link. A ready file contains the address
of a server, for its parent process.
"""

import contextlib
import errno
import fcntl
import glob
import os
import pwd
import stat
import tempfile
import time
from pathlib import Path

from oku_core.errors import UserError

_FOLDER, _FILE = 0o700, 0o600
_OTHERS = 0o077
_OTHERS_WRITE = 0o022
_NOT_REGULAR = "is not a regular file"
DATA_FOLDER = ".oku"
"""The name of a folder that is Oku's, with any content."""
_GIT_IGNORE = ".gitignore"
_IGNORED = "# Made by Oku: the folder has keys, headers and bodies of runs.\n*\n"


class NotPrivateError(OSError):
    """Others can interfere with a folder or file; `strerror` explains how, and what the user can do."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(errno.EPERM, reason, str(path))


def make_private_folder(path: Path, *, is_trusted: bool = False) -> None:
    """Create a folder that only we can open, or close an existing one of ours to others.

    Args:
        path: the path of the folder.
        is_trusted: whether an existing folder is used as it is, such as a volume that is mounted only here.

    Raises:
        NotPrivateError: the folder belongs to another user, or others may write to it.
        OSError: the folder cannot be created.
    """
    with contextlib.suppress(FileExistsError):
        path.mkdir(parents=True, mode=_FOLDER)
    if is_trusted:
        return
    check_private_folder(path)
    if path.stat().st_mode & _OTHERS:
        path.chmod(_FOLDER)


def restore_private_folder(path: Path) -> None:
    """Give a private folder of ours its mode back, which any process of ours may have changed."""
    with contextlib.suppress(OSError):  # it is gone, or belongs to the owner of a volume
        if stat.S_ISDIR(path.lstat().st_mode):
            path.chmod(_FOLDER)


def make_own_folder(place: Path, name: str) -> Path:
    """Make a folder of ours in one where every user may make some, or find ours there.

    Another user may have taken the name in advance. Then ours gets a random end, which cannot be guessed; our
    later processes find it by its owner.

    Raises:
        OSError: the folder cannot be created.
    """
    with contextlib.suppress(FileExistsError):
        (place / name).mkdir(mode=_FOLDER)
    for found in (place / name, *sorted(place.glob(f"{glob.escape(name)}-*"))):
        if _is_own_folder(found):
            return found
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=place))


def make_data_folder(path: Path, *, is_trusted: bool = False) -> None:
    """Create or close a folder as `make_private_folder` does, and keep what it will contain out of Git.

    It gets a `.gitignore` if it is Oku's own: called `.oku`, or empty until now. A folder with other files
    gets none, because that would hide them as well. A `.gitignore` that exists is never changed.

    Raises:
        NotPrivateError: the folder belongs to another user, or others may write to it.
        OSError: the folder or the file cannot be created.
    """
    make_private_folder(path, is_trusted=is_trusted)
    if is_trusted or _is_ignored(path.absolute().parent):
        return
    if path.absolute().name == DATA_FOLDER or not any(path.iterdir()):
        _create_private(path / _GIT_IGNORE, _IGNORED)


def check_private_folder(path: Path) -> None:
    """Check that only we may write to an existing folder.

    Raises:
        NotPrivateError: the folder belongs to another user, or others may write to it.
        OSError: the path does not exist, or is not a folder.
    """
    _require_ours(path, path.lstat().st_uid)
    state = path.stat()
    if not stat.S_ISDIR(state.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    _require_ours(path, state.st_uid)
    if state.st_mode & _OTHERS_WRITE:
        mode = f"{stat.S_IMODE(state.st_mode):04o}"
        raise NotPrivateError(
            path, f"others may write this folder (mode {mode}); chmod it to 700 if you trust what is in it"
        )


def open_private(path: Path, flags: int) -> int:
    """Open a regular file of ours, or create it if `flags` ask for it; from then on only we can open it.

    Raises:
        NotPrivateError: the file belongs to another user, or is not a regular file but, for example, a link.
        OSError: the file cannot be opened.
    """
    try:
        # Without O_NONBLOCK, opening a pipe that has no reader would block.
        file = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, _FILE)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotPrivateError(path, _NOT_REGULAR) from error
        raise
    try:
        state = os.fstat(file)
        _check_file(path, state)
        if state.st_mode & _OTHERS:
            _tighten(file)
    except BaseException:
        os.close(file)
        raise
    return file


def prepare_private_file(path: Path) -> None:
    """Create an empty file, or close an existing one to others without opening it.

    This is for SQLite's files: if a process closes such a file, it loses all its locks on it.

    Raises:
        NotPrivateError: the file belongs to another user, or is not a regular file.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE))
    except FileExistsError:
        tighten_private_file(path)


def tighten_private_file(path: Path) -> None:
    """Close a file to others without opening it; do nothing if it does not exist.

    Raises:
        NotPrivateError: the file belongs to another user, or is not a regular file.
    """
    try:
        state = path.lstat()
    except FileNotFoundError:
        return
    _check_file(path, state)
    if state.st_mode & _OTHERS:
        _tighten(path)


def write_private(path: Path, content: str) -> None:
    """Create or replace a file with this content; readers see either none of it or all of it."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.unlink(missing_ok=True)
    file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE)
    try:
        with os.fdopen(file, "w", encoding="utf-8") as output:
            output.write(content)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _is_ignored(folder: Path) -> bool:
    """Whether Git ignores this folder because of us."""
    try:
        return (folder / _GIT_IGNORE).read_text(errors="replace") == _IGNORED
    except OSError:
        return False


def _create_private(path: Path, content: str) -> None:
    """Create a file with this content unless its name is taken, even by a link."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE)
    except FileExistsError:
        return
    try:
        with os.fdopen(file, "w", encoding="utf-8") as output:
            output.write(content)
    except OSError as error:
        path.unlink(missing_ok=True)  # the disk is full: the next one tries again
        raise OSError(error.errno, error.strerror, str(path)) from error


def _check_file(path: Path, state: os.stat_result) -> None:
    if not stat.S_ISREG(state.st_mode):
        raise NotPrivateError(path, _NOT_REGULAR)
    # On a trusted volume, files may belong to the owner of the volume.
    if state.st_uid != path.parent.stat().st_uid:
        _require_ours(path, state.st_uid)


def _is_own_folder(path: Path) -> bool:
    try:
        state = path.lstat()
    except FileNotFoundError:
        return False
    is_closed = not state.st_mode & _OTHERS_WRITE
    return stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid() and is_closed


def _tighten(file: Path | int) -> None:
    # Some volumes do not support chmod, and SQLite may have removed the file in the meantime.
    with contextlib.suppress(PermissionError, FileNotFoundError):
        os.chmod(file, _FILE)  # noqa: PTH101  # it may be a file descriptor


def _require_ours(path: Path, owner: int) -> None:
    if owner != os.geteuid():
        raise NotPrivateError(path, f"belongs to {_name_user(owner)}, not to {_name_user(os.geteuid())}")


def _name_user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


class FileLock:
    """An advisory lock on a file that ends with the process that holds it.

    Raises:
        BlockingIOError: another process held it for all of `wait_s`.
    """

    def __init__(self, path: Path, wait_s: float = 0.0) -> None:
        self._file = open_private(path, os.O_CREAT | os.O_RDWR)
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    self.release()
                    raise
                time.sleep(0.05)
            else:
                return

    def release(self) -> None:
        """Release the lock."""
        os.close(self._file)


def remove_ready_file(path: Path) -> None:
    """Remove the file of an earlier server; raise `UserError` if that is impossible."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"--ready-file: {path} cannot be replaced: {error.strerror}") from error


def write_ready_file(path: Path, address: str) -> None:
    """Announce that the server accepts connections at `address`; raise `UserError` if that is impossible."""
    try:
        write_private(path, f"{address}\n")
    except OSError as error:
        raise UserError(f"--ready-file: {path} cannot be written: {error.strerror}") from error
