"""What user code can find out about its worker, and take from it: scenarios that try, in real workers."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kit.coordinators.coordinator import TOKEN, run_coordinator
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import is_alive, run_oku, wait_until
from tests.kit.user_code import UserCodeStack, build_code_spec, run_user_code_stack

from oku_core.accounting.outcome import OUTCOMES, Outcome
from oku_core.user_code.messages import NO_TEXT, Report, frame

pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="needs Linux")

_LOOK = """
import os, pathlib, resource

def read(path):
    try:
        return pathlib.Path(path).read_bytes()[:20_000].decode(errors="replace")
    except OSError as error:
        return f"refused: {error.strerror}"

def read_memory(pid):
    try:
        with open(f"/proc/{pid}/mem", "rb") as memory:
            memory.seek(int(read("/proc/self/maps").split("-")[0], 16))
            return memory.read(16).hex()
    except OSError as error:
        return f"refused: {error.strerror}"

def find():
    parent = os.getppid()
    return {
        "pid": os.getpid(),
        "parent": parent,
        "environment": dict(os.environ),
        "own": read("/proc/self/environ"),
        "parents": read(f"/proc/{parent}/environ"),
        "maps": read(f"/proc/{parent}/maps"),
        "memory": read_memory(parent),
        "files": {
            number: os.readlink(f"/proc/self/fd/{number}")
            for number in os.listdir("/proc/self/fd")
            if os.path.exists(f"/proc/self/fd/{number}")
        },
        "status": dict(line.split(":", 1) for line in read("/proc/self/status").splitlines()),
        "core": resource.getrlimit(resource.RLIMIT_CORE),
        "niceness": os.getpriority(os.PRIO_PROCESS, 0),
        "killed_first": int(read("/proc/self/oom_score_adj")),
        "session": os.getsid(0),
    }
"""
_MEMORY = 300_000_000


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UserCodeStack]:
    """A worker with limits for user code, and with secrets in its environment."""
    with (
        run_user_code_stack(tmp_path_factory.mktemp("isolation")) as stack,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("SECRET_OF_THE_WORKER", "hunter2")
        patch.setenv("FOR_USER_CODE", "a setting")
        patch.setenv("OKU_GRACE", "4s")
        stack.start_worker(
            "--user-code-memory", str(_MEMORY), "--user-code-niceness", "7", "--inherit-env", "FOR_USER_CODE"
        )  # fmt: skip
        yield stack


@pytest.fixture(scope="module")
def found(stack: UserCodeStack) -> dict[str, Any]:
    """What a scenario has found out."""
    return stack.ask(_LOOK)


def test_user_code_sees_the_variables_that_were_named(found: dict[str, Any]) -> None:
    """With those that say where things are; no secret of the worker, and none of its settings."""
    seen = found["environment"]
    assert seen["FOR_USER_CODE"] == "a setting"
    assert seen["PATH"] == os.environ["PATH"]
    assert "SECRET_OF_THE_WORKER" not in seen
    assert [name for name in seen if name.startswith(("OKU_", "CELERY_"))] == []
    assert "FOR_USER_CODE=a setting" in found["own"]
    assert "hunter2" not in found["own"]


def test_user_code_cannot_look_into_its_worker(stack: UserCodeStack, found: dict[str, Any]) -> None:
    """Its environment, which has the URL of the broker, its memory and its mappings are closed to root."""
    for place in ("parents", "memory", "maps"):
        assert found[place] == "refused: Permission denied", place
    assert stack.broker_url not in json.dumps(found)


def test_user_code_has_no_open_file_of_its_worker(found: dict[str, Any]) -> None:
    """But for standard streams, the socket, the slots, and what it has opened itself."""
    places = {int(number): place for number, place in found["files"].items()}
    assert places.pop(0) == "/dev/null"
    assert places.pop(1) == places.pop(2)
    inherited = {place for place in places.values() if place.startswith("socket:")}
    assert len(inherited) <= 3  # the one to the worker, and the two by which its event loop wakes itself
    others = {place for place in places.values() if not place.startswith(("socket:", "anon_inode:", "pipe:"))}
    assert {place for place in others if "(deleted)" not in place} <= {"/dev/null", "/dev/urandom"}
    assert len({place for place in others if "(deleted)" in place}) == 1  # the slots


def test_user_code_has_no_privileges(found: dict[str, Any]) -> None:
    """Also where its worker is root's: no capabilities, none by programs that it starts, and no core dump."""
    status = {name: text.strip() for name, text in found["status"].items()}
    assert status["NoNewPrivs"] == "1"
    for kind in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[kind], 16) == 0
    assert found["core"] == [0, 0]


def test_user_code_gives_way(found: dict[str, Any]) -> None:
    """To its worker where there is one processor for both, and where memory runs out."""
    assert found["niceness"] == 7
    assert found["killed_first"] == 1000
    assert found["session"] == found["pid"]


_GREEDY = """
async def scenario(index):
    if index % 10 == 3:
        held = bytearray({size})
        held[::4096] = b"x" * len(held[::4096])
"""


def test_an_iteration_that_wants_too_much_memory_ends_as_an_exception(stack: UserCodeStack) -> None:
    """The others of its process are ok, and its worker does not notice."""
    summary = stack.run({"scenario.py": _GREEDY.format(size=2 * _MEMORY)}, requests=100, users=5)
    assert_completed(summary)
    assert (summary["outcomes"]["ok"], summary["outcomes"]["exception"]) == (90, 10)
    [failure] = summary["failures"]
    assert failure["reason"].startswith("MemoryError")
    less = stack.run({"scenario.py": _GREEDY.format(size=_MEMORY // 4)}, requests=100, users=5)
    assert less["outcomes"]["ok"] == 100


_MOTHER = """
import pathlib, subprocess, sys

CHILD = '''
import os, signal, subprocess, sys, time
if os.fork():
    os._exit(0)
os.setsid()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open(sys.argv[1], "a") as file:
    file.write(f"{{os.getpid()}} {{grandchild.pid}} ")
time.sleep(600)
'''

async def scenario(index):
    file = pathlib.Path({file!r})
    subprocess.run([sys.executable, "-c", CHILD, str(file)], check=True)
    while len(file.read_text().split() if file.exists() else "") < 2:
        pass
    {then}
"""


def _read_pids(file: Path) -> list[int]:
    return [int(pid) for pid in file.read_text().split()]


@pytest.mark.parametrize("then", ["return", "import os; os._exit(3) if index == 0 else None"])
def test_processes_that_user_code_leaves_behind_end_with_it(
    stack: UserCodeStack, tmp_path: Path, then: str
) -> None:
    """Even daemons with daemons of their own, whichever way the process of the user code ends."""
    file = tmp_path / "pids"
    code = {"scenario.py": _MOTHER.format(file=str(file), then=then)}
    run = stack.api.submit(
        **build_code_spec(stack.api, code, requests=1 if then == "return" else 10, users=1)
    )
    wait_until(lambda: file.exists() and len(_read_pids(file)) >= 2, 30, "daemons were started")
    if then == "return":
        stack.api.wait_for_state(run, "completed", 60)
    else:
        stack.api.wait_for_state(run, "paused", 60)
    pids = _read_pids(file)
    wait_until(lambda: not any(map(is_alive, pids)), 10, f"{pids} have ended")


_BLOCKING = """
import os, pathlib

async def scenario(index):
    pathlib.Path({file!r}).write_text(str(os.getpid()))
    while True:
        pass
"""


def test_user_code_dies_with_its_worker(tmp_path: Path) -> None:
    """It has no say in it: a worker that is killed leaves nobody who sends requests."""
    with run_user_code_stack(tmp_path) as other:
        worker = other.start_worker(name="mortal")
        file = tmp_path / "pid"
        code = {"scenario.py": _BLOCKING.format(file=str(file))}
        other.api.submit(**build_code_spec(other.api, code, requests=1, users=1))
        wait_until(lambda: file.exists() and bool(file.read_text()), 30, "it runs")
        [host] = _read_pids(file)
        assert is_alive(host)
        worker.send_signal(signal.SIGKILL)
        wait_until(lambda: not is_alive(host), 5, "it has died with its worker")


def test_user_code_that_nobody_allows_is_refused(stack: UserCodeStack, tmp_path: Path) -> None:
    """By default; the command says in one line who can change that, and how."""
    (tmp_path / "scenario.py").write_text("async def scenario(index): ...")
    with run_coordinator(stack.broker_url, tmp_path / "data", "--files-port", "0") as api:
        where = ("--coordinator", api.url, "--token", TOKEN)
        ended = run_oku("run", "scenario.py", "-n", "1", *where, cwd=tmp_path)
        assert api.list_runs() == []
    assert (ended.returncode, ended.stdout) == (2, "")
    [line] = ended.stderr.splitlines()
    assert line.startswith(
        "oku: user code is not allowed here: the operator can allow it, by allowUserCode: true"
    )


_FORGER = """
import os, stat

async def scenario(index):
    if index == 0:
        for number in os.listdir("/proc/self/fd"):
            try:
                if stat.S_ISSOCK(os.fstat(int(number)).st_mode):
                    os.write(int(number), {forged!r} * 10)
            except OSError:
                pass
        while True:
            pass
"""


@pytest.mark.parametrize(
    "forged",
    [
        b"\xff" * 100,
        frame(Report(ended=[0, OUTCOMES.index(Outcome.OK), 1, -1, NO_TEXT])),
        frame(Report(ended=[77, OUTCOMES.index(Outcome.OK), 1, 1, NO_TEXT])),
    ],
    ids=["no message", "no duration", "no iteration"],
)
def test_user_code_that_forges_reports_stops_its_own_run(stack: UserCodeStack, forged: bytes) -> None:
    """It can reach the socket of its process; its worker goes on, and so does the next run."""
    code = {"scenario.py": _FORGER.format(forged=forged)}
    run = stack.api.submit(**build_code_spec(stack.api, code, requests=20, users=2))
    summary = stack.api.wait_for_state(run, "paused", 60)
    assert "user code is not tried again" in summary["reason"]
    assert sum(summary["outcomes"].values()) == summary["accounted"] < 20
    after = stack.run({"scenario.py": "async def scenario(index): ..."}, requests=50, users=5)
    assert after["outcomes"]["ok"] == 50
