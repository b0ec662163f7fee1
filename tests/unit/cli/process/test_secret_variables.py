import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from oku_cli.process.secret_variables import SECRET, forget_secrets, hand_over, is_closed, receive
from oku_core.errors import UserError

VARIABLES = {"OKU_TOKEN": "a token=", "OKU_MESSAGE_KEY": 'a "key"\nof ü', "OTHER": "\udcff", "EMPTY": ""}
_SLEEP = [sys.executable, "-ISc", "import time; time.sleep(60)"]
_CLOSED_SLEEP = [
    sys.executable, "-ISc",
    "import ctypes, time; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); print(flush=True); time.sleep(60)",
]  # fmt: skip
"""PR_SET_DUMPABLE."""
_PTRACE_ATTACH = 16


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    """A child of this process that is closed to others."""
    with subprocess.Popen(_CLOSED_SLEEP, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def exchange(pid: int) -> dict[str, str]:
    """What a child with this process id gets."""
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=hand_over, args=(ours, pid, VARIABLES))
    thread.start()
    try:
        return receive(theirs.detach())
    finally:
        thread.join()
        assert ours.fileno() == -1


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_closed_child_gets_the_variables(child: "subprocess.Popen[bytes]") -> None:
    """All of them, as they are."""
    assert exchange(child.pid) == VARIABLES


def test_nothing_is_sent_before_the_child_says_that_it_is_ready() -> None:
    """It says so once it is closed to others."""
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=hand_over, args=(ours, os.getpid(), VARIABLES))
    thread.start()
    with theirs:
        theirs.settimeout(0.05)
        with pytest.raises(TimeoutError):
            theirs.recv(1)
    thread.join()


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_child_that_is_traced_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tracer could read what it reads. It prints in one line what to do, and ends."""
    monkeypatch.delenv("OKU_DEBUGGABLE", raising=False)
    with subprocess.Popen(_SLEEP) as traced:
        assert ctypes.CDLL(None).ptrace(_PTRACE_ATTACH, traced.pid, None, None) == 0
        os.waitpid(traced.pid, 0)
        try:
            assert not is_closed(traced.pid)
            with pytest.raises(UserError, match=r"another process traces this one.*OKU_DEBUGGABLE=yes"):
                exchange(traced.pid)
            monkeypatch.setenv("OKU_DEBUGGABLE", "yes")
            assert exchange(traced.pid) == VARIABLES
        finally:
            os.kill(traced.pid, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_child_that_others_can_look_into_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of root is closed by its capabilities, so this one is not root's."""
    monkeypatch.delenv("OKU_DEBUGGABLE", raising=False)
    user = os.geteuid() or 65534
    with subprocess.Popen(["/bin/sleep", "60"], user=user) as dumpable:
        monkeypatch.setattr(os, "geteuid", lambda: user)
        assert not is_closed(dumpable.pid)
        dumpable.kill()


def test_a_child_that_cannot_be_handed_anything_is_no_error() -> None:
    """Its parent notices by other means."""
    ours, theirs = socket.socketpair()
    theirs.close()
    hand_over(ours, os.getpid(), VARIABLES)
    assert ours.fileno() == -1
    # A descriptor that is no socket is said. Such as one that a user types.
    reading, writing = os.pipe()
    os.close(writing)
    with pytest.raises(UserError, match=r"--variables-fd: \d+ is not an inherited socket"):
        receive(reading)
    os.close(reading)


def test_secrets_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is started from here on does not inherit them; all else it does."""
    for name in (*SECRET, "OKU_PORT", "HOME"):
        monkeypatch.setenv(name, "x")
    forget_secrets()
    assert not set(SECRET) & set(os.environ)
    assert (os.environ["OKU_PORT"], os.environ["HOME"]) == ("x", "x")
