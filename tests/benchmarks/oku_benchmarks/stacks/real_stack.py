"""Broker, coordinator and workers of a checkout as child processes, which a case may hurt one by one."""

import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from tests.kit.brokers.message_key import MESSAGE_KEY

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.stacks import watched_loop
from oku_benchmarks.stacks.account import Account
from oku_benchmarks.stacks.checkout import Checkout
from oku_benchmarks.stacks.ledger_reader import LedgerReader
from oku_cli.local import valkey
from oku_cli.process.child import NO_INPUTS, Child, ChildInputs

_READY_S = 90.0
"""On a machine that does much else, too."""
COORDINATOR = "coordinator"
"""The name of its process."""


class RunCommand:
    """An `oku run` or `oku resume` that waits for its run.

    Args:
        child: its process.
        file: where it writes the summary.
    """

    def __init__(self, child: Child, file: Path) -> None:
        self.child = child
        self._file = file

    def wait(self, timeout_s: float) -> Account:
        """The summary at its end; `BenchmarkError` if that takes longer or there is none."""
        if not self.child.wait(timeout_s):
            raise BenchmarkError(f"the run did not end within {timeout_s:.0f} s")
        if not self._file.exists():
            raise BenchmarkError(f"the run left no summary: {self.child.read_last_line()}")
        return msgspec.json.decode(self._file.read_bytes(), type=Account)


class RealStack:
    """What runs. Nothing is restarted by itself: a case says what happens.

    Args:
        checkout: whose commands.
        folder: for all files; must be there.
        socket: of the broker.
    """

    def __init__(self, checkout: Checkout, folder: Path, socket: Path) -> None:
        self.checkout = checkout
        self.ledger = LedgerReader(folder / "data/ledger.sqlite3")
        self.broker_url = valkey.build_broker_url(socket)
        self._socket = socket
        self.url = ""
        """Of the coordinator's API."""
        self.folder = folder
        self._environment = os.environ | {
            "OKU_TOKEN": secrets.token_urlsafe(24),
            "OKU_MESSAGE_KEY": MESSAGE_KEY.decode(),
        }
        self._children: dict[str, Child] = {}
        self._newest_run = ""

    @property
    def where(self) -> list[str]:
        """The flags of a command that name the coordinator."""
        return ["--coordinator", self.url, "--token", self.token]

    @property
    def token(self) -> str:
        """Of the coordinator's API."""
        return self._environment["OKU_TOKEN"]

    def find_pid(self, name: str) -> int:
        """One of the processes, by its name."""
        return self._children[name].pid

    def start_coordinator(
        self, broker_url: str = "", flags: tuple[str, ...] = (), gaps_file: Path | None = None
    ) -> None:
        """Start the coordinator, for the first time or again, and wait until it listens.

        Args:
            broker_url: by which it reaches the broker, if that is another one than the workers'.
            flags: further ones of its command.
            gaps_file: has its event loop watched, and gets the gaps (`watched_loop`).
        """
        ready = self.folder / "coordinator.address"
        ready.unlink(missing_ok=True)
        # On the same port each time, where the commands that follow a run look for it.
        arguments = (
            "coordinator", "--broker-url", broker_url or self.broker_url,
            "--data-dir", str(self.folder / "data"), "--port", self.url.rpartition(":")[2] or "0",
            "--ready-file", str(ready), *flags,
        )  # fmt: skip
        oku = [self.checkout.oku]
        if gaps_file is not None:
            oku = [self.checkout.python, watched_loop.__file__, str(gaps_file)]
        self._start_command(COORDINATOR, [*oku, *arguments])
        self._wait_until(COORDINATOR, ready.exists)
        self.url = f"http://{ready.read_text().strip()}"

    def start_workers(self, *names: str, flags: tuple[str, ...] = ()) -> None:
        """Start workers, for the first time or again, and wait until they can take leases."""
        for name in names:
            self._find_ready_file(name).unlink(missing_ok=True)
            self._start(
                name, "worker", "--broker-url", self.broker_url, "--name", name,
                "--ready-file", str(self._find_ready_file(name)), *flags,
            )  # fmt: skip
        for name in names:
            self._wait_until(name, self._find_ready_file(name).exists)

    def start_server(self, delay: str) -> str:
        """Start a delay server of one process; its URL."""
        ready = self.folder / "server.address"
        self._start("server", "server", "--port", "0", "--delay", delay, "--ready-file", str(ready))
        self._wait_until("server", ready.exists)
        return f"http://{ready.read_text().strip()}"

    def start_command(self, name: str, verb: str, *arguments: str) -> Child:
        """Start any other command of Oku."""
        return self._start(name, verb, *arguments)

    def submit(self, name: str, verb: str, *arguments: str) -> RunCommand:
        """Start `oku run` or `oku resume`, under a name for its files."""
        file = self.folder / f"{name}.json"
        flags = [self.checkout.summary_flag, str(file), "--quiet", *self.where]
        return RunCommand(self._start(name, verb, *arguments, *flags), file)

    def wait_for_run(self, name: str, timeout_s: float = _READY_S) -> str:
        """Wait until the run of a command is in the ledger as the newest; its id.

        Args:
            name: of the command.
            timeout_s: longest time.
        """
        before = self._newest_run
        self._wait_until(name, lambda: self.ledger.find_run() not in ("", before), timeout_s)
        self._newest_run = self.ledger.find_run()
        return self._newest_run

    def kill(self, name: str) -> None:
        """Kill a process, which is dead afterwards."""
        self._children[name].kill()
        self._children[name].wait(10.0)

    def kill_process(self, pid: int) -> None:
        """Kill a process that one of ours has started."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def end(self, name: str) -> None:
        """Ask a process to end, and wait until it has."""
        self._children[name].terminate()
        if not self._children[name].wait(_READY_S):
            raise BenchmarkError(f"{name} does not end")

    def start_script(self, name: str, module: str, *arguments: str) -> None:
        """Start a module of the benchmarks as a process of its own."""
        self._start_command(name, [sys.executable, "-m", module, *arguments])

    def start_slow_link(self, round_trip_s: float) -> str:
        """Start a way to the broker that takes so long; the broker's URL by it."""
        file = self.folder / "slow_link.port"
        arguments = (str(self._socket), str(round_trip_s), str(file))
        self.start_script("slow link", "oku_benchmarks.stacks.slow_link", *arguments)
        self._wait_until("slow link", file.exists)
        return f"redis://127.0.0.1:{file.read_text()}/0"

    def close(self) -> None:
        """End all that is left, the broker last."""
        for name in sorted(self._children, key=lambda name: name == "broker"):
            child = self._children[name]
            child.kill()
            child.wait(10.0)

    def start_broker(self) -> None:
        """Start the broker, for the first time or again, and wait until it listens."""
        self._socket.unlink(missing_ok=True)
        command = valkey.build_command(valkey.find_server())
        config = valkey.build_config(self.folder, self._socket)
        self._start_command("broker", command, ChildInputs(text=config))
        self._wait_until("broker", self._socket.exists)

    def _start(self, name: str, verb: str, *arguments: str) -> Child:
        return self._start_command(name, [self.checkout.oku, verb, *arguments])

    def _start_command(self, name: str, command: Sequence[str], inputs: ChildInputs = NO_INPUTS) -> Child:
        log = self.folder / f"{name}.log"
        child = self._children[name] = Child(name, command, log, self._environment, inputs=inputs)
        child.start()
        return child

    def _find_ready_file(self, name: str) -> Path:
        return self.folder / f"{name}.ready"

    def _wait_until(self, name: str, condition: Callable[[], bool], timeout_s: float = _READY_S) -> None:
        deadline = time.monotonic() + timeout_s
        child = self._children[name]
        while not condition():
            if child.find_death() is not None or time.monotonic() > deadline:
                raise BenchmarkError(f"{name} is not ready ({child.find_death()}): {child.read_last_line()}")
            time.sleep(0.02)


@contextmanager
def open_stack(checkout: Checkout, folder: Path) -> Iterator[RealStack]:
    """A stack with its broker; coordinator and workers are started by the case.

    Args:
        checkout: whose commands.
        folder: for all files; is made.
    """
    folder.mkdir()
    socket = valkey.choose_socket(folder)
    stack = RealStack(checkout, folder, socket)
    try:
        stack.start_broker()
        yield stack
    finally:
        stack.close()
        valkey.remove_socket(socket, folder)
