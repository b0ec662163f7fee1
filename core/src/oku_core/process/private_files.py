"""Folders and files that nobody but their owner can read or change.

Whoever may write a folder can put a link where a file is about to be made, or have a file open that is about
to be filled. So folders of others, and those that others may write, are not used; files are made by us, or
are ours, and are never reached through a link.
"""

import contextlib
import errno
import os
import pwd
import stat
from pathlib import Path

_FOLDER, _FILE = 0o700, 0o600
_OTHERS = 0o077
_OTHERS_WRITE = 0o022
_NOT_REGULAR = "is not a regular file"


class NotPrivateError(OSError):
    """Others have a hand in a folder or a file; `strerror` says how, and what can be done."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(errno.EPERM, reason, str(path))


def make_private_folder(path: Path, *, is_trusted: bool = False) -> None:
    """Make a folder for us alone, or take one that is ours and make it so.

    Args:
        path: where.
        is_trusted: take a folder that is there as it is, such as a volume that nobody else mounts.

    Raises:
        NotPrivateError: it belongs to somebody else, or others may write it.
        OSError: it cannot be made.
    """
    with contextlib.suppress(FileExistsError):
        path.mkdir(parents=True, mode=_FOLDER)
    if is_trusted:
        return
    check_private_folder(path)
    if path.stat().st_mode & _OTHERS:
        path.chmod(_FOLDER)


def check_private_folder(path: Path) -> None:
    """See whether only we may write a folder that is there.

    Raises:
        NotPrivateError: it belongs to somebody else, or others may write it.
        OSError: it is not there, or is not a folder.
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
    """Open a regular file that is ours, or make one if `flags` say so; nobody else can open it from then on.

    Raises:
        NotPrivateError: it belongs to somebody else, or is not a regular file: a link, perhaps.
        OSError: it cannot be opened.
    """
    try:
        # A pipe without a reader would hold us up.
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
    """Make an empty file unless there is one, which is looked at and closed to others but never opened.

    For files of SQLite: to close such a file takes away the locks that this process has on it.

    Raises:
        NotPrivateError: it belongs to somebody else, or is not a regular file.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE))
    except FileExistsError:
        tighten_private_file(path)


def tighten_private_file(path: Path) -> None:
    """The same for a file that may not be there, and is not made then."""
    try:
        state = path.lstat()
    except FileNotFoundError:
        return
    _check_file(path, state)
    if state.st_mode & _OTHERS:
        _tighten(path)


def write_private(path: Path, content: str) -> None:
    """Make a file with this content, or put a new one in place of an old one; who sees it sees all of it."""
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


def _check_file(path: Path, state: os.stat_result) -> None:
    if not stat.S_ISREG(state.st_mode):
        raise NotPrivateError(path, _NOT_REGULAR)
    # On a volume, which was trusted, files may belong to whom the volume belongs.
    if state.st_uid != path.parent.stat().st_uid:
        _require_ours(path, state.st_uid)


def _tighten(file: Path | int) -> None:
    # On a volume that allows no such thing it stays as it is. SQLite may have removed it by itself.
    with contextlib.suppress(PermissionError, FileNotFoundError):
        os.chmod(file, _FILE)  # noqa: PTH101  # it may be a number


def _require_ours(path: Path, owner: int) -> None:
    if owner != os.geteuid():
        raise NotPrivateError(path, f"belongs to {_name_user(owner)}, not to {_name_user(os.geteuid())}")


def _name_user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
