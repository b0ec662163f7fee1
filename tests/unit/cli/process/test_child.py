import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kit.runs.local_run import is_alive, wait_until

from oku_cli.process import child as child_module
from oku_cli.process import die_with_parent
from oku_cli.process.child import Child, ChildInputs, describe_death


def test_a_child_writes_into_its_log(tmp_path: Path) -> None:
    """The last line can be shown when it dies."""
    child = Child("c", ["/bin/sh", "-c", "echo one; echo two >&2; exit 3"], tmp_path / "c.log", os.environ)
    child.start()

    assert child.wait(2)
    assert child.find_death() == 3
    assert child.read_last_line() == "two"


def test_the_log_of_a_child_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process goes on in a log that begins anew, and what was there is kept once."""
    monkeypatch.setattr(child_module, "MOST_LOG_BYTES", 1000)
    log = tmp_path / "c.log"
    os.mkfifo(tmp_path / "p")
    child = Child("c", ["/bin/sh", "-c", f"while read line; do echo $line; done < {tmp_path}/p"], log, {})
    child.start()
    with (tmp_path / "p").open("w", buffering=1) as pipe:
        for round_ in range(3):
            pipe.write("".join(f"{round_} {number:090d}\n" for number in range(12)))
            last = f"{round_} {11:090d}"
            wait_until(lambda last=last: child.read_last_line() == last, 5, "it has written")  # type: ignore[misc]
            child.bound_log()
            assert log.stat().st_size == 0
            assert (tmp_path / "c.log.1").read_text().splitlines()[-1] == last
        pipe.write("few\n")
        wait_until(lambda: child.read_last_line() == "few", 5, "it has written again")
        child.bound_log()
    assert log.read_text() == "few\n"
    assert {path.stat().st_mode & 0o777 for path in (log, tmp_path / "c.log.1")} == {0o600}
    child.kill()
    assert child.wait(2)


def test_a_log_that_is_too_large_already_is_bounded_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many runs in one folder, too; its last line is found without reading all of it."""
    monkeypatch.setattr(child_module, "MOST_LOG_BYTES", 1000)
    log = tmp_path / "c.log"
    log.write_text("x" * 2000)
    child = Child("c", ["/bin/sh", "-c", "yes | head -c 200000; echo last"], log, os.environ)
    child.start()
    assert child.wait(5)
    assert (tmp_path / "c.log.1").read_text() == "x" * 2000
    assert child.read_last_line() == "last"


def test_a_child_dies_with_a_reason_once_it_was_started(tmp_path: Path) -> None:
    """A negative exit code is a signal."""
    for code, text in [(-9, "signal 9"), (1, "exit code 1"), (0, "exit code 0")]:
        assert describe_death(code) == text
    # A child has no say before its start. It has no process, has not died and has written nothing.
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


_TELL = "import os, sys; from oku_cli.process.secret_variables import receive; "


def tell(code: str, tmp_path: Path, inputs: ChildInputs) -> str:
    """What a child of Python says of what it was given."""
    child = Child("c", [sys.executable, "-c", _TELL + code], tmp_path / "c.log", {}, tmp_path, inputs)
    child.start()
    assert child.wait(10)
    return child.read_last_line()


def test_a_child_is_handed_variables_and_a_text_by_sockets(tmp_path: Path) -> None:
    """They are neither in its environment nor in its command, which has only the number of the socket."""
    code = "given = receive(int(sys.argv[-1])); print(given['A'], sys.argv[-2], 'A' in os.environ)"
    assert tell(code, tmp_path, ChildInputs(variables={"A": "ü secret"})) == "ü secret --variables-fd False"
    # A child reads a text from its standard input. Which is a socket: nobody can open that through /proc.
    code = "import stat; print(stat.S_ISSOCK(os.fstat(0).st_mode), sys.stdin.read())"
    assert tell(code, tmp_path, ChildInputs(text="port 0")) == "True port 0"
    assert tell("print([sys.stdin.read()])", tmp_path, ChildInputs()) == "['']"


def test_a_child_is_handed_variables_at_each_start(tmp_path: Path) -> None:
    """The one that takes the place of another gets the same."""
    code = f"{_TELL} print(receive(int(sys.argv[-1])))"
    inputs = ChildInputs(variables={"A": "x"})
    child = Child("c", [sys.executable, "-c", code], tmp_path / "c.log", {}, tmp_path, inputs)
    for _ in range(2):
        child.start()
        assert child.wait(10)
        assert (tmp_path / "c.log").read_text() == "{'A': 'x'}\n"
        (tmp_path / "c.log").unlink()


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_child_with_secrets_runs_a_sealed_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found as the interpreter that it is; one without any runs the file."""
    monkeypatch.delenv("OKU_DEBUGGABLE", raising=False)
    code = "print(os.readlink('/proc/self/exe').startswith('/memfd:'), sys.executable)"
    assert tell(code, tmp_path, ChildInputs(text="x")) == f"True {sys.executable}"
    assert tell(code, tmp_path, ChildInputs()) == f"False {sys.executable}"


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_child_runs_its_program_where_a_sealed_one_cannot_be_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither at the first `execve` nor at the second, which the script makes."""
    (tmp_path / "refused").touch(mode=0o600)
    (tmp_path / "refused").chmod(0o600)
    refused = os.open(tmp_path / "refused", os.O_RDONLY)
    monkeypatch.setattr(child_module, "seal_program", lambda _: refused)
    assert tell("print('runs')", tmp_path, ChildInputs(text="x")) == "runs"
    os.close(refused)
    parent = f"{os.getpid()}:1"
    ended = subprocess.run([*child_module.DIE_WITH_PARENT, parent, "true"], check=False, capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_command_whose_parent_died_before_it_could_begin_does_not_begin(tmp_path: Path) -> None:
    """It is somebody else's child by the time that it asks whose it is."""
    command = ["/usr/bin/touch", str(tmp_path / "began")]
    gone = subprocess.run([*child_module.DIE_WITH_PARENT, "1", *command], check=False)
    assert gone.returncode == 1
    assert not (tmp_path / "began").exists()
    subprocess.run([*child_module.DIE_WITH_PARENT, str(os.getpid()), *command], check=True)
    assert (tmp_path / "began").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_what_a_child_has_started_is_killed_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    """Outside Linux the command is a child of the script, and its port must be free again."""
    script = tmp_path / "die_with_parent_elsewhere.py"
    folder = str(Path(die_with_parent.__file__).parent)
    script.write_text(
        f"import sys\nsys.path.insert(0, {folder!r})\nimport die_with_parent\n"
        f"sys.platform = {platform!r}\ndie_with_parent.die_with_parent(int(sys.argv[1]), sys.argv[2:])\n"
    )
    monkeypatch.setattr(child_module, "DIE_WITH_PARENT", [sys.executable, "-I", "-S", str(script)])
    child = Child("c", ["/bin/sh", "-c", "sleep 60 & echo $! $$; wait"], tmp_path / "c.log", os.environ)
    child.start()
    wait_until(lambda: bool(child.read_last_line()), 5, "it has started another one")
    started = [int(pid) for pid in child.read_last_line().split()]
    assert (child.pid in started) == (platform == "linux")

    child.kill()

    assert child.wait(2)
    assert child.find_death() == -signal.SIGKILL
    wait_until(lambda: not any(map(is_alive, started)), 5, "none of them is alive")
