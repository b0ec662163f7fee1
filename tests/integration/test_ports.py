"""The ports of a local stack: nobody else gets them, whatever he sees of its processes."""

import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import OKU, LocalRun, Start

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")

SQUATTER = r"""
# Looks at all command lines, as every user may, and listens on each port that is named there and is free.
import os, pathlib, re, select, socket, sys
mark, listening, seen = sys.argv[1], [], set()
print("watching", flush=True)
while True:
    for file in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().decode(errors="replace").replace("\0", " ")
        except OSError:
            continue
        if mark not in words or file.parent.name == str(os.getpid()):
            continue
        for port in re.findall(r"(?:--port |127\.0\.0\.1:)([1-9]\d+)", words):
            if port in seen:
                continue
            seen.add(port)
            squatting = socket.socket()
            squatting.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                squatting.bind(("127.0.0.1", int(port)))
                squatting.listen()
            except OSError:
                print("refused", port, flush=True)
                continue
            print("taken", port, flush=True)
            listening.append(squatting)
    for ready in select.select(listening, [], [], 0.001)[0]:
        connection, _ = ready.accept()
        print("received", connection.recv(4096), flush=True)
"""


@pytest.fixture
def squatter(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Somebody who takes every port that a process of this test's folder promises to listen on."""
    command = [sys.executable, "-c", SQUATTER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "watching\n"
        try:
            yield process
        finally:
            process.kill()


@needs_proc
def test_an_observer_of_the_process_list_receives_nothing(
    start: Start, squatter: "subprocess.Popen[str]"
) -> None:
    """Each port is bound before it can be read anywhere: no token, spec or request is intercepted."""
    summary = start("run", "--requests", "2000", "--workers", "1", "--servers", "2").finish()

    squatter.kill()
    said = squatter.communicate()[0].splitlines()
    assert [line for line in said if not line.startswith("refused")] == []
    assert said, "no port was seen in the process list: the test looks at nothing"
    assert_completed(summary)


@needs_proc
@pytest.mark.parametrize("name", ["coordinator", "server"])
def test_a_child_that_is_started_again_gets_the_same_socket(start: Start, name: str) -> None:
    """A client that connects meanwhile is not refused: it waits, and is answered."""
    run = start("run", "--requests", "1M", "--delay", "1s", "--concurrency", "5", "--workers", "1")
    run.wait_for_leases()
    url = find_url(run, name)
    old_pid = run.kill(name)
    path = "/-/healthz" if name == "server" else "/healthz"
    with urllib.request.urlopen(f"{url}{path}", timeout=30) as answer:
        assert answer.status == 200
    assert run.pid(name) != old_pid


def find_url(run: LocalRun, name: str) -> str:
    """Where a child of a run listens."""
    log = (run.data_dir / "logs" / f"{name}.log").read_text()
    found = re.search(r"http://127\.0\.0\.1:\d+", log)
    assert found, log
    return found[0]


def test_a_file_that_is_not_a_listening_socket_is_refused(tmp_path: Path) -> None:
    """It is refused in one line, whatever it is."""
    with socket.socket() as idle:
        ended = subprocess.run(
            [*OKU, "server", "--listen-fd", str(idle.fileno()), "--log-format", "text"],
            pass_fds=[idle.fileno()], capture_output=True, text=True, timeout=20, check=False,
        )  # fmt: skip
    assert (ended.returncode, len(ended.stderr.splitlines())) == (2, 1)
    assert "is not a listening socket" in ended.stderr
