"""Several `oku run` in one data folder share a stack, and each run is exact, even if commands are killed.

The target answers only when it may, so that a first run is under way for as long as a test needs it.
"""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.kit.runs.local_run import OKU, is_alive, run_oku, wait_until
from tests.kit.servers.arrival_target import run_arrival_target

from oku_cli.exit_code import ExitCode

_REQUESTS = 200
_TURN = "waiting for its turn: run"


class Command:
    """One `oku` in a terminal of its own."""

    def __init__(self, place: Path, name: str, verb: str, *arguments: str) -> None:
        self._output = place / f"{name}.out"
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [*OKU, verb, "--workers", "1", *arguments],
                stdout=output, stderr=output, stdin=subprocess.DEVNULL, cwd=place,
            )  # fmt: skip

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return self._output.read_text()

    def wait_for(self, text: str) -> None:
        """Wait until it has printed a text."""
        wait_until(lambda: text in self.output, 60, f"{text}: {self.output}")

    def finish(self) -> int:
        """Wait for its end; return its exit code."""
        return self.process.wait(120)


class Site:
    """A folder with commands in it, and their target."""

    def __init__(self, place: Path, stack: ExitStack) -> None:
        self._place, self._stack = place, stack
        self._target = stack.enter_context(run_arrival_target())
        stack.callback(self.answer)

    def answer(self) -> None:
        """Answer the requests that wait, and all others at once."""
        self._target.may_answer.set()

    def run(self, name: str, *arguments: str) -> Command:
        """Start a run; it goes to the target, unless its arguments say otherwise."""
        target = () if "--delay" in arguments else (self._target.url,)
        load = ("-n", str(_REQUESTS), "-c", "10", "--timeout", "5m", "--name", name)
        return self.start(name, "run", *target, *load, *arguments)

    def start(self, name: str, *arguments: str) -> Command:
        """Start a command."""
        command = Command(self._place, name, *arguments)
        self._stack.callback(command.process.wait)
        self._stack.callback(command.process.kill)
        return command

    def begin(self, name: str, *arguments: str) -> Command:
        """Start a run that stays under way until the target answers."""
        self._target.may_answer.clear()
        before = len(self._target.arrivals)
        command = self.run(name, *arguments)
        wait_until(lambda: len(self._target.arrivals) > before, 60, f"{name} sends: {command.output}")
        return command

    def fetch_states(self) -> dict[str, str]:
        """The states of the runs by their names."""
        shown = run_oku("runs", "--json", cwd=self._place)
        assert shown.returncode == 0, shown.stderr
        return {row["name"]: row["state"] for row in json.loads(shown.stdout)}

    def fetch_stack(self) -> dict[str, Any]:
        """The stack that runs in the folder."""
        stack: dict[str, Any] = json.loads((self._place / ".oku" / "stack.json").read_text())
        return stack

    def assert_complete(self, *names: str) -> None:
        """Each run has accounted for each request once, and has a report; no command has left a note."""
        for name in names:
            shown = json.loads(run_oku("show", name, "--json", cwd=self._place).stdout)
            facts = shown["state"], shown["accounted"], shown["outcomes"]["ok"]
            assert facts == ("completed", _REQUESTS, _REQUESTS), name
            assert (self._place / ".oku" / "reports" / f"{shown['run']}.html").exists()
        assert not list((self._place / ".oku" / "joined").glob("*"))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A folder; what is left of its commands is killed after the test."""
    with ExitStack() as stack:
        yield Site(tmp_path, stack)


def test_the_second_run_waits_for_its_turn_on_the_stack_of_the_first(site: Site) -> None:
    """The stack gets the workers that it asks for, and stays until the second command has its result."""
    first = site.begin("first")
    second = site.run("second", "--workers", "3")
    second.wait_for(_TURN)
    assert site.fetch_states() == {"first": "running", "second": "pending"}
    assert site.fetch_stack()["pid"] == first.process.pid
    wait_until(lambda: "worker-3" in site.fetch_stack()["children"], 10, "there are three workers")
    children = [*site.fetch_stack()["children"].values()]
    site.answer()
    assert (second.finish(), first.finish()) == (ExitCode.COMPLETED, ExitCode.COMPLETED), second.output
    assert f"waiting for the run of process {second.process.pid}; Ctrl-C hands the stack over" in first.output
    site.assert_complete("first", "second")
    assert not any(map(is_alive, children))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_runs_go_on_when_the_first_command_ends(site: Site, number: signal.Signals) -> None:
    """The next command starts the stack again on the same ledger, and the third one joins it."""
    first = site.begin("first")
    others = [site.run(name) for name in ("second", "third")]
    for other in others:
        other.wait_for(_TURN)
    children = [*site.fetch_stack()["children"].values()]
    first.process.send_signal(number)
    site.answer()
    for other in others:
        assert other.finish() == ExitCode.COMPLETED, other.output
        assert f"process {first.process.pid} has ended its stack" in other.output
    site.assert_complete("second", "third")
    assert not any(map(is_alive, children))
    assert site.start("resumed", "resume", "first").finish() == ExitCode.COMPLETED
    site.assert_complete("first")


def test_a_command_that_only_waits_hands_its_stack_over(site: Site) -> None:
    """Ctrl-C ends it with the exit code of its own run, and the other run goes on."""
    first = site.begin("first")
    second = site.run("second", "--max-rate", "40/s")
    second.wait_for(_TURN)
    site.answer()
    first.wait_for("waiting for the run of process")
    first.process.send_signal(signal.SIGINT)
    assert first.finish() == ExitCode.COMPLETED, first.output
    assert second.finish() == ExitCode.COMPLETED, second.output
    site.assert_complete("first", "second")


def test_the_run_of_a_command_that_was_killed_is_paused(site: Site) -> None:
    """The stack does not wait for it, and sends nothing of it."""
    first = site.begin("first")
    second = site.run("second")
    second.wait_for(_TURN)
    second.process.kill()
    first.wait_for(f"process {second.process.pid} was killed, its run")
    site.answer()
    assert first.finish() == ExitCode.COMPLETED
    assert "waiting for the run of process" not in first.output
    assert site.fetch_states()["second"] == "paused"
    site.assert_complete("first")


def test_a_run_that_needs_another_stack_waits_for_the_folder(site: Site) -> None:
    """Here it needs delay servers, and the first stack has none."""
    first = site.begin("first")
    second = site.run("second", "--delay", "20ms")
    second.wait_for(f"waiting for process {first.process.pid}, whose stack has other settings")
    assert set(site.fetch_states()) == {"first"}
    site.answer()
    assert (first.finish(), second.finish()) == (ExitCode.COMPLETED, ExitCode.COMPLETED)
    site.assert_complete("first", "second")


def test_a_run_with_a_key_is_followed_by_both_commands(site: Site) -> None:
    """It is made once; when the first command is killed, the second one resumes it."""
    first = site.begin("first", "--once", "k")
    second = site.run("first", "--once", "k")
    second.wait_for("has the key k and is running")
    second.wait_for("in flight 10")
    first.process.kill()
    site.answer()
    assert second.finish() == ExitCode.COMPLETED, second.output
    assert set(site.fetch_states()) == {"first"}
    site.assert_complete("first")


def test_a_run_is_resumed_on_the_stack_of_another(site: Site) -> None:
    """So `oku resume` is not refused, either."""
    paused = site.begin("paused", "--grace", "0s")
    paused.process.send_signal(signal.SIGINT)
    assert paused.finish() == ExitCode.CUT_SHORT
    other = site.begin("other")
    resumed = site.start("resumed", "resume", "paused")
    resumed.wait_for(_TURN)
    site.answer()
    assert (resumed.finish(), other.finish()) == (ExitCode.COMPLETED, ExitCode.COMPLETED), resumed.output
