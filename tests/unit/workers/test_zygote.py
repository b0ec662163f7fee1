"""In a process of its own each, whose workers end as the test says."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kit.runs.local_run import is_alive, wait_until

from oku_workers.zygote import EXIT_RENEW, EXIT_TAINTED

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

_PRELUDE = """
import os, resource, signal, subprocess, sys, time
from oku_core.process.prctl import adopt_orphans
from oku_workers.zygote import EXIT_RENEW, fork_workers

adopt_orphans()
reading, writing = os.pipe()

def count():
    "How many workers there have been, this one included."
    os.write(writing, b".")
    seen = os.read(reading, 100)
    os.write(writing, seen)
    return len(seen)
"""


def run(worker: str, before: str = "") -> "subprocess.CompletedProcess[str]":
    """Let a process fork workers that run this code; how it ended."""
    body = "\n".join(f"    {line}" for line in worker.splitlines())
    code = f"{_PRELUDE}\n{before}\ncode = fork_workers().exit_code\nif code is None:\n{body}\nsys.exit(code)"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )


def test_a_worker_that_asks_for_another_is_replaced() -> None:
    """As often as it does; the code of one that does not is passed on."""
    ended = run("code = EXIT_RENEW if count() < 3 else 7\nprint(os.getpid(), flush=True)")
    assert ended.returncode == 7, ended.stderr
    assert len(set(ended.stdout.split())) == 3
    for code in [0, 1, 2, 70]:
        # The exit code of a worker is passed on.
        assert run(f"code = {code}").returncode == code
    cases: list[signal.Signals] = [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM]
    for number in cases:
        # What kills a worker kills the zygote. It is not started again here.
        assert run(f"os.kill(os.getpid(), {number:d})").returncode == -number


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_is_told_to_end(number: signal.Signals) -> None:
    """By SIGTERM, whichever of the two has come; one that asks for another meanwhile gets none."""
    for code, expected in ((7, 7), (EXIT_RENEW, 0)):
        ended = run(
            "assert count() == 1\n"
            f"signal.signal(signal.SIGTERM, lambda *_: os._exit({code}))\n"
            f"os.kill(os.getppid(), {number:d})\n"
            "time.sleep(20)"
        )
        assert ended.returncode == expected, ended.stderr


def test_a_worker_has_the_signals_that_the_zygote_had() -> None:
    """None is blocked, and each does what it did."""
    ended = run(
        "assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()\n"
        "assert signal.getsignal(signal.SIGTERM) == handler\n"
        "code = 0",
        "handler = lambda *_: None\nsignal.signal(signal.SIGTERM, handler)",
    )
    assert ended.returncode == 0, ended.stderr


def test_what_was_changed_of_the_zygote_is_undone_for_the_next_worker() -> None:
    """Limits, processors and policy; the first worker may have let another process do it."""
    ended = run(
        """
soft, hard = before
zygote = os.getppid()
if count() == 1:
    resource.prlimit(zygote, resource.RLIMIT_NOFILE, (64, hard))
    os.sched_setaffinity(zygote, {min(os.sched_getaffinity(0))})
    os.sched_setscheduler(zygote, os.SCHED_BATCH, os.sched_param(0))
    code = EXIT_RENEW
else:
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before
    assert os.sched_getaffinity(0) == processors
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
    code = 0
""",
        "before = resource.getrlimit(resource.RLIMIT_NOFILE)\nprocessors = os.sched_getaffinity(0)",
    )
    assert ended.returncode == 0, ended.stderr


def test_no_worker_is_started_that_would_not_be_fresh() -> None:
    """A limit that was lowered for good cannot be raised without privileges."""
    ended = run(
        """
assert count() == 1
resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (64, 64))
code = EXIT_RENEW
""",
        "from oku.sandbox.process_confinement import give_up_privileges\ngive_up_privileges()",
    )
    assert ended.returncode == EXIT_TAINTED, ended.stderr
    assert "another process has changed the limits of this one" in ended.stderr


def test_nothing_that_a_worker_has_started_outlives_it() -> None:
    """Whether another worker follows or not."""
    for code in ("EXIT_RENEW if count() == 1 else 0", "3"):
        ended = run(
            "daemon = subprocess.Popen([sys.executable, '-ISc', 'import time; time.sleep(20)'],\n"
            "    start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
            "print(daemon.pid, flush=True)\n"
            f"code = {code}"
        )
        assert ended.returncode in {0, 3}, ended.stderr
        for pid in ended.stdout.split():
            assert not Path("/proc", pid).exists()


def test_nothing_that_a_worker_has_started_outlives_a_zygote_that_is_killed() -> None:
    """Neither its children nor orphans that it has adopted; then it ends itself."""
    ended = run(
        """
adopt_orphans()
daemon = "sleep 20 > /dev/null 2>&1 & echo $!"
pids = [subprocess.check_output(["sh", "-c", daemon], text=True, start_new_session=True).strip()]
pids.append(subprocess.Popen(["sleep", "20"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid)
print(*pids, flush=True)
os.kill(os.getppid(), signal.SIGKILL)
time.sleep(20)
print("the worker lives on")
"""
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert len(ended.stdout.split()) == 2, ended.stdout
    assert not [pid for pid in ended.stdout.split() if is_alive(int(pid))]


def test_a_worker_that_user_code_has_stopped_ends_with_its_zygote() -> None:
    """The kernel has it go on, so that it can end all that it has started."""
    ended = run(
        """
print(os.getpid(), flush=True)
subprocess.Popen(["sh", "-c", f"kill -STOP {os.getpid()}; kill -KILL {os.getppid()}"])
time.sleep(20)
print("the worker lives on")
"""
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    wait_until(lambda: not is_alive(int(ended.stdout)), 5, "the worker is buried")
