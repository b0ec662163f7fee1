import ast
import asyncio
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import oku_coordinator
import oku_core.http_client
import oku_workers
from oku_core.process.supervision import Health, Supervisor, cancel_tasks, describe_error, keep_going

ALONE = {
    ("oku_coordinator/broker/celery_sender.py", "_start_threads"): "each goes on with the next message",
    ("oku_coordinator/broker/socket_hub.py", "_close"): "awaited where they are made",
    ("oku_coordinator/broker/socket_hub.py", "serve"): "one connection: its worker makes another one",
    ("oku_coordinator/event_loop.py", "wait"): "awaited where they are made",
    ("oku_core/http_client/addresses.py", "_start_lookup"): "one lookup; the next connection starts another",
    ("oku_workers/engines/aiohttp/engine.py", "_start_slot"): "the engine starts a slot that failed again",
    ("oku_workers/engines/http/connection_set.py", "make"): "one connection: the engine hears of its end",
    ("oku_workers/engines/user_code/engine.py", "_try_host"): "awaited where it is made",
    ("oku_workers/engines/user_code/host_process.py", "__init__"): "one host: the engine starts another one",
    ("oku_workers/engines/user_code/host_process.py", "close"): "waits for the end of one process, and ends",
    ("oku_workers/engines/user_code/hook_caller.py", "request_hook"): "awaited where it is made",
    ("oku_workers/leases/hook_runner.py", "accept"): "one attempt: the coordinator has another one made",
    ("oku_workers/process.py", "_leave"): "ends with the process",
    ("oku_workers/zygote.py", "_fork_worker"): "waits for the end of the zygote, and ends the process",
    ("oku_workers/leases/lease_runner.py", "_begin"): "one lease: whoever dealt it takes it back",
    ("oku_workers/runs/engine_switch.py", "end_kept"): "its lease is finished, whatever becomes of it",
    ("oku_workers/runs/run_sources.py", "fetch_for"): "awaited where it is made",
    ("oku_workers/runs/engine_switch.py", "load_ahead"): "one loading: the coordinator asks for it again",
    ("oku_workers/files/file_fetcher.py", "_get_in_thread"): "awaited where it is made",
    ("oku_workers/files/run_files.py", "_begin"): "one file: each waiter receives its failure",
    ("oku_workers/loop_thread.py", "__init__"): "the event loop itself",
}
"""What is started without a supervisor, by module and function, with the reason."""


class Time:
    """A clock that advances while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.pauses.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


def list_starts() -> Iterator[tuple[str, str]]:
    """List where coordinator and worker start tasks and threads themselves, by module and function."""
    for package in (oku_coordinator, oku_core.http_client, oku_workers):
        root = Path(package.__path__[0])
        for path in root.rglob("*.py"):
            text = path.read_text()
            if not any(starter in text for starter in STARTERS):
                continue
            for function in ast.walk(ast.parse(text)):
                if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                    for call in ast.walk(function):
                        if isinstance(call, ast.Call) and name_of(call.func) in STARTERS:
                            yield _name_module(path), function.name


def _name_module(path: Path) -> str:
    """A module's path from its package on."""
    return path.as_posix().rpartition("/src/")[2]


STARTERS = {"create_task", "ensure_future", "run_coroutine_threadsafe", "Thread", "Timer"} - {
    "run_coroutine_threadsafe"  # somebody waits for its result
}


def name_of(node: ast.expr) -> str:
    """Return the last name of `a.b.c`."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def list_thread_classes() -> Iterator[tuple[str, bool]]:
    """List the thread classes of coordinator and worker, and whether each one uses `keep_going`."""
    for package in (oku_coordinator, oku_workers):
        for path in Path(package.__path__[0]).rglob("*.py"):
            text = path.read_text()
            for node in ast.walk(ast.parse(text if "Thread" in text else "")):
                if isinstance(node, ast.ClassDef) and "Thread" in map(name_of, node.bases):
                    calls = {name_of(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
                    yield node.name, "keep_going" in calls


def test_every_task_and_thread_of_coordinator_and_worker_is_supervised() -> None:
    """The exceptions are listed with their reasons; every new task or thread needs a supervisor."""
    assert set(list_starts()) == ALONE.keys()
    assert dict(list_thread_classes()) == {
        "CheckpointInbox": True,
        "_Listener": True,
        "ClockService": True,
        "Heartbeat": True,
        "LoopWatchdog": True,
    }


async def test_a_task_that_fails_is_retried_after_growing_pauses() -> None:
    """The pauses grow up to a bound for as long as it fails."""
    time = Time()
    supervisor = Supervisor(sleep=time.sleep, clock=lambda: time.now)
    done = asyncio.Event()

    async def work(_: Health) -> None:
        if len(time.pauses) < 8:
            raise RuntimeError("unforeseen")
        done.set()

    await supervisor.wait(supervisor.start("task", work))
    assert done.is_set()
    assert time.pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0]


async def test_a_trouble_is_shown_until_the_task_succeeds() -> None:
    """It ends at once with a success, and with the task."""
    supervisor = Supervisor(sleep=lambda _: asyncio.sleep(0))
    steps: list[list[str]] = []

    async def work(health: Health) -> None:
        steps.append(supervisor.troubles)
        if len(steps) < 3:
            raise OSError(28, "No space left on device")
        health.record_success()
        steps.append(supervisor.troubles)
        if len(steps) == 4:
            raise RuntimeError("again")
        await asyncio.Event().wait()

    task = supervisor.start("publisher", work)
    async with asyncio.timeout(5):
        while len(steps) < 6:  # noqa: ASYNC110  # it is asked, it does not call
            await asyncio.sleep(0)
    disk = ["publisher: OSError: [Errno 28] No space left on device"]
    assert steps == [[], disk, disk, [], ["publisher: RuntimeError: again"], []]
    await cancel_tasks([task, None])
    assert supervisor.troubles == []


async def test_a_task_that_always_fails_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Only the 1st, 2nd, 4th, 8th … failure is logged, with a traceback if its cause is internal."""
    caplog.set_level(logging.INFO)
    now = 0.0
    health = Health("task", clock=lambda: now)
    for _ in range(1000):
        now += health.record_failure(RuntimeError("unforeseen"))
    assert len(caplog.records) == 10
    assert caplog.records[0].getMessage() == "task: RuntimeError: unforeseen; trying again in 0.5 s"
    assert all(record.exc_info for record in caplog.records)
    caplog.clear()
    Health("task").record_failure(ConnectionRefusedError("nobody"))
    assert not caplog.records[0].exc_info


def test_a_task_that_fails_every_other_time_does_not_spin(caplog: pytest.LogCaptureFixture) -> None:
    """A single success does not reset the pauses; a minute without a failure does."""
    now = 0.0
    health = Health("task", clock=lambda: now)
    for _ in range(100):
        pause_s = health.record_failure(RuntimeError("unforeseen"))
        now += pause_s
        health.record_success()
    assert pause_s == 10.0
    assert len(caplog.records) == 7
    now += 61.0
    assert health.record_failure(RuntimeError("unforeseen")) == 0.5


async def test_a_fatal_error_is_raised_whichever_task_raises_it() -> None:
    """Whoever waits for the end of the process gets it."""
    supervisor = Supervisor(is_fatal=lambda error: isinstance(error, ValueError))

    async def wait(_: Health) -> None:
        await asyncio.Event().wait()

    async def fail(_: Health) -> None:
        raise ValueError("this does not pass")

    waiting = supervisor.start("main", wait)
    supervisor.start("other", fail)
    with pytest.raises(ValueError, match="does not pass"):
        await supervisor.wait(waiting)
    await cancel_tasks([waiting])


def test_a_thread_runs_until_it_is_told_to_end() -> None:
    """It also ends in the middle of a pause."""
    ending, health = threading.Event(), Health("thread", 0.0)
    rounds: list[str] = []

    def work() -> None:
        rounds.append(health.trouble)
        if len(rounds) == 3:
            ending.set()
        raise RuntimeError("unforeseen")

    keep_going(health, work, ending)
    assert rounds == ["", *["thread: RuntimeError: unforeseen"] * 2]
    # An error is described in one line.
    assert describe_error(RuntimeError()) == "RuntimeError"
    assert describe_error(RuntimeError("a\nb\x1b[2J")) == "RuntimeError: a b [2J"
    assert len(describe_error(RuntimeError("x" * 1000))) == 200
