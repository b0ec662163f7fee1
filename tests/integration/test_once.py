"""`oku run --once KEY`: whatever dies or is started again, one run is made, and each command has its end."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import TOKEN, CoordinatorApi, run_coordinator
from tests.kit.free_ports import pick_port
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import OKU, Start, run_oku, wait_until
from tests.kit.servers.arrival_target import ArrivalTarget, run_arrival_target
from tests.kit.workers.worker_process import run_worker

from oku_cli.exit_code import ExitCode

_REQUESTS = 400


class Command:
    """One `oku run`, with a summary of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._summary = folder / "summary.json"
        self._output = folder / "output"
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [*OKU, "run", *arguments, "--summary-json", str(self._summary)],
                stdout=output, stderr=output, stdin=subprocess.DEVNULL,
            )  # fmt: skip

    @property
    def output(self) -> str:
        """What it has said so far."""
        return self._output.read_text()

    def finish(self) -> dict[str, Any]:
        """The summary with which it completes."""
        assert self.process.wait(60) == ExitCode.COMPLETED, self.output
        summary: dict[str, Any] = json.loads(self._summary.read_text())
        return summary


class Site:
    """A coordinator that can be restarted, a worker, a target, and commands that are started there."""

    def __init__(self, folder: Path, stack: ExitStack, target: ArrivalTarget) -> None:
        self.target = target
        self._folder, self._stack = folder, stack
        self._life = ExitStack()
        self._broker_url = stack.enter_context(run_broker(folder))
        self._port = pick_port(following=1)  # where it gives files
        self._started = 0
        self.api = self._begin()
        stack.callback(self._end)
        stack.enter_context(run_worker(self._broker_url))

    def _begin(self) -> CoordinatorApi:
        flags = ("--port", str(self._port))
        return self._life.enter_context(
            run_coordinator(self._broker_url, self._folder / "coordinator", *flags)
        )

    def _end(self) -> None:
        self._life.close()

    def restart(self) -> None:
        """End the coordinator, and start another one on its ledger."""
        self._end()
        self.api = self._begin()

    def start(self, key: str, *flags: str, requests: int = _REQUESTS) -> Command:
        """Start a run with a key; it takes about 4 s."""
        self._started += 1
        folder = self._folder / str(self._started)
        folder.mkdir()
        command = Command(
            folder, self.target.url, "-n", str(requests), "-c", "5", "--max-rate", "100/s", "--once", key,
            *flags,
        )  # fmt: skip
        self._stack.callback(command.process.wait)
        self._stack.callback(command.process.kill)
        return command

    def wait_for_arrivals(self, count: int) -> None:
        """Wait until so many requests have come."""
        wait_until(lambda: len(self.target.arrivals) >= count, 30, f"{count} requests have come")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """One whose commands know its coordinator."""
    with run_arrival_target() as target, ExitStack() as stack:
        site = Site(tmp_path, stack, target)
        monkeypatch.setenv("OKU_COORDINATOR", site.api.url)
        monkeypatch.setenv("OKU_TOKEN", TOKEN)
        yield site


def test_a_key_makes_one_run_whatever_dies(site: Site, tmp_path: Path) -> None:
    """Two commands at once, one of them killed, the coordinator restarted; later ones get the same end."""
    first, second = site.start("k1"), site.start("k1")
    site.wait_for_arrivals(20)
    first.process.kill()
    first.process.wait()
    site.restart()
    third = site.start("k1")
    summaries = [command.finish() for command in (second, third, site.start("k1"))]
    [run] = site.api.list_runs()
    assert {summary["run"] for summary in summaries} == {run["run"]}
    assert_completed(summaries[0])
    arrivals = site.target.group_by_index()
    assert {index: len(times) for index, times in arrivals.items()} == dict.fromkeys(range(_REQUESTS), 1)

    other = site.start("k1", requests=_REQUESTS + 1)
    assert other.process.wait(30) == ExitCode.WRONG_INPUT
    assert other.output.strip() == (
        f"oku: key k1 belongs to run {run['run']}, which has another spec (it differs in requests)"
    )
    assert run_oku("rm", run["run"], cwd=tmp_path).returncode == 0
    assert site.start("k1").finish()["run"] == run["run"]
    assert site.api.list_runs() == []
    assert len(site.target.arrivals) == _REQUESTS


def test_a_run_that_was_paused_goes_on_for_its_key(site: Site, tmp_path: Path) -> None:
    """With its files, which are known by their content; their names say nothing."""
    file = tmp_path / "body.txt"
    file.write_text("hello")
    first = site.start("k1", "--body", f"@{file}")
    site.wait_for_arrivals(20)
    first.process.send_signal(signal.SIGINT)
    assert first.process.wait(30) == ExitCode.CUT_SHORT
    file.write_text("hullo")
    assert site.start("k1", "--body", f"@{file}").process.wait(30) == ExitCode.WRONG_INPUT
    file.write_text("hello")
    summary = site.start("k1", "--body", f"@{file}").finish()
    assert_completed(summary)
    assert len(site.api.list_runs()) == 1
    assert len(site.target.arrivals) <= _REQUESTS + summary["resent_at_most"]


def test_a_data_folder_makes_one_run_for_a_key(start: Start, tmp_path: Path) -> None:
    """A command that is killed takes its stack with it; the next one goes on, and a third has its end."""
    arguments = ("run", "-n", "400", "-c", "5", "--max-rate", "200/s", "--delay", "1ms", "--once", "k1")
    first = start(*arguments)
    first.wait_for_accounted(20)
    first.process.kill()
    first.process.wait()
    summary = start(*arguments).finish()
    assert_completed(summary)
    again = start(*arguments)
    assert again.process.wait(30) == ExitCode.COMPLETED
    assert json.loads((tmp_path / "data-summary.json").read_text())["run"] == summary["run"]
    listed = run_oku("runs", "--json", "--data-dir", str(first.data_dir), cwd=tmp_path)
    assert [run["run"] for run in json.loads(listed.stdout)] == [summary["run"]]
