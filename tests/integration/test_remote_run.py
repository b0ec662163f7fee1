"""`oku run` at a remote coordinator that becomes unreachable, and Ctrl-C there."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import TOKEN, CoordinatorApi, run_coordinator
from tests.kit.free_ports import pick_port
from tests.kit.runs.local_run import OKU, wait_until
from tests.kit.workers.worker_process import run_worker

from oku_cli.exit_code import ExitCode

_FAR = "http://127.0.0.1:9/{i}"
"""A target that nobody asks: these runs have no workers."""


class Site:
    """A coordinator at one address that comes and goes, with its broker, and commands that use it."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._life = ExitStack()
        self._started = 0
        self._broker_url = stack.enter_context(run_broker(folder))
        self._port = pick_port(following=1)  # where it gives files
        self.url = f"http://127.0.0.1:{self._port}"

    def begin(self) -> CoordinatorApi:
        """Start the coordinator, for the first time or again."""
        where = (self._broker_url, self._folder / "coordinator", "--port", str(self._port))
        return self._life.enter_context(run_coordinator(*where))

    def end(self) -> None:
        """End the coordinator."""
        self._life.close()

    def start(self, *arguments: str) -> "RemoteCommand":
        """Start a command that uses it."""
        self._started += 1
        output = self._folder / f"output-{self._started}"
        environment = os.environ | {"OKU_COORDINATOR": self.url, "OKU_TOKEN": TOKEN}
        with output.open("wb") as file:
            process = subprocess.Popen(
                [*OKU, *arguments], stdout=file, stderr=file, stdin=subprocess.DEVNULL, env=environment
            )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return RemoteCommand(process, output)

    def start_worker(self) -> None:
        """Start a worker at its broker."""
        self._stack.enter_context(run_worker(self._broker_url))


class RemoteCommand:
    """One `oku`, and what it says on both of its outputs."""

    def __init__(self, process: "subprocess.Popen[bytes]", output: Path) -> None:
        self.process = process
        self._output = output

    @property
    def lines(self) -> list[str]:
        """What it has said so far."""
        return self._output.read_text().splitlines()

    def wait_for(self, text: str, timeout_s: float = 20) -> None:
        """Wait until a line has this text."""
        wait_until(lambda: any(text in line for line in self.lines), timeout_s, f"{text} in {self.lines}")

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        """Press Ctrl-C, or send another signal."""
        self.process.send_signal(number)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """One whose coordinator runs."""
    with ExitStack() as stack:
        site = Site(tmp_path, stack)
        stack.callback(site.end)
        yield site


def test_an_unreachable_coordinator_is_reported_once(site: Site) -> None:
    """The outage and its end are reported with a reason, even in the log of a job with `--quiet`."""
    api = site.begin()
    command = site.start("run", "--url", _FAR, "--requests", "10", "--quiet")
    run = wait_for_run(api)
    site.end()
    command.wait_for("the coordinator does not answer")

    api = site.begin()
    command.wait_for("the coordinator answers again")
    assert api.call("POST", f"/api/runs/{run}/cancel")[0] == 202

    assert command.process.wait(10) == ExitCode.CUT_SHORT
    troubles = [line for line in command.lines if line.startswith("oku: ")]
    assert troubles[0].startswith(f"oku: {site.url}: the coordinator does not answer: ")
    assert troubles[-1] == "oku: the coordinator answers again"
    assert len(troubles) == len(set(troubles))


def test_a_second_interrupt_leaves_a_run_that_could_not_be_told_to_pause(site: Site) -> None:
    """The run is not said to be stopped: one line says why it is not, and the next how to pause it."""
    api = site.begin()
    command = site.start("run", "--url", _FAR, "--requests", "10")
    run = wait_for_run(api)
    command.wait_for("pending")
    site.end()
    command.interrupt()
    command.wait_for("could not be told to pause: ")
    command.interrupt()

    assert command.process.wait(15) == ExitCode.CUT_SHORT
    assert command.lines[-1] == (
        f"oku: run {run} goes on: its coordinator could not be told to pause it; "
        f"pause it with: oku pause {run} --coordinator {site.url}"
    )


def test_a_second_interrupt_leaves_a_pausing_run_to_the_coordinator(site: Site) -> None:
    """The run comes to rest without the command, which says how to look at it and how to go on."""
    api = site.begin()
    site.start_worker()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        flags = ("--url", f"http://127.0.0.1:{silent.getsockname()[1]}/", "--concurrency", "5")
        command = site.start("run", "--requests", "10", "--grace", "60s", *flags)
        run = wait_for_run(api)
        api.wait_for_state(run, "running")
        command.wait_for("running")
        command.interrupt()
        api.wait_for_state(run, "pausing")
        command.wait_for("pausing 0/10")
        command.interrupt()

        assert command.process.wait(15) == ExitCode.CUT_SHORT
        assert api.summary(run)["state"] == "pausing"
    # Its target is gone, and with it what was in flight.
    api.wait_for_state(run, "paused")
    where = f"{run} --coordinator {site.url}"
    assert command.lines[-1] == (
        f"oku: run {run} is being paused and comes to rest by itself; "
        f"look at it with: oku show {where}; resume it with: oku resume {where}"
    )


def test_sigterm_pauses_cancels_or_detaches_and_a_run_that_goes_on_can_be_waited_for(site: Site) -> None:
    """A command that waits ends with the run's exit code, also across a restart, and long after its end."""
    api = site.begin()
    runs: dict[str, str] = {}
    commands: dict[str, RemoteCommand] = {}
    for action in ("detach", "pause", "cancel"):
        commands[action] = site.start("run", _FAR, "-n", "10", "--name", action, "--on-sigterm", action)
        commands[action].wait_for("pending")
        runs[action] = str(api.list_runs()[0]["run"])
    for command in commands.values():
        command.interrupt(signal.SIGTERM)
    assert {command.process.wait(60) for command in commands.values()} == {ExitCode.CUT_SHORT}
    states = {action: api.summary(run)["state"] for action, run in runs.items()}
    assert states == {"detach": "pending", "pause": "paused", "cancel": "cancelled"}
    where = f"{runs['detach']} --coordinator {site.url}"
    assert commands["detach"].lines[-1] == (
        f"oku: run {runs['detach']} goes on; wait for it with: oku wait {where}"
    )

    waiting, leaving = (site.start("wait", "detach") for _ in range(2))
    for command in (waiting, leaving):
        command.wait_for("pending")
    leaving.interrupt(signal.SIGTERM)
    assert leaving.process.wait(60) == ExitCode.CUT_SHORT
    assert leaving.lines[-1] == commands["detach"].lines[-1]
    site.end()
    site.begin()
    site.start_worker()
    assert waiting.process.wait(60) == ExitCode.NOT_PASSED
    late = {action: site.start("wait", run) for action, run in runs.items()} | {
        "none": site.start("wait", "x1")
    }
    assert {action: command.process.wait(60) for action, command in late.items()} == {
        "detach": ExitCode.NOT_PASSED,
        "pause": ExitCode.CUT_SHORT,
        "cancel": ExitCode.CUT_SHORT,
        "none": ExitCode.WRONG_INPUT,
    }
    assert any(f"oku resume {runs['pause']} --coordinator" in line for line in late["pause"].lines)


def wait_for_run(api: CoordinatorApi) -> str:
    """Wait until there is a run; its id."""
    wait_until(lambda: bool(api.list_runs()), 20, "a run is submitted")
    return str(api.list_runs()[0]["run"])
