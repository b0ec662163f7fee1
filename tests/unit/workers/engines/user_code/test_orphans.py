"""In a process of its own each: which children a process has depends on all that is run in it."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

_PRELUDE = """
import os, signal, subprocess, sys, time
from pathlib import Path
from oku_core.process.prctl import adopt_orphans
from oku_workers.engines.user_code.orphans import bury_orphans, end_orphans, forget_host, register_host

assert adopt_orphans()
sleep = [sys.executable, "-ISc", "import time; time.sleep(60)"]
host = register_host(lambda: subprocess.Popen(sleep))

def is_there(pid):
    return Path(f"/proc/{pid}").exists()

def leave_behind():
    "Start a daemon with a child of its own; their process ids."
    reading, writing = os.pipe()
    if (mother := os.fork()) == 0:
        if os.fork() == 0:
            os.setsid()
            child = subprocess.Popen(sleep)
            os.write(writing, f"{os.getpid()} {child.pid}".encode())
            child.wait()
        os._exit(0)
    os.waitpid(mother, 0)
    return [int(pid) for pid in os.read(reading, 100).split()]
"""


def run(code: str) -> None:
    """Run code in a process that adopts orphans; it must end well."""
    ended = subprocess.run(
        [sys.executable, "-c", _PRELUDE + code], capture_output=True, text=True, timeout=30, check=False
    )
    assert ended.returncode == 0, ended.stderr


def test_orphans_end_with_all_that_they_have_started() -> None:
    """Hosts are no orphans until they are forgotten."""
    run(
        """
pids = leave_behind()
assert all(map(is_there, pids))
assert end_orphans() == 2
assert not any(map(is_there, pids))
assert host.poll() is None
assert end_orphans() == 0
forget_host(host.pid)
assert end_orphans() == 1
assert not is_there(host.pid)
"""
    )


def test_an_orphan_that_ends_by_itself_does_not_stay() -> None:
    """Nobody else would ask how it ended; whoever started a host asks itself."""
    run(
        """
daemon, child = leave_behind()
os.kill(daemon, signal.SIGKILL)
os.kill(child, signal.SIGKILL)
while is_there(daemon) or is_there(child):
    bury_orphans()
host.kill()
os.waitid(os.P_PID, host.pid, os.WEXITED | os.WNOWAIT)
bury_orphans()
assert host.wait() == -signal.SIGKILL
bury_orphans()
"""
    )
