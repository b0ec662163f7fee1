"""Four workers stay, and runs ask for fewer: each gets as many as it asks for, whatever dies."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.brokers.message_key import exported_message_key
from tests.kit.coordinators.coordinator import TOKEN, CoordinatorApi, run_coordinator
from tests.kit.runs.local_run import OKU, wait_until
from tests.kit.servers.sender_log import SenderLog
from tests.kit.workers.worker_process import Process, run_worker

_WORKERS = 4
_SETUP = """
import asyncio
import os


async def setup(http):
    await asyncio.sleep(5)


async def scenario(index, http):
    await http.get("/{path}", headers={{"X-Worker": os.environ["WORKER"]}})
    await asyncio.sleep(0.05)
"""


class Stack:
    """A broker, four workers and a coordinator that may be killed and started again."""

    def __init__(self, folder: Path, exits: ExitStack) -> None:
        self.folder = folder
        self._exits = exits
        self.target = exits.enter_context(SenderLog())
        self._broker_url = exits.enter_context(run_broker(folder))
        self.api = self._start_coordinator()
        self.workers = {f"w{number}": self.start_worker(f"w{number}") for number in range(1, _WORKERS + 1)}
        self.wait_for_workers()

    def _start_coordinator(self) -> CoordinatorApi:
        flags = ("--allow-user-code", "--clock-address", "127.0.0.1")
        return self._exits.enter_context(run_coordinator(self._broker_url, self.folder / "data", *flags))

    def start_worker(self, name: str) -> Process:
        """Start a worker that inserts its name where a spec says so."""
        return self._exits.enter_context(
            run_worker(
                self._broker_url, "--allow-env", "WORKER", "--inherit-env", "WORKER",
                name=name, log=self.folder / f"{name}.log", prefix=("env", f"WORKER={name}"),
            )
        )  # fmt: skip

    def wait_for_workers(self) -> None:
        """Wait until the coordinator knows all of them."""
        wait_until(lambda: self.api.read_metric("oku_workers") == _WORKERS, 40, "the workers are there")

    def kill_coordinator(self) -> None:
        """Kill the coordinator, and start another one on its ledger."""
        os.kill(self.api.pid, signal.SIGKILL)
        self.api = self._start_coordinator()

    def submit(self, path: str, workers: int, **spec: Any) -> str:
        """Submit a run of requests to a path of the target."""
        return self.api.submit(
            url=f"{self.target.url}/{path}", workers=workers,
            header=["X-Worker: {env:WORKER}"], **spec,
        )  # fmt: skip

    def wait_until_sent(self, path: str, requests: int = 1) -> None:
        """Wait until the target has heard of a run."""
        wait_until(lambda: len(self.target.sent[f"/{path}"]) >= requests, 30, f"{path} is sent")

    def finish(self, run: str) -> dict[str, Any]:
        """Wait for the end of a run."""
        return self.api.wait_for_state(run, "completed", 60)

    def find_caller(self, run: str) -> str | None:
        """The worker that calls the setup of a run, as its notices say; None if none does."""
        notices = " ".join(self.api.summary(run)["notices"])
        return next((name for name in self.workers if f"worker {name} calls it" in notices), None)

    def list_senders(self, path: str, summary: dict[str, Any]) -> list[str]:
        """The workers that have sent a run, as the target has seen it; the summary must say the same."""
        counts = self.target.count_senders(f"/{path}")
        assert {each["name"] for each in summary["workers"] if each["requests"]} == set(counts)
        assert summary["accounted"] == summary["requests"] <= sum(counts.values())
        return sorted(counts)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One for all tests: they leave it as it was."""
    with exported_message_key(), ExitStack() as exits:
        yield Stack(tmp_path_factory.mktemp("stack"), exits)


def test_a_run_is_sent_by_as_many_workers_as_it_asks_for(stack: Stack) -> None:
    """Also one that follows at once on a larger one."""
    three = stack.submit("three", 3, requests=300, concurrency=1)
    one = stack.submit("one", 1, requests=100, concurrency=1)
    assert len(stack.list_senders("three", stack.finish(three))) == 3
    assert len(stack.list_senders("one", stack.finish(one))) == 1


@pytest.mark.parametrize("workers", [3, 1])
def test_the_coordinator_is_killed(stack: Stack, workers: int) -> None:
    """The one after it finds the workers that the run has."""
    path = f"killed-{workers}"
    run = stack.submit(path, workers, requests=600 * workers, concurrency=1, max_rate=f"{100 * workers}/s")
    stack.wait_until_sent(path, 150 * workers)
    stack.kill_coordinator()
    assert len(stack.list_senders(path, stack.finish(run))) == workers


def test_a_worker_is_killed(stack: Stack) -> None:
    """One of those that are free takes its place when it is dead, and never works beside it."""
    run = stack.submit("death", 1, requests=1000, concurrency=1, max_rate="200/s")
    stack.wait_until_sent("death", 200)
    [name] = stack.target.count_senders("/death")
    stack.workers[name].kill()
    summary = stack.finish(run)
    assert len(stack.list_senders("death", summary)) == 2
    assert stack.target.find_most_at_once("/death") == 1
    stack.workers[name] = stack.start_worker(name)
    stack.wait_for_workers()


def test_the_coordinator_is_killed_in_a_setup(stack: Stack) -> None:
    """The worker that calls the setup sends the run, too."""
    scenario = stack.folder / "scenario.py"
    scenario.write_text(_SETUP.format(path="setup"))
    flags = ("-n", "40", "--users", "2", "--workers", "1", "--host", stack.target.url)
    where = ("--coordinator", stack.api.url, "--token", TOKEN)
    before = len(stack.api.list_runs())
    command = [*OKU, "run", str(scenario), *flags, *where]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: len(stack.api.list_runs()) > before, 20, "the run is submitted")
        process.kill()  # the run goes on
    run = stack.api.list_runs()[0]["run"]
    wait_until(lambda: stack.find_caller(run) is not None, 20, "setup is called")
    caller = stack.find_caller(run)
    time.sleep(1)
    stack.kill_coordinator()
    assert stack.list_senders("setup", stack.finish(run)) == [caller]


def test_the_coordinator_is_killed_while_nothing_is_due(stack: Stack) -> None:
    """In a stage without requests nobody holds a lease: the worker that has worked on the run goes on."""
    run = stack.submit("pause", 1, stages=["1s:100/s", "6s:0/s", "1s:100/s"])
    stack.wait_until_sent("pause", 50)
    time.sleep(3)
    stack.kill_coordinator()
    assert len(stack.list_senders("pause", stack.finish(run))) == 1
