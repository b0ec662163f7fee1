"""Types the blocks of a page as a new user would: in a clean folder, with the installed command.

What stands for something in a block is filled in: `RUN` is the id of the newest run, and more requests or
seconds than a test has time for are as many as it has time for. At the addresses that documents use there are
services. Runs that stand one below the other mostly wait, so they go beside each other.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from tests.kit.brokers.valkey import find_server
from tests.kit.documents.blocks import Block, Mark
from tests.kit.documents.own_loopback import OwnLoopback, holding_loopback
from tests.kit.loki.loki import build_config, find_loki
from tests.kit.runs.local_run import OKU, wait_until

from oku_core.spec.values.quantity import parse_count

MOST_REQUESTS = 1_000
MOST_S = 3
AT_ONCE = 3
"""So many runs go beside each other."""
PATIENCE_S = 60
SERVICE, BROKER, LOKI = 8080, 6379, 3100
"""The ports of what documents take for granted: a service to test, a Valkey or Redis, a Loki."""
_COUNT = re.compile(r"((?:--requests|-n)[ =]|^requests: )(\w+)", re.MULTILINE)
_DURATION = re.compile(r"(--duration )(\d+)s\b")
_ADDRESS = re.compile(r"(?<![\w.])127\.0\.0\.1:(\d+)")
_OWN_PORT = re.compile(r"--port (\d+)")
_RUN = re.compile(r"\bRUN\b")
_FIRST_RUN = ("run", "--requests", "100", "--concurrency", "10", "--servers", "1", "--workers", "1")
_SHELL = ("bash", "-euo", "pipefail", "-c")


class Ended(NamedTuple):
    """What came of something that was typed.

    Attributes:
        exit_code: of the shell.
        printed: both of its outputs.
    """

    exit_code: int
    printed: str


@dataclass(frozen=True)
class Terminal:
    """A folder in which things are typed, and the loopback that they can reach.

    Attributes:
        folder: where it is typed.
        loopback: what it can reach.
        lasting: ends the processes that last until the page ends.
    """

    folder: Path
    loopback: OwnLoopback
    lasting: ExitStack

    def type(self, block: Block) -> Ended:
        """Run a block to its end, or to the first command that fails; what it prints is in one text."""
        if beside := block.marks.get(Mark.BESIDE):
            with self._beside(self.fill_in(beside)):
                return self._run(self.fill_in(block.content))
        script = self.fill_in(block.content)
        if Mark.TERMINALS in block.marks:
            return self._run(self._start_all_but_last(script))
        printed = ""
        for exit_code, output in self._run_all(script):
            printed += output
            if exit_code:
                return Ended(exit_code, printed)
        return Ended(0, printed)

    def fill_in(self, text: str) -> str:
        """A text with what stands for something in it in its place."""
        text = _COUNT.sub(lambda found: found[1] + str(min(parse_count(found[2]), MOST_REQUESTS)), text)
        text = _DURATION.sub(lambda found: f"{found[1]}{min(int(found[2]), MOST_S)}s", text)
        if not _RUN.search(text):
            return text
        if self._find_newest_run() is None:
            self._oku(*_FIRST_RUN)
        return _RUN.sub(str(self._find_newest_run()), text)

    def start(self, *command: str) -> "subprocess.Popen[bytes]":
        """Start what lasts until the page ends."""
        return self.lasting.enter_context(self._going_on(command))

    def wait_for(self, port: int) -> None:
        """Wait until somebody listens there."""
        probe = f"import socket; socket.create_connection(('127.0.0.1', {port}), 1)"
        command = self.loopback.build_command(sys.executable, "-S", "-c", probe)
        wait_until(
            lambda: subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0,
            PATIENCE_S,
            f"somebody listens at port {port}",
        )

    def _start_all_but_last(self, script: str) -> str:
        """Start each line in a terminal of its own, where exports hold as well; what is left to be run."""
        exports = [line for line in script.splitlines() if line.startswith("export ")]
        *others, last = [line for line in script.splitlines() if line not in exports]
        for line in others:
            self.start(*_SHELL, "\n".join([*exports, f"exec {line}"]))
        for port in list_ports([script]):
            self.wait_for(port)
        return "\n".join([*exports, last])

    @contextmanager
    def _beside(self, command: str) -> Iterator[None]:
        before = self._find_newest_run()
        with self._going_on((*_SHELL, f"exec {command}")) as process:
            wait_until(lambda: self._has_newer_run(before), PATIENCE_S, f"there is a run of {command}")
            yield
            process.wait(PATIENCE_S)

    @contextmanager
    def _going_on(self, command: Sequence[str]) -> Iterator["subprocess.Popen[bytes]"]:
        with (
            (self.folder / "lasting.log").open("ab") as log,
            subprocess.Popen(
                self.loopback.build_command(*command),
                cwd=self.folder, env=_build_environment(self.folder), stdin=subprocess.DEVNULL,
                stdout=log, stderr=log,
            ) as process,
        ):  # fmt: skip
            try:
                yield process
            finally:
                process.terminate()
                process.wait(PATIENCE_S)

    def _has_newer_run(self, than: str | None) -> bool:
        try:
            return self._find_newest_run() != than
        except subprocess.CalledProcessError:
            return False  # while a run is being started here, nothing says which there are

    def _find_newest_run(self) -> str | None:
        runs = json.loads(self._oku("runs", "--json"))
        return str(runs[0]["run"]) if runs else None

    def _oku(self, *arguments: str) -> str:
        ended = subprocess.run(
            self.loopback.build_command(*OKU, *arguments),
            cwd=self.folder, env=_build_environment(self.folder), capture_output=True, text=True,
            timeout=PATIENCE_S, check=True,
        )  # fmt: skip
        return ended.stdout

    def _run_all(self, script: str) -> Iterator[Ended]:
        """Run the lines of a block in order, neighbouring runs beside each other; any other shell as one."""
        lines = script.splitlines()
        if not all(line.startswith("oku ") and not line.endswith("\\") for line in lines):
            yield self._run(script)
            return
        for is_run, group in groupby(lines, key=lambda line: line.startswith("oku run ")):
            if is_run:
                yield from self._run_beside_each_other(list(group))
            else:
                yield from map(self._run, group)

    def _run_beside_each_other(self, lines: Sequence[str]) -> Iterator[Ended]:
        """Carry out runs in data folders of their own; the last one is the newest in the usual one."""
        *others, last = lines
        with ThreadPoolExecutor(AT_ONCE) as pool:
            running = [
                pool.submit(self._run, line, OKU_DATA_DIR=f"beside-{place}")
                for place, line in enumerate(others)
            ]
            running.append(pool.submit(self._run, last))
        yield from (each.result() for each in running)

    def _run(self, script: str, **settings: str) -> Ended:
        ended = subprocess.run(
            self.loopback.build_command(*_SHELL, script),
            cwd=self.folder, env=_build_environment(self.folder) | settings, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        return Ended(ended.returncode, ended.stdout)


@contextmanager
def opening_terminal(folder: Path, texts: Sequence[str]) -> Iterator[Terminal]:
    """A terminal for these texts, with the services that they take for granted at the addresses they name."""
    with holding_loopback() as loopback, ExitStack() as lasting:
        terminal = Terminal(folder, loopback, lasting)
        for port in list_ports(texts):
            if command := _build_service(port, folder):
                terminal.start(*command)
                terminal.wait_for(port)
        yield terminal


def list_ports(texts: Sequence[str]) -> Sequence[int]:
    """The ports of the loopback that texts name."""
    return sorted({int(port) for text in texts for port in _ADDRESS.findall(text)})


def _build_service(port: int, folder: Path) -> Sequence[str]:
    """What listens there in a user's world; nothing where the page says how to start it."""
    if port == SERVICE:
        return (*OKU, "server", "--port", str(port))
    if port == BROKER:
        return (find_server(), "--port", str(port), "--save", "", "--dir", str(folder))
    if port == LOKI:
        config = folder / "loki.json"
        settings = build_config(folder / "loki", "127.0.0.1", LOKI, grpc_port=9095, multi_tenant=False)
        config.write_text(json.dumps(settings))
        return (str(find_loki()), f"-config.file={config}")
    return ()


def _build_environment(folder: Path) -> dict[str, str]:
    """Little more than what a login gives: no settings of Oku's, and the command on the path."""
    path = f"{Path(OKU[0]).parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8", "COLUMNS": "100"}
