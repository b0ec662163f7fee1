"""What Helm tells people after an installation: the commands in it, to be run as they are printed."""

import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.kit.runs.local_run import wait_until

_PATIENCE_S = 90.0
_LOOK_S = 0.2


def list_commands(notes: str) -> list[str]:
    """The commands, which are indented by two blanks."""
    return re.findall(r"^ {2}(\S.*)$", notes, re.MULTILINE)


class Terminal:
    """Runs commands one after the other, as someone does who copies them; ends those that do not end.

    Args:
        environment: of the first command.
        folder: where it writes down what they print.
    """

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self._environment = environment
        self._folder = folder
        self._exports: list[str] = []
        self._started: list[subprocess.Popen[bytes]] = []

    def run(self, command: str, *, patience_s: float = _PATIENCE_S) -> str:
        """Run a command to its end; what it printed."""
        script = "\n".join([*self._exports, command])
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            env=self._environment, capture_output=True, text=True, timeout=patience_s, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        if command.startswith("export "):
            self._exports.append(command)
        return done.stdout

    def run_until(self, command: str, words: str) -> int:
        """Run a command until it prints some words, then press Ctrl-C; its exit code."""
        process = self.start(command, words)
        process.send_signal(signal.SIGINT)
        return process.wait(_PATIENCE_S)

    def start(self, command: str, words: str) -> "subprocess.Popen[bytes]":
        """Start a command, and wait until it prints some words."""
        path = self._folder / f"printed-{len(self._started)}"
        with path.open("wb") as printed:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"], env=self._environment, stdout=printed, stderr=printed
            )
        self._started.append(process)

        def is_printed() -> bool:
            said = path.read_text()
            assert process.poll() is None or words in said, f"{command}: {said}"
            return words in said

        wait_until(is_printed, _PATIENCE_S, f"{command} prints {words!r}", _LOOK_S)
        return process

    def close(self) -> None:
        """End what is still running."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.wait()
