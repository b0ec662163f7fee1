"""Runs a command as a user without any privileges, even if root runs the tests.

As a script, this module becomes the command. Root becomes user 65534. The interpreter of root may lie in a
folder that nobody else can enter, such as `/root`. In a mount namespace of its own, the command finds there
what it needs, and nothing else.
"""

import ctypes
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

_ROOT = Path(__file__).parents[2]
NOBODY = 65534
"""The user without privileges."""
_CLONE_NEWNS = 0x20000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
_NO_NAMESPACE = 77
"""The exit code of this script where it may mount nothing."""


class NamespaceError(Exception):
    """Root may not make a mount namespace here."""


@contextmanager
def own_folder() -> Iterator[Path]:
    """A folder of that user, which is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="oku-nobody-", dir="/tmp"))
    try:
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def build_prefix() -> list[str]:
    """What becomes the command behind it as that user; empty for others than root, who have no privileges."""
    needed = json.dumps([sys.base_prefix, sys.prefix, str(_ROOT)])
    return [sys.executable, __file__, needed] if os.geteuid() == 0 else []


def run_unprivileged(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], timeout_s: float = 150
) -> str:
    """Run a command in its own folder; gives what it prints.

    Raises:
        NamespaceError: only a mount namespace would let it find the interpreter.
    """
    own = {"HOME": str(folder), "TMPDIR": str(folder), "PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        [*build_prefix(), *command], cwd=folder, env={**own, **environment}, capture_output=True, text=True,
        timeout=timeout_s, check=False,
    )  # fmt: skip
    if ended.returncode == _NO_NAMESPACE:
        raise NamespaceError(ended.stderr)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def _find_closed(path: Path) -> Path | None:
    """The first folder on the way to a path that others cannot enter."""
    folders = [*reversed(path.parents), path]
    return next((folder for folder in folders if not folder.stat().st_mode & stat.S_IXOTH), None)


def _open_to_all(needed: Sequence[Path]) -> None:
    """Replace folders that others cannot enter by empty ones with the needed paths in them."""
    libc = ctypes.CDLL(None, use_errno=True)

    def check(result: int) -> None:
        if result != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    closed = {path: folder for path in needed if (folder := _find_closed(path))}
    if not closed:
        return
    check(libc.unshare(_CLONE_NEWNS))
    check(libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None))
    opened = {path: os.open(path, os.O_PATH) for path in closed}
    for folder in set(closed.values()):
        check(libc.mount(b"none", os.fsencode(folder), b"tmpfs", 0, b"mode=755"))
    for path, file in opened.items():
        path.mkdir(parents=True, exist_ok=True)
        check(libc.mount(f"/proc/self/fd/{file}".encode(), os.fsencode(path), None, _MS_BIND, None))
        os.close(file)


def _become_command() -> None:
    os.umask(0o022)
    try:
        _open_to_all([Path(path) for path in json.loads(sys.argv[1])])
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(_NO_NAMESPACE)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    _become_command()
