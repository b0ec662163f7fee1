"""`setup` and `teardown` of a scenario with real processes, some of which are killed."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.kit.coordinators.code_world import CodeWorld
from tests.kit.coordinators.coordinator import TOKEN
from tests.kit.runs.local_run import is_alive, run_oku, wait_until

from oku_core.messaging.hook import MOST_RESULT_BYTES

SCENARIO = """
import os, time
from pathlib import Path

FOLDER = Path({folder!r})


def note(name, text):
    with (FOLDER / name).open("a") as file:
        file.write(f"{{text}}\\n")


def setup():
    note("setups", os.getpid())
    print("a token is made")
    while (FOLDER / "hold-setup").exists():
        time.sleep(0.05)
    return {{"token": "secret-42"}}


async def scenario(index, setup_data):
    note("tokens", setup_data["token"])


def teardown(setup_data):
    note("teardowns", f"{{os.getpid()}} {{setup_data['token']}}")
    while (FOLDER / "hold-teardown").exists():
        time.sleep(0.05)
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CodeWorld]:
    """A coordinator without workers."""
    monkeypatch.setenv("OKU_ALLOW_USER_CODE", "1")
    with ExitStack() as stack:
        world = CodeWorld(tmp_path, stack)
        world.start_coordinator()
        yield world


def submit(world: CodeWorld, **spec: Any) -> str:
    """Submit a run of the scenario with both hooks; its id."""
    fields: dict[str, Any] = {"iterations": 300, "users": 4, "hooks": ["setup", "teardown"]}
    return world.submit(SCENARIO.format(folder=str(world.folder)), **(fields | spec))


def finish(world: CodeWorld, run: str) -> dict[str, Any]:
    """Wait until a run is completed, and check that all its iterations had the token; its summary."""
    summary = world.api.wait_for_state(run, "completed")
    tokens = world.read_lines("tokens")
    assert summary["outcomes"]["ok"] == summary["requests"] == 300
    assert set(tokens) == {"secret-42"}
    assert 300 <= len(tokens) <= 300 + summary["resent_at_most"]
    return summary


def hold(world: CodeWorld, hook: str) -> Path:
    """Let a hook wait until the file is removed that is given back."""
    path = world.folder / f"hold-{hook}"
    path.touch()
    return path


def test_setup_is_called_once_its_result_reaches_each_iteration_and_teardown_comes_last(
    world: CodeWorld,
) -> None:
    """Two workers carry out the iterations; one of them calls each hook."""
    world.start_worker("w1")
    world.start_worker("w2")
    finish(world, submit(world, workers=2))
    assert len(world.read_lines("setups")) == 1
    (teardown,) = world.read_lines("teardowns")
    assert teardown.endswith(" secret-42")
    logs = (world.folder / "w1.log").read_text() + (world.folder / "w2.log").read_text()
    assert logs.count("user code: a token is made") == 1


def test_a_setup_whose_process_is_killed_is_called_again(world: CodeWorld) -> None:
    """The result that counts is that of the second call."""
    world.start_worker("w1")
    held = hold(world, "setup")
    run = submit(world)
    (pid,) = world.wait_for_lines("setups", 1)
    assert "waiting for setup of the scenario: worker w1 calls it" in world.api.summary(run)["notices"]
    os.kill(int(pid), signal.SIGKILL)
    world.wait_for_lines("setups", 2)
    assert not world.read_lines("tokens")
    held.unlink()
    summary = finish(world, run)
    assert [(hook["hook"], hook["state"], hook["calls"]) for hook in summary["hooks"]] == [
        ("setup", "done", 2),
        ("teardown", "done", 1),
    ]
    assert len(world.read_lines("setups")) == 2
    assert len(world.read_lines("teardowns")) == 1


def test_a_setup_whose_worker_is_killed_goes_to_another_worker(world: CodeWorld) -> None:
    """The host dies with its worker, and the other worker gets a new attempt."""
    world.start_worker("w1")
    held = hold(world, "setup")
    run = submit(world)
    world.wait_for_lines("setups", 1)
    world.start_worker("w2")
    world.workers["w1"].kill()
    world.wait_for_lines("setups", 2)
    held.unlink()
    finish(world, run)
    assert len(world.read_lines("teardowns")) == 1


@pytest.mark.parametrize("hook", ["setup", "teardown"])
def test_a_hook_goes_on_while_the_coordinator_is_killed_and_started_again(
    world: CodeWorld, hook: str
) -> None:
    """The new coordinator finds the attempt in its ledger, and waits for the same call."""
    world.start_worker("w1")
    held = hold(world, hook)
    run = submit(world)
    world.wait_for_lines(f"{hook}s", 1)
    world.kill_coordinator()
    world.start_coordinator()
    held.unlink()
    finish(world, run)
    assert len(world.read_lines("setups")) == len(world.read_lines("teardowns")) == 1


def test_a_setup_that_raises_fails_the_run_before_its_first_iteration(world: CodeWorld) -> None:
    """The reason names the line, and no teardown is called."""
    world.start_worker("w1")
    source = SCENARIO.replace(
        "def setup():", "def setup():\n    raise ValueError('no token')\n\n\ndef unused():"
    )
    run = world.submit(
        source.format(folder=str(world.folder)), iterations=10, users=1, hooks=["setup", "teardown"]
    )
    summary = world.api.wait_for_state(run, "failed")
    assert re.fullmatch(
        r"setup failed: ValueError: no token \(scenario\.py:\d+ in setup\)", summary["reason"]
    )
    assert summary["accounted"] == 0
    (hook,) = summary["hooks"]
    assert (hook["hook"], hook["state"], hook["calls"]) == ("setup", "failed", 1)
    assert hook["traceback"].endswith("ValueError: no token\n")
    shown = run_oku("show", run, "--coordinator", world.api.url, "--token", TOKEN, cwd=world.folder).stdout
    assert "ValueError: no token" in shown
    assert 'File "scenario.py"' in shown
    assert not world.read_lines("tokens")
    assert not world.read_lines("teardowns")


def test_a_setup_may_return_a_mebibyte(world: CodeWorld) -> None:
    """It reaches iterations and teardown whole, quotation marks and all."""
    world.start_worker("w1")
    source = f"""
TEXT = '"' * {MOST_RESULT_BYTES // 2 - 1}

def setup(): return TEXT
async def scenario(index, setup_data): assert setup_data == TEXT
def teardown(setup_data): assert setup_data == TEXT
"""
    run = world.submit(source, iterations=100, users=4, hooks=["setup", "teardown"])
    summary = world.api.wait_for_state(run, "completed")
    assert (summary["outcomes"]["ok"], summary["reason"]) == (100, "")


def test_a_run_that_is_cancelled_in_its_setup_ends_the_process_of_the_setup(world: CodeWorld) -> None:
    """There was no setup, so there is no teardown."""
    world.start_worker("w1")
    hold(world, "setup")
    run = submit(world)
    (pid,) = world.wait_for_lines("setups", 1)
    world.api.call("POST", f"/api/runs/{run}/cancel")
    world.api.wait_for_state(run, "cancelled")
    wait_until(lambda: not is_alive(int(pid)), 10, "the process of the setup has ended")
    assert not world.read_lines("teardowns")


def test_a_second_cancel_gives_up_waiting_for_the_teardown(world: CodeWorld) -> None:
    """The first one ends the iterations and begins the teardown, the second one ends its process."""
    world.start_worker("w1")
    hold(world, "teardown")
    run = submit(world, iterations=10_000_000)
    world.wait_for_lines("tokens", 10)
    world.api.call("POST", f"/api/runs/{run}/cancel")
    (line,) = world.wait_for_lines("teardowns", 1)
    assert world.api.summary(run)["state"] == "tearing_down"
    world.api.call("POST", f"/api/runs/{run}/cancel")
    summary = world.api.wait_for_state(run, "cancelled")
    assert summary["reason"] == "teardown was given up: the run was cancelled"
    wait_until(lambda: not is_alive(int(line.split()[0])), 10, "the process of the teardown has ended")


def test_a_paused_run_that_is_cancelled_is_torn_down(world: CodeWorld) -> None:
    """Setup was called when it began, so teardown is called when it is over."""
    world.start_worker("w1")
    run = submit(world, iterations=10_000_000)
    world.wait_for_lines("tokens", 10)
    world.api.call("POST", f"/api/runs/{run}/pause")
    world.api.wait_for_state(run, "paused")
    assert not world.read_lines("teardowns")
    world.api.call("POST", f"/api/runs/{run}/cancel")
    world.api.wait_for_state(run, "cancelled")
    assert len(world.read_lines("teardowns")) == 1


def test_a_teardown_that_raises_is_shown_and_changes_nothing_else(world: CodeWorld) -> None:
    """The run is completed, with all its iterations."""
    world.start_worker("w1")
    source = SCENARIO.replace(
        "def teardown(setup_data):", "def teardown(setup_data):\n    raise OSError('gone')\n    "
    )
    run = world.submit(
        source.format(folder=str(world.folder)), iterations=300, users=4, hooks=["setup", "teardown"]
    )
    assert finish(world, run)["reason"].startswith("teardown failed: OSError: gone (scenario.py:")
