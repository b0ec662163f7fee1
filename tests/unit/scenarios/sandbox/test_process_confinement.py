"""In a process of its own each: none of it can be taken back."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

_PRELUDE = """
import os, resource, signal, subprocess, sys
from pathlib import Path
from oku.sandbox.process_confinement import AbandonedError, confine

def read_status(text=None):
    lines = (text or Path("/proc/self/status").read_text()).splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
"""


def run(code: str, *arguments: int) -> None:
    """Run code in a process of its own; it must end well."""
    command = [sys.executable, "-c", _PRELUDE + code, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 0, ended.stderr


def test_neither_a_host_nor_what_it_starts_has_privileges() -> None:
    """Not even where both are root's; they leave no core dump."""
    run(
        """
confine(os.getppid(), 0)
child = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True, check=True)
for status in (read_status(), read_status(child.stdout)):
    assert status["NoNewPrivs"] == "1"
    assert {int(status[kind], 16) for kind in ("CapPrm", "CapEff", "CapInh", "CapAmb")} == {0}
assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)
assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
assert Path("/proc/self/oom_score_adj").read_text().strip() == "1000"
"""
    )


def test_more_memory_than_is_allowed_is_an_error_that_can_be_caught() -> None:
    """What is only set aside, and not written, is none; a child has the same limit."""
    run(
        """
import mmap, threading
confine(os.getppid(), 200_000_000)
held = bytearray(50_000_000)
try:
    bytearray(250_000_000)
    raise AssertionError
except MemoryError:
    pass
mmap.mmap(-1, 1_000_000_000, prot=mmap.PROT_READ)
child = subprocess.run([sys.executable, "-c", "bytearray(250_000_000)"], capture_output=True, text=True)
assert "MemoryError" in child.stderr
"""
    )


def test_without_a_limit_memory_is_as_before() -> None:
    """0 stands for none."""
    run("before = resource.getrlimit(resource.RLIMIT_DATA)\nconfine(os.getppid(), 0)\n"
        "assert resource.getrlimit(resource.RLIMIT_DATA) == before")  # fmt: skip


def test_a_host_whose_worker_has_gone_does_not_begin() -> None:
    """Whoever its parent is by now may have adopted it."""
    run(
        """
try:
    confine(int(sys.argv[1]), 0)
    raise AssertionError
except AbandonedError:
    pass
""",
        os.getppid(),
    )


def test_a_host_dies_with_its_worker() -> None:
    """At once, whatever it is doing."""
    run(
        """
reading, writing = os.pipe()
if (worker := os.fork()) == 0:
    worker = os.getpid()
    if os.fork() == 0:
        confine(worker, 0)
        os.close(reading)
        os.write(writing, b".")
        while True:
            pass
    os.close(writing)
    os.read(reading, 1)
    os.kill(os.getpid(), signal.SIGKILL)
os.close(writing)
os.waitpid(worker, 0)
assert os.read(reading, 10) == b""  # nobody is left who could write
"""
    )
