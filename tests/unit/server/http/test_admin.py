import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from oku_server.http.admin import Description, answer_admin, list_sizes
from oku_server.http.planned_response import Content


def ask(target: bytes) -> Content:
    """Ask a server that has served as many requests of a run as the run's name has letters."""
    return answer_admin(target[1:].partition(b"?")[0], target, describe)


def describe(run: str, *, announces: bool = False) -> Description:
    """Describe a run as a server does."""
    return {
        "run": run,
        "served": len(run),
        "store": "s",
        "kept": announces,
        "forgotten": 0,
        "processes": [{"pid": 7, "peak_rss_mb": 20.5}],
    }


@pytest.mark.parametrize(
    ("query", "run"),
    [
        (b"", ""),
        (b"?", ""),
        (b"?run=", ""),
        (b"?run=abc", "abc"),
        (b"?run=a%20b", "a b"),
        (b"?run=a+b", "a b"),
        (b"?x=1&run=ab&run=abc#run", "ab"),
    ],
)
def test_the_server_tells_what_it_served_for_a_run(query: bytes, run: str) -> None:
    """The answer is JSON; without a run, it is about the requests that named none."""
    answer = ask(b"/-/served" + query)
    assert (answer.status, answer.content_type) == (b"200 OK", b"application/json")
    assert json.loads(answer.body) == describe(run)


def test_a_healthy_server_says_so() -> None:
    """The answer has status 200."""
    assert ask(b"/-/healthz") == Content(b"200 OK", b"ok\n", b"text/plain; charset=utf-8")
    # A run is announced.
    answer = ask(b"/-/announce?run=abc")
    assert json.loads(answer.body) == describe("abc", announces=True)


@pytest.mark.parametrize("run", [b"%00", b"%C3%A9", b"\xe9", b"%ED%A0%80", b"a" * 41, b"a" * 60_000])
def test_a_name_that_is_not_a_run_is_refused(run: bytes) -> None:
    """The line names the value and what is allowed."""
    answer = ask(b"/-/served?run=" + run)
    assert answer.status == b"400 Bad Request"
    assert answer.body.startswith(b"run: '")
    assert answer.body.endswith(b"' is not up to 40 printable ASCII characters\n")
    assert len(answer.body) < 800


@pytest.mark.parametrize("target", [b"/-/nothing", b"/-/", b"/-/healthz/", b"/-/\xff"])
def test_an_unknown_question_is_refused(target: bytes) -> None:
    """The answer has status 404 and names the target."""
    answer = ask(target)
    assert answer.status == b"404 Not Found"
    assert target[1:] in answer.body


def test_counts_that_cannot_be_read_are_told_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The log has a traceback because the mistake is not the client's."""

    def fail(run: str, *, announces: bool) -> Description:
        assert (run, announces) == ("", False)
        raise OSError("the disk is gone")

    assert answer_admin(b"-/served", b"/-/served", fail).status == b"500 Internal Server Error"
    assert "the disk is gone" in caplog.text


def test_one_process_tells_its_own_size() -> None:
    """The size is in MB and plausible for a Python process."""
    (size,) = list_sizes(1)
    assert size["pid"] == os.getpid()
    assert 5 < size["peak_rss_mb"] < 5000


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell")
def test_several_processes_tell_of_each_other() -> None:
    """Each process lists those with the same parent, and no others."""
    code = "import sys, oku_server.http.admin as p; sys.stdin.read(); print(len(p.list_sizes(3)))"
    parent = f"""
import subprocess, sys
children = [subprocess.Popen([sys.executable, "-c", {code!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(3)]
out, _ = children[0].communicate()
for child in children[1:]:
    child.communicate()
print(out.decode().strip())
"""
    done = subprocess.run([sys.executable, "-c", parent], capture_output=True, check=True, timeout=30)
    assert done.stdout.strip() == b"3"


def test_another_process_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel cuts names off after 15 bytes, be it amid a character."""
    statuses = [tmp_path / str(number) for number in range(2)]
    for number, name in enumerate((b"\xc3", "a\u2028b:c".encode())):
        statuses[number].write_bytes(
            b"Name:\t%b\nPid:\t%d\nPPid:\t%d\nVmHWM:\t1000 kB\n" % (name, 7 + number, os.getppid())
        )
    monkeypatch.setattr("pathlib.Path.glob", lambda *_: iter(statuses))

    assert [size["pid"] for size in list_sizes(2)] == [7, 8]
