"""Hosts of user code are killed or frozen, workers and the coordinator killed: each iteration counts once."""

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kit.runs.account import assert_completed
from tests.kit.runs.both_transports import on_both_transports
from tests.kit.runs.local_run import LocalRun, Start, wait_until
from tests.kit.servers.delay_server import Start as StartServers

from oku_server.counts.count_store import read_served
from oku_server.counts.count_table import NO_RUN

WORKERS = ("worker-1", "worker-2")
SCENARIO = """\
from oku import Http


async def scenario(http: Http) -> None:
    await http.get("/{i}", name="item")
"""
LOCUSTFILE = """\
from locust import FastHttpUser, constant, task


class Visitor(FastHttpUser):
    wait_time = constant(0)

    @task
    def visit(self):
        self.client.get(f"/{self.oku.index}", name="item")
"""
CODE = {"scenario.py": SCENARIO, "locustfile.py": LOCUSTFILE}


class Target:
    """A delay server that counts what it has served."""

    def __init__(self, folder: Path, start_server: StartServers) -> None:
        self._counts = folder / "counts"
        flags = ("--delay", "5ms..30ms", "--processes", "1", "--counts-dir", str(self._counts))
        self.url = start_server(*flags).url

    def read_served(self) -> int:
        """How many requests it has received."""
        return read_served(self._counts, NO_RUN)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    """What the iterations ask."""
    servers = StartServers(tmp_path)
    try:
        yield Target(tmp_path, servers)
    finally:
        servers.end()


def find_hosts(run: LocalRun, worker: str) -> list[int]:
    """The hosts of a worker."""
    pid = run.pid(worker)
    try:
        lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    return [int(child) for text in lists for child in text.split()]


def kill_host(run: LocalRun, worker: str, number: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal to the host of a worker, once it has one."""
    wait_until(lambda: bool(find_hosts(run, worker)), 30, f"{worker} has a host")
    for pid in find_hosts(run, worker):
        os.kill(pid, number)


def start_run(start: Start, folder: Path, file: str, target: Target, *flags: str) -> LocalRun:
    """Start a run of one of the files of user code."""
    path = folder / file
    path.write_text(CODE[file])
    return start("run", str(path), "--host", target.url, "--workers", "2", "--quiet", *flags)


def assert_exact(summary: dict[str, Any], target: Target) -> None:
    """Every iteration counts once, and its request was sent as often as the run says at most."""
    assert_completed(summary)
    assert summary["outcomes"]["ok"] == summary["requests"]
    assert summary["requests"] <= target.read_served() <= summary["requests"] + summary["resent_at_most"]


@pytest.mark.parametrize("file", CODE)
@on_both_transports
def test_hosts_workers_and_the_coordinator_are_killed(
    start: Start, target: Target, tmp_path: Path, file: str
) -> None:
    """Nothing is lost or counted twice, and what was sent twice is bounded."""
    requests, chance = 30_000, random.Random(3)
    run = start_run(start, tmp_path, file, target, "--iterations", str(requests), "--concurrency", "40")
    run.wait_for_accounted(1_000)
    for number, victim in enumerate(("host", "worker", "host", "coordinator", "host", "worker"), 1):
        run.wait_for_accounted(number * requests // 8)
        time.sleep(chance.uniform(0, 0.3))
        worker = chance.choice(WORKERS)
        if victim == "host":
            kill_host(run, worker)
        else:
            name = worker if victim == "worker" else victim
            run.wait_for_restart(name, run.kill(name))
    summary = run.finish()

    assert_exact(summary, target)
    twice = target.read_served() - requests
    assert 0 < twice <= summary["resent_at_most"]
    [inner] = summary["inner_requests"]
    assert inner["name"] in ("item", "GET item")
    assert inner["requests"] >= requests


def test_a_host_that_is_frozen_is_replaced(start: Start, target: Target, tmp_path: Path) -> None:
    """It is ended once it has been silent for half a minute; the run says why, and completes."""
    run = start_run(start, tmp_path, "scenario.py", target, "--iterations", "6000", "--concurrency", "10")
    run.wait_for_accounted(500)
    kill_host(run, "worker-2", signal.SIGSTOP)
    summary = run.finish()

    assert_exact(summary, target)
    assert "it has blocked its process for 30 s" in run.read_logs()
