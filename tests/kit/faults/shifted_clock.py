"""Sets the clock of one process of a stack, as an administrator would set the date of its machine."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.kit.requirement import miss

_SOURCE = Path(__file__).with_suffix(".c")


class ShiftedClocks:
    """The wall clocks of roles: processes that have the role's name among their arguments.

    Args:
        folder: for the library and its files.
        roles: each begins with the time of the machine.
    """

    def __init__(self, folder: Path, *roles: str) -> None:
        self._folder = folder / "clocks"
        self._folder.mkdir()
        self._library = folder / "shifted_clock.so"
        if (compiler := shutil.which("cc")) is None:
            miss("a C compiler, to set the clock of a process")
        subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", self._library, _SOURCE], check=True)
        for role in roles:
            self.set(role, 0)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let every process that is started from here on have such a clock."""
        monkeypatch.setenv("LD_PRELOAD", str(self._library))
        monkeypatch.setenv("SHIFTED_CLOCKS", str(self._folder))

    def set(self, role: str, ahead_s: int) -> None:
        """Let the clock of a role be so many seconds ahead of the machine's."""
        new = self._folder / f".{role}"
        new.write_text(str(ahead_s))
        new.rename(self._folder / role)
