import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from oku_cli.process.sealed_program import seal_program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

_PROGRAM = shutil.which("true") or ""


@pytest.fixture(autouse=True)
def _no_debugger(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sealed is kept until this process ends; each test seals a file of its own."""
    monkeypatch.delenv("OKU_DEBUGGABLE", raising=False)


def copy_program(folder: Path, content: bytes = b"") -> str:
    """A program with something at its end."""
    path = folder / "program"
    path.write_bytes(Path(_PROGRAM).read_bytes() + content)
    path.chmod(0o755)
    return str(path)


def test_a_sealed_program_can_be_executed_and_neither_read_nor_changed(tmp_path: Path) -> None:
    """The kernel keeps processes closed whose user may not read their program; root may read anything."""
    sealed = seal_program(copy_program(tmp_path))
    assert sealed is not None
    assert os.fstat(sealed).st_mode & 0o777 == 0o111
    with pytest.raises(PermissionError):
        os.write(sealed, b"x")
    assert fcntl.fcntl(sealed, fcntl.F_GET_SEALS) == 0b1111
    executable = f"/proc/self/fd/{sealed}"
    assert subprocess.run(["program"], executable=executable, pass_fds=[sealed], check=False).returncode == 0
    # A program is sealed once.
    program = copy_program(tmp_path)
    assert seal_program(program) == seal_program(program)
    assert not os.get_inheritable(seal_program(program) or -1)


def test_nothing_is_sealed_where_memory_cannot_be_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An administrator may forbid it; programs run as they are then."""

    def refuse(*_: object) -> int:
        raise PermissionError

    monkeypatch.setattr(os, "memfd_create", refuse)
    assert seal_program(copy_program(tmp_path)) is None


def test_an_older_kernel_is_not_asked_for_what_it_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It refuses the flag, and executes memory without it."""
    create = os.memfd_create

    def refuse_flag(name: str, flags: int) -> int:
        if flags & 0x10:
            raise OSError(22, "Invalid argument")
        return create(name, flags)

    monkeypatch.setattr(os, "memfd_create", refuse_flag)
    assert seal_program(copy_program(tmp_path)) is not None


def test_what_could_not_run_from_memory_is_not_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script, a program that finds its libraries beside itself, and what is not there."""
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert seal_program(str(script)) is None
    assert seal_program(copy_program(tmp_path, b"\0$ORIGIN/../lib\0")) is None
    assert seal_program(str(tmp_path / "missing")) is None
    # A program that is debugged is not sealed. Debuggers look for the file.
    monkeypatch.setenv("OKU_DEBUGGABLE", "yes")
    assert seal_program(copy_program(tmp_path)) is None
