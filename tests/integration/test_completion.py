"""Shells complete the words of `oku`: a real bash, as somebody types in it."""

import os
import pty
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit.coordinators.transactions import change
from tests.kit.runs.local_run import OKU, run_oku

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_core.spec.spec import Spec

RUNS = ("261101-101010-abcd", "261102-101010-efgh")
_PATIENCE_S = 30.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two runs, one of which has a name, and a spec."""
    data = tmp_path / ".oku"
    data.mkdir(mode=0o700)
    ledger = Ledger(data / "ledger.sqlite3")
    for now, (run, name) in enumerate(zip(RUNS, ("nightly", ""), strict=True)):
        change(ledger, create_run, run, Spec(requests=5, name=name), float(now))
    ledger.close()
    (tmp_path / "spec.yaml").write_text("requests: 10")
    return tmp_path


class Bash:
    """An interactive bash with a terminal of its own, and with the script of `oku completion`."""

    def __init__(self, folder: Path) -> None:
        self._fd, theirs = pty.openpty()
        environment = os.environ | {
            "PATH": f"{Path(OKU[0]).parent}:{os.environ['PATH']}",
            "PS1": "ready> ",
            "TERM": "dumb",
            "INPUTRC": os.devnull,
        }
        command = ["bash", "--norc", "--noprofile", "-i"]
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=environment,
            start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self.seen = ""
        self.type('bind "set enable-bracketed-paste off"; eval "$(oku completion bash)"; echo set-"up"\n')
        self.wait_for("set-up\r\n")

    def type(self, text: str) -> None:
        """Press keys."""
        self.seen = ""
        os.write(self._fd, text.encode())

    def wait_for(self, text: str) -> str:
        """Wait until a text is on the screen; what has come since the last keys."""
        deadline = time.monotonic() + _PATIENCE_S
        while text not in self.seen:
            left_s = deadline - time.monotonic()
            assert left_s > 0, f"{text!r} is not in {self.seen!r}"
            if select.select([self._fd], [], [], left_s)[0]:
                self.seen += os.read(self._fd, 4096).decode()
        return self.seen

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        os.close(self._fd)


@pytest.fixture
def bash(folder: Path) -> Iterator[Bash]:
    """One in that folder."""
    started = Bash(folder)
    yield started
    started.close()


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("oku sho\t", "oku show "),
        ("oku show l\t", "oku show latest "),
        ("oku cancel 261101\t", f"oku cancel {RUNS[0]} "),
        ("oku cancel gh\t", f"{RUNS[1]} "),
        ("oku show n\t", "oku show nightly "),
        ("oku run --engine h\t", "oku run --engine httptools "),
        ("oku run sp\t", "oku run spec.yaml "),
        ("oku run -d @sp\t", "oku run -d @spec.yaml "),
        ("oku run --cacert sp\t", "oku run --cacert spec.yaml "),
        ("oku show \t\t", "latest"),
    ],
)
def test_bash_completes_a_word(bash: Bash, typed: str, shown: str) -> None:
    """It stands at the prompt as if it had been typed."""
    bash.type(typed)
    seen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\x07]", "", bash.wait_for(shown.rpartition(" ")[2] or shown[-8:]))
    assert "oku: " not in seen
    assert "Traceback" not in seen


def test_enter_after_a_completion_runs_nothing_but_oku(folder: Path) -> None:
    """Tags and names of runs and files may be somebody else's; the shell quotes what it completes itself."""
    hostile = "$(touch made)"
    (folder / "locustfile.py").write_text(f"from locust import tag\n@tag({hostile!r})\ndef f(l): pass\n")
    (folder / "file").mkdir()
    (folder / "file" / hostile).write_text("")
    (folder / "below" / hostile).mkdir(parents=True)
    ledger = Ledger(folder / ".oku" / "ledger.sqlite3")
    change(ledger, create_run, "261103-101010-ijkl", Spec(requests=5, name=hostile), 3.0)
    ledger.close()
    bash = Bash(folder)
    for place, typed in enumerate(
        (
            "oku run locustfile.py --tag \t",
            "oku show $\t",
            "oku run -d @file/\t",
            "oku run file/\t",
            "oku show --data-dir below/\t",
        )
    ):
        bash.type(typed)
        bash.type(f' x --nope; echo {place}-en""ded $?\n')
        assert f"{place}-ended 2" in bash.wait_for(f"{place}-ended "), typed
        assert not (folder / "made").exists(), typed
    bash.close()


def complete(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Ask as the script for zsh does."""
    place = str(len(words) - 1)
    asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": place, "_OKU_COMPLETE": "zsh_complete"}
    return subprocess.run(
        OKU, cwd=folder, env=os.environ | asked, capture_output=True, text=True, timeout=60, check=True
    )


@pytest.mark.parametrize(
    "words",
    [
        ("oku", "rum", ""),
        ("oku", "run", "--nope", ""),
        ("oku", "run", "--json", "x.json", ""),
        ("oku", "run", "--loki-outbox", "many", "--grafana", "x", ""),
        ("oku", "show", "--coordinator", "http://127.0.0.1:1", "--token", "t", ""),
        ("oku", "coordinator", "--log-level", "loud", ""),
        ("oku", "show", "'", ""),
    ],
)
def test_mistakes_are_not_told_at_a_prompt(folder: Path, words: tuple[str, ...]) -> None:
    """The command tells them when it is called."""
    before = sorted((path, path.read_bytes()) for path in folder.rglob("*") if path.is_file())
    asked = complete(folder, *words)
    assert asked.stderr == ""
    assert "Error" not in asked.stdout
    assert sorted((path, path.read_bytes()) for path in folder.rglob("*") if path.is_file()) == before


def test_a_coordinator_that_does_not_answer_is_not_waited_for(folder: Path) -> None:
    """A prompt that hangs would be worse than one that offers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        asked = complete(folder, "oku", "show", "--coordinator", url, "--token", "t", "")
    assert (asked.stdout.strip(), asked.stderr) == ("", "")
    assert time.monotonic() - began < _PATIENCE_S


def test_completing_a_run_loads_no_stack(folder: Path) -> None:
    """Somebody waits at a prompt: neither the HTTP client nor the broker's is loaded."""
    script = (
        "import os, sys\nfrom oku_cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    print(*sorted(sys.modules))"
    )
    asked = {"COMP_WORDS": "oku show ", "COMP_CWORD": "2", "_OKU_COMPLETE": "bash_complete"}
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=os.environ | asked, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    offered, modules = ended.stdout.rpartition("plain,nightly\n")[::2]
    assert RUNS[0] in offered
    assert "oku_cli.options.run_options" in modules.split()
    assert not {"aiohttp", "celery", "kombu", "uvloop", "kubernetes"} & set(modules.split())


def test_every_shell_has_a_script(tmp_path: Path) -> None:
    """Another shell is refused in one line."""
    for shell in ("bash", "zsh", "fish"):
        printed = run_oku("completion", shell, cwd=tmp_path)
        assert (printed.returncode, printed.stderr) == (0, "")
        assert f"_OKU_COMPLETE={shell}_complete" in printed.stdout
    for arguments in (["tcsh"], []):
        refused = run_oku("completion", *arguments, cwd=tmp_path)
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
        assert "fish" in refused.stderr
    assert list(tmp_path.iterdir()) == []
