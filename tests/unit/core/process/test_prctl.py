import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

_LIBC = "import ctypes; libc, found = ctypes.CDLL(None), ctypes.c_int()\n"
_IS_DUMPABLE = "libc.prctl(3, 0, 0, 0, 0)"
"""PR_GET_DUMPABLE."""


def run(code: str, **environment: str) -> str:
    """What a process of Python prints."""
    ended = subprocess.run(
        [sys.executable, "-c", _LIBC + code],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


_CLOSE = f"""
from oku_core.process.prctl import become_undumpable
before = {_IS_DUMPABLE}
become_undumpable()
print(before, {_IS_DUMPABLE})
"""


def test_a_process_closes_itself_unless_its_user_debugs() -> None:
    """The kernel says so."""
    assert run(_CLOSE, OKU_DEBUGGABLE="") == "1 0"
    # A process stays open to a debugger that its user wants. One variable says so for all processes.
    assert run(_CLOSE, OKU_DEBUGGABLE="yes") == "1 1"


def test_a_process_adopts_orphans() -> None:
    """The kernel says so."""
    code = """
from oku_core.process.prctl import adopt_orphans
assert adopt_orphans()
assert libc.prctl(37, ctypes.byref(found), 0, 0, 0) == 0  # PR_GET_CHILD_SUBREAPER
print(found.value)
"""
    assert run(code) == "1"


def test_a_process_ends_with_its_parent() -> None:
    """The kernel says so; a parent that is another one by now has ended already."""
    code = """
import os
from oku_core.process.prctl import end_with_parent
results = end_with_parent(os.getppid()), end_with_parent(os.getpid())
assert libc.prctl(2, ctypes.byref(found), 0, 0, 0) == 0  # PR_GET_PDEATHSIG
print(found.value, *results)
"""
    assert run(code) == "9 True False"


def test_every_command_closes_its_process_before_it_loads_anything() -> None:
    """What `oku` imports after that may take a second, and what it does may take days."""
    code = f"""
import sys
from oku_cli import __main__ as oku
oku.enter_utf8_mode = lambda: sys.exit(print({_IS_DUMPABLE}, "oku_cli.main" in sys.modules))
oku.main()
"""
    assert run(code, OKU_DEBUGGABLE="") == "0 False"
