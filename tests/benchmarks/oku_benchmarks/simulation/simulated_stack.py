"""Broker, coordinator and simulated workers, as child processes of a benchmark."""

import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.kit.brokers.message_key import MESSAGE_KEY

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.measuring.vitals import Vitals, read_vitals
from oku_cli.backends.coordinator_ref import Endpoint
from oku_cli.local import valkey
from oku_cli.process.child import NO_INPUTS, Child, ChildInputs

_READY_S = 20.0


@dataclass(frozen=True, kw_only=True)
class Stack:
    """What runs.

    Args:
        data: the data folder of the coordinator.
        token: of its API.
        ready: the file in which it says where it listens.
        said: the file in which the simulated workers say at their end what they did.
        children: the processes, by name.
    """

    data: Path
    token: str
    ready: Path
    said: Path
    children: Mapping[str, Child]

    @property
    def ledger(self) -> Path:
        """The file of the ledger."""
        return self.data / "ledger.sqlite3"

    def wait_until_ready(self) -> Endpoint:
        """Where the API is, once it listens; `BenchmarkError` when a process ends before that."""
        deadline = time.monotonic() + _READY_S
        while not self.ready.exists():
            dead = [child for child in self.children.values() if child.find_death() is not None]
            if dead or time.monotonic() > deadline:
                child = (dead or list(self.children.values()))[0]
                raise BenchmarkError(f"{child.name} is not ready: {child.read_last_line()}")
            time.sleep(0.005)
        return Endpoint(f"http://{self.ready.read_text().strip()}", self.token)

    def look(self) -> dict[str, Vitals]:
        """Processor time and memory of each process; `BenchmarkError` when one has ended."""
        return {name: _look(child) for name, child in self.children.items()}

    def look_at(self, name: str) -> Vitals:
        """The same of one process."""
        return _look(self.children[name])

    def kill_workers(self) -> None:
        """End all simulated workers at once, as a machine that loses power does."""
        self.children["workers"].kill()
        self.children["workers"].wait(10.0)

    def end_workers(self) -> None:
        """End the simulated workers, so that they say what they did."""
        _end(self.children["workers"])

    def restart_coordinator(self) -> Endpoint:
        """End the coordinator as `kill -9` does and start it again; where it listens, once it does."""
        coordinator = self.children["coordinator"]
        coordinator.kill()
        coordinator.wait(10.0)
        self.ready.unlink()
        coordinator.start()
        return self.wait_until_ready()


@contextmanager
def run_stack(folder: Path, workers: int, rate_rps: float) -> Iterator[Stack]:
    """A stack from ready to ended.

    Args:
        folder: for all its files; must be there, and may have a ledger in its `data`.
        workers: how many are simulated.
        rate_rps: requests per second of each.
    """
    socket = valkey.choose_socket(folder)
    broker_url, token = valkey.build_broker_url(socket), secrets.token_urlsafe(24)
    data, ready, said = folder / "data", folder / "api.address", folder / "workers.json"
    data.mkdir(exist_ok=True)
    commands: dict[str, Sequence[str]] = {
        "broker": valkey.build_command(valkey.find_server()),
        "coordinator": [
            sys.executable, "-m", "oku_cli", "coordinator", "--broker-url", broker_url,
            "--data-dir", str(data), "--port", "0", "--ready-file", str(ready),
        ],
        "workers": [
            sys.executable, "-m", "oku_benchmarks.simulation.simulated_workers", broker_url, str(workers),
            str(rate_rps), str(said),
        ],
    }  # fmt: skip
    inputs = {"broker": ChildInputs(text=valkey.build_config(folder, socket))}
    environment = os.environ | {"OKU_TOKEN": token, "OKU_MESSAGE_KEY": MESSAGE_KEY.decode()}
    children = {
        name: Child(name, command, folder / f"{name}.log", environment, inputs=inputs.get(name, NO_INPUTS))
        for name, command in commands.items()
    }
    stack = Stack(data=data, token=token, ready=ready, said=said, children=children)
    try:
        children["broker"].start()
        children["coordinator"].start()
        stack.wait_until_ready()
        children["workers"].start()
        yield stack
    finally:
        # The broker, which came first, ends last.
        for child in reversed(children.values()):
            _end(child)
        valkey.remove_socket(socket, folder)


def _end(child: Child) -> None:
    child.terminate()
    if not child.wait(10.0):
        child.kill()
        child.wait(10.0)


def _look(child: Child) -> Vitals:
    vitals = read_vitals(child.pid)
    if vitals is None:
        raise BenchmarkError(f"{child.name} has ended: {child.read_last_line()}")
    return vitals
