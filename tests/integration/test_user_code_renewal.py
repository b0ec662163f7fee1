"""What user code changes of its worker ends with its run: a fresh process takes the next one."""

import contextlib
import json
import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from tests.kit.free_ports import pick_port
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import find_worker, is_alive, wait_until
from tests.kit.servers.arrival_target import ArrivalTarget, run_arrival_target
from tests.kit.user_code import UserCodeStack, build_code_spec, run_user_code_stack
from tests.kit.workers.health_probe import probe
from tests.kit.workers.worker_process import Process

from oku_workers.zygote import EXIT_TAINTED

pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="needs Linux")

_IDLE = "async def scenario(index): ..."
_STATE = """
import os, pathlib, resource, signal

LIMITS = sorted({number for name, number in vars(resource).items() if name.startswith("RLIMIT_")})
LINES = ("SigBlk", "SigIgn", "SigCgt", "Umask", "Threads", "NoNewPrivs", "Seccomp")

def list_children(pid):
    lists = pathlib.Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in lists for child in path.read_text().split()]

def describe(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return {
        "limits": [resource.prlimit(pid, limit) for limit in LIMITS],
        "niceness": os.getpriority(os.PRIO_PROCESS, pid),
        "affinity": sorted(os.sched_getaffinity(pid)),
        "policy": os.sched_getscheduler(pid),
        "killed_first": pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text(),
        "status": {name: status[name] for name in LINES},
        "children": len(list_children(pid)),
    }

def find():
    worker = os.getppid()
    stat = pathlib.Path(f"/proc/{worker}/stat").read_text()
    zygote = int(stat.rpartition(")")[2].split()[1])
    return {
        "pids": [zygote, worker, os.getpid()],
        "processes": [describe(zygote), describe(worker), describe(os.getpid())],
        "environment": dict(os.environ),
        "folder": sorted(os.listdir()),
        "files": sorted(
            os.path.basename(os.readlink(f"/proc/self/fd/{number}")).partition(":")[0]
            for number in os.listdir("/proc/self/fd")
            if os.path.exists(f"/proc/self/fd/{number}")
        ),
        "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    }
"""
_HOSTILE = """
import json, os, pathlib, resource, signal, subprocess, sys
from finding import find

DAEMON = '''
import os, signal, sys, time
if os.fork():
    os._exit(0)
os.setsid()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "a").write(f"{os.getpid()} ")
time.sleep(600)
'''
CHANGES = {
    "open files": lambda pid: resource.prlimit(pid, resource.RLIMIT_NOFILE, (64, 64)),
    "size of files": lambda pid: resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, 4096)),
    "processor time": lambda pid: resource.prlimit(pid, resource.RLIMIT_CPU, (3600, 3600)),
    "priority": lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19),
    "affinity": lambda pid: os.sched_setaffinity(pid, {min(os.sched_getaffinity(pid))}),
    "policy": lambda pid: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)),
}

async def scenario(index):
    victims = [*find()["pids"][:2], *OTHERS]
    done = []
    for pid in victims:
        for what, change in CHANGES.items():
            try:
                change(pid)
            except PermissionError:
                continue
            done.append(f"{what} of {pid}")
    subprocess.run([sys.executable, "-c", DAEMON, FOLDER + "/pids"], check=True)
    for change in CHANGES.values():
        change(0)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pathlib.Path("left.txt").write_text("left")
    os.environ["PYTHONSTARTUP"] = os.environ["PATH"] = "/nowhere"
    os.umask(0)
    for name in ("flight", "."):
        os.chmod(FOLDER + "/cache-w/" + name, 0)
    os.chdir("/")
    for number in range(50, 60):
        os.dup2(1, number)
    pathlib.Path(FOLDER, "done.json").write_text(json.dumps(done))
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UserCodeStack]:
    """A broker and a coordinator."""
    with run_user_code_stack(tmp_path_factory.mktemp("renewal")) as stack:
        yield stack


@pytest.fixture
def worker(stack: UserCodeStack) -> Iterator[Process]:
    """The only worker, which has served no run."""
    with start_alone(stack) as worker:
        yield worker


@contextmanager
def start_alone(stack: UserCodeStack, *flags: str) -> Iterator[Process]:
    """Runs the only worker, with these flags, until the end of the block."""
    worker = stack.start_worker(*flags)  # the one before it had the same name, and is known to be gone
    try:
        yield worker
    finally:
        worker.terminate()
        worker.wait(30)


def run_hostile(stack: UserCodeStack, *others: int) -> None:
    """Have user code change all that it can."""
    text = _HOSTILE.replace("FOLDER", repr(str(stack.folder))).replace("OTHERS", repr(list(others)))
    summary = stack.run({"scenario.py": text, "finding.py": _STATE}, requests=1, users=1)
    assert summary["outcomes"]["ok"] == 1, summary["failures"]


def find_state(stack: UserCodeStack) -> tuple[list[int], dict[str, Any]]:
    """The processes that carry out a run, and all else that its user code finds.

    Without the threads of the worker: its pools start as many as they have had to do at once.
    """
    found = stack.ask(_STATE)
    del found["processes"][1]["status"]["Threads"]
    return found.pop("pids"), found


def test_a_run_finds_nothing_that_user_code_of_another_has_changed(
    stack: UserCodeStack, worker: Process
) -> None:
    """Limits, priority, affinity, signals, folder, environment, files, children: all is as without it."""
    before_pids, before = find_state(stack)
    run_hostile(stack, stack.api.pid)
    pids, after = find_state(stack)
    assert after == before
    assert pids[0] == before_pids[0] == worker.pid
    assert set(pids[1:]).isdisjoint(before_pids)
    # Nor was anything changed while it ran, where the kernel has filters of system calls.
    assert [each["status"]["Seccomp"] for each in after["processes"]] == ["0", "0", "2"]
    assert json.loads((stack.folder / "done.json").read_text()) == []
    daemons = [int(pid) for pid in (stack.folder / "pids").read_text().split()]
    assert len(daemons) >= 1
    assert not any(map(is_alive, daemons))


def test_a_worker_that_is_replaced_is_not_lost(stack: UserCodeStack, worker: Process) -> None:
    """The run before and the run after say nothing of it, and nothing was sent twice."""
    runs = [
        stack.api.submit(**build_code_spec(stack.api, {"scenario.py": _IDLE}, requests=200, users=5))
        for _ in range(2)
    ]
    for run in runs:
        summary = stack.api.wait_for_state(run, "completed")
        assert_completed(summary)
        assert (summary["resent_at_most"], summary["validity"]) == (0, [])
        assert [(each["name"], each["lost"]) for each in summary["workers"]] == [("w", 0)]
        _, history = stack.api.call("GET", f"/api/runs/{run}/history")
        assert {event["type"] for event in history["events"]} <= {"state", "worker_joined"}
    assert worker.poll() is None


def test_a_worker_that_is_replaced_stays_ready(stack: UserCodeStack) -> None:
    """The fresh one has not heard the coordinator yet; a probe waits for it, or is answered at once."""
    port = pick_port()
    with start_alone(stack, "--health-port", str(port)) as worker:
        wait_until(lambda: probe(port, "/readyz") == 200, 10, "it is ready")
        used, answers = find_worker(worker.pid), set()
        stack.run({"scenario.py": _IDLE}, requests=1)

        def ask() -> None:
            with contextlib.suppress(ConnectionError):  # the worker that ends may have taken the call
                answers.add(probe(port, "/readyz"))

        def is_replaced() -> bool:
            ask()
            return find_worker(worker.pid) not in {used, worker.pid}

        wait_until(is_replaced, 10, "a fresh one is there", 0.0)
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            ask()
        assert answers == {200}


def test_a_run_that_is_paused_goes_on_in_a_fresh_worker(stack: UserCodeStack, worker: Process) -> None:
    """Another run may have its turn meanwhile."""
    code = {"scenario.py": "import asyncio\n\nasync def scenario(index): await asyncio.sleep(0.02)"}
    run = stack.api.submit(**build_code_spec(stack.api, code, requests=300, users=5))
    wait_until(lambda: stack.api.summary(run)["accounted"] > 50, 30, "it runs")
    before = find_worker(worker.pid)
    assert stack.api.call("POST", f"/api/runs/{run}/pause")[0] == 202
    stack.api.wait_for_state(run, "paused")
    wait_for_fresh(worker, before)
    assert stack.api.call("POST", f"/api/runs/{run}/resume")[0] in {200, 202}
    summary = stack.api.wait_for_state(run, "completed")
    assert_completed(summary)
    assert [each["lost"] for each in summary["workers"]] == [0]


def test_a_zygote_undoes_what_was_changed_from_outside(stack: UserCodeStack, worker: Process) -> None:
    """Another process of its user could do so, too; where it cannot undo it, it starts no other worker."""
    [_, used, _], before = find_state(stack)
    wait_for_fresh(worker, used)
    _change(worker.pid, resource.RLIMIT_NOFILE, 64)
    os.sched_setaffinity(worker.pid, {min(os.sched_getaffinity(0))})
    stack.run({"scenario.py": _IDLE}, requests=1)
    [_, used, _], after = find_state(stack)
    assert after == before
    wait_for_fresh(worker, used)
    os.setpriority(os.PRIO_PROCESS, worker.pid, 19)
    stack.run({"scenario.py": _IDLE}, requests=1)
    assert worker.wait(20) == EXIT_TAINTED
    log = (stack.folder / "w.log").read_text()
    assert "another process has changed the priority of this one" in log


def wait_for_fresh(worker: Process, used: int) -> None:
    """Wait until another process has taken the place of one that has run user code."""
    wait_until(lambda: find_worker(worker.pid) not in {used, worker.pid}, 10, "a fresh one is there")


def _change(pid: int, limit: int, soft: int) -> None:
    resource.prlimit(pid, limit, (soft, resource.prlimit(pid, limit)[1]))


def test_a_worker_ends_while_it_is_replaced(stack: UserCodeStack) -> None:
    """SIGTERM may come at any moment of it: no process is left, and none is started any more."""
    for pause_s in (0.05, 0.2):  # it takes 0.3 s
        with start_alone(stack) as worker:
            stack.run({"scenario.py": _IDLE}, requests=1)
            time.sleep(pause_s)
            child = find_worker(worker.pid)
            worker.terminate()
            assert worker.wait(20) in {0, -signal.SIGTERM}
            assert child == worker.pid or not is_alive(child)


def test_worker_and_zygote_die_together(stack: UserCodeStack, worker: Process) -> None:
    """Whatever kills the one ends the other in the same way, so what has started them starts them again."""
    child = find_worker(worker.pid)
    worker.kill()
    wait_until(lambda: not is_alive(child), 5, "the worker has died with the zygote")
    with start_alone(stack) as other:
        os.kill(find_worker(other.pid), signal.SIGKILL)
        assert other.wait(10) == -signal.SIGKILL


@pytest.mark.alone
def test_the_next_run_begins_at_most_a_second_later(stack: UserCodeStack, worker: Process) -> None:
    """Than it does after a run without user code."""
    with run_arrival_target(0) as target:
        after_requests = min(_measure_start_s(stack, target) for _ in range(2))
        delays = []
        for _ in range(3):
            stack.run({"scenario.py": _IDLE}, requests=10, users=2)
            delays.append(_measure_start_s(stack, target))
    assert median(delays) <= after_requests + 1, (after_requests, delays)


def _measure_start_s(stack: UserCodeStack, target: ArrivalTarget) -> float:
    """How long after it was submitted the first request of a run arrives."""
    arrived, submitted_at = len(target.arrivals), time.time()
    run = stack.api.submit(url=target.url, requests=10, concurrency=2)
    stack.api.wait_for_state(run, "completed")
    return target.arrivals[arrived].at - submitted_at
