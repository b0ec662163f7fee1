import os
from pathlib import Path

import pytest

from oku_cli.child import Child, describe_death


@pytest.mark.parametrize(("code", "text"), [(-9, "signal 9"), (1, "exit code 1"), (0, "exit code 0")])
def test_a_death_is_described(code: int, text: str) -> None:
    """A negative exit code is a signal."""
    assert describe_death(code) == text


def test_a_child_writes_into_its_log(tmp_path: Path) -> None:
    """What it says last can be shown when it dies."""
    child = Child("c", ["/bin/sh", "-c", "echo one; echo two >&2; exit 3"], tmp_path / "c.log", os.environ)
    child.start()

    assert child.wait(2)
    assert child.find_death() == 3
    assert child.read_last_line() == "two"


def test_a_child_has_no_say_before_its_start(tmp_path: Path) -> None:
    """It has no process, has not died, and has written nothing."""
    child = Child("c", ["true"], tmp_path / "c.log", {})

    assert (child.pid, child.find_death(), child.read_last_line()) == (0, None, "")
    child.terminate()
    assert child.wait(0)


def test_a_child_can_be_ended_and_started_again(tmp_path: Path) -> None:
    """Each start is a new process, in a session of its own, out of reach of the terminal's Ctrl-C."""
    child = Child("c", ["/bin/sleep", "60"], tmp_path / "c.log", {})
    child.start()
    first = child.pid
    child.kill()
    assert child.wait(2)
    child.start()

    assert child.pid != first
    assert os.getsid(child.pid) == child.pid
    assert not child.wait(0)
    child.terminate()
    assert child.wait(2)
    assert child.find_death() == -15
