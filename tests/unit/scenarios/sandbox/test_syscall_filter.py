"""In a process of its own each: nothing removes a filter."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

_PRELUDE = """
import ctypes, os, resource, subprocess, sys
from oku.sandbox.process_confinement import give_up_privileges
from oku.sandbox.syscall_filter import filter_system_calls

victim = subprocess.Popen([sys.executable, "-ISc", "import time; time.sleep(60)"])
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
param = os.sched_param(0)
niceness = os.getpriority(os.PRIO_PROCESS, 0)
higher = min(niceness + 1, 19)

def call_ioprio_set(kind, who):
    number = {"x86_64": 251, "aarch64": 30}[os.uname().machine]
    if ctypes.CDLL(None, use_errno=True).syscall(number, kind, who, (2 << 13) | 4) < 0:
        raise OSError(ctypes.get_errno(), "ioprio_set")

def change(pid):
    return {
        "limits": lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft - 1, hard)),
        "priority": lambda: os.setpriority(os.PRIO_PROCESS, pid, higher),
        "affinity": lambda: os.sched_setaffinity(pid, os.sched_getaffinity(0)),
        "policy": lambda: os.sched_setscheduler(pid, os.SCHED_BATCH, param),
        "parameters": lambda: os.sched_setparam(pid, param),
        "priority of disks": lambda: call_ioprio_set(1, pid),
    }

def find_refused(calls):
    refused = []
    for what, call in calls.items():
        try:
            call()
        except PermissionError:
            refused.append(what)
    return refused

OF_A_USER = {
    "priority": lambda: os.setpriority(os.PRIO_USER, 0, higher),
    "priority of disks": lambda: call_ioprio_set(3, 0),
}
give_up_privileges()
is_filtered = filter_system_calls()
"""


def run(code: str) -> None:
    """Run code in a process with a filter, beside one of the same user; it must end well."""
    ended = subprocess.run(
        [sys.executable, "-c", f"{_PRELUDE}\ntry:\n{code}\nfinally:\n    victim.kill()"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


def test_a_process_changes_no_other_one() -> None:
    """Each call is refused that would change one; its own state is a process's own affair."""
    run(
        """
    assert is_filtered
    assert find_refused(change(victim.pid)) == list(change(0))
    assert find_refused(OF_A_USER) == list(OF_A_USER)
    assert find_refused(change(0)) == find_refused(change(os.getpid())) == []
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft - 1, hard)
"""
    )


def test_a_process_may_look_at_others() -> None:
    """What does not change anything is not refused."""
    run(
        """
    assert resource.prlimit(victim.pid, resource.RLIMIT_NOFILE) == (soft, hard)
    assert os.sched_getaffinity(victim.pid)
    assert os.getpriority(os.PRIO_PROCESS, victim.pid) == niceness
"""
    )


def test_what_a_process_starts_has_the_same_filter() -> None:
    """Another program, too."""
    run(
        """
    code = "import os, sys; os.setpriority(os.PRIO_PROCESS, int(sys.argv[1]), 19)"
    started = [sys.executable, "-ISc", code, str(victim.pid)]
    ended = subprocess.run(started, capture_output=True, text=True)
    assert "PermissionError" in ended.stderr
"""
    )


def test_calls_of_another_kind_do_not_get_around_it() -> None:
    """Those of the x32 ABI have other numbers, and only the lower half of a process id counts."""
    run(
        """
    if os.uname().machine == "x86_64":
        call = ctypes.CDLL(None, use_errno=True).syscall
        mask = ctypes.byref(ctypes.c_ulong(1))
        for number in (203 | 0x40000000, 203):
            pid = ctypes.c_ulong(victim.pid | 1 << 32)
            assert call(ctypes.c_long(number), pid, ctypes.c_ulong(8), mask) == -1
            assert ctypes.get_errno() in {1, 38}
"""
    )
