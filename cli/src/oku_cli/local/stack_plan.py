"""Plans a local stack: its child processes, and the input of each.

Keys, tokens and passwords go to them by sockets: they are in no argument and in no environment.
"""

import os
import secrets
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from oku_cli.backends.data_dir import DataDir
from oku_cli.local.stack_socket import StackSocket
from oku_cli.process.child import Child, ChildInputs
from oku_cli.process.environment import PYTHON, build_environment
from oku_cli.user_code.code_files import MOST_FILES
from oku_core.broker.socket_url import build_socket_url
from oku_core.process.landlock import Confinement
from oku_core.process.listener import format_address
from oku_core.spec.files import EVERYWHERE
from oku_core.spec.secrets import SecretSource

_MOST_RUN_FILES = MOST_FILES + 100
"""As many as user code may have, and what else a run uses: data, bodies, certificates."""
_OKU = (*PYTHON, "-m", "oku_cli")
_FILES = [flag for folder in EVERYWHERE.folders for flag in ("--files-dir", str(folder))]
"""The stack serves the user who started it, and may read what that user may read."""
_NEEDED = {"HOME", "LD_LIBRARY_PATH", "PATH", "PYTHONHOME", "PYTHONPATH", "TMPDIR"}
"""Variables that a program may not start without; a spec may name them, but they are no secrets."""


@dataclass(frozen=True, kw_only=True)
class StackPlan:
    """Describes what a local stack consists of.

    Args:
        servers: the number of delay server processes; 0 for none.
        spreads_addresses: whether each worker sends from a loopback address of its own.
        broker_url: the broker between coordinator and workers; None for a socket.
        coordinator_environment: settings of the coordinator as environment variables, secret ones among them.
    """

    workers: int
    servers: int
    delay: str
    seed: int
    spreads_addresses: bool = False
    secrets: SecretSource = field(default_factory=SecretSource)
    coordinator_environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    has_loki: bool = False
    confinement: Confinement = Confinement.OFF
    broker_url: str | None = field(default=None, repr=False)

    def build_flags(self) -> list[str]:
        """Return the flags that allow another command what this one was allowed, and no more."""
        flags = [flag for name in self.secrets.variables for flag in ("--allow-env", name)]
        flags += ["--secrets-dir", str(self.secrets.folder)] if self.secrets.folder else []
        return flags + _CONFINEMENT_FLAGS[self.confinement]

    def pick_secret_variables(self) -> dict[str, str]:
        """Return the allowed environment variables that are set."""
        return {name: os.environ[name] for name in self.secrets.variables if name in os.environ}


_CONFINEMENT_FLAGS: Mapping[Confinement, list[str]] = {
    Confinement.OFF: [],
    Confinement.ON: ["--confine-user-code"],
    Confinement.REQUIRED: ["--require-confinement"],
}


@dataclass(frozen=True, kw_only=True)
class StackSockets:
    """Where a stack listens; its delay servers have a socket for each process.

    Workers need none if there is a broker.
    """

    api: Sequence[socket.socket]
    files: Sequence[socket.socket]
    servers: Sequence[socket.socket]
    workers: StackSocket | None

    def close(self) -> None:
        """Close all of them."""
        if self.workers is not None:
            self.workers.close()
        for listening in (*self.api, *self.files, *self.servers):
            listening.close()


def build_listening_url(listening: Sequence[socket.socket]) -> str:
    """Build the URL of sockets that share a port."""
    return f"http://{format_address(listening[0])}"


def build_children(plan: StackPlan, data_dir: DataDir, sockets: StackSockets, token: str) -> Iterator[Child]:
    """Build the children in the order of their start: coordinator, delay servers, workers.

    The caller holds the folder.
    """
    listening = [] if sockets.workers is None else [sockets.workers.listening]
    own_url = None if sockets.workers is None else build_socket_url(sockets.workers.path)
    # A broker may still have messages of a stack that was killed, so the key for it stays in the folder.
    key = data_dir.keep_message_key() if plan.broker_url else secrets.token_hex(32)
    link = {"OKU_BROKER_URL": plan.broker_url or own_url or "", "OKU_MESSAGE_KEY": key}
    commands: dict[str, tuple[Sequence[str], ChildInputs]] = {
        "coordinator": (
            [*_OKU, "coordinator", *_build_coordinator_flags(plan, data_dir, sockets)],
            ChildInputs(
                sockets=[each.fileno() for each in (*sockets.api, *sockets.files, *listening)],
                variables=link | {"OKU_TOKEN": token, **plan.coordinator_environment},
            ),
        ),
    }
    if sockets.servers:
        flags = ["--processes", str(plan.servers), "--delay", plan.delay, "--seed", str(plan.seed)]
        flags += ["--counts-dir", str(data_dir.counts), *_name_sockets("--listen-fd", sockets.servers)]
        inherited = ChildInputs(sockets=[each.fileno() for each in sockets.servers])
        commands["server"] = ([*_OKU, "server", *flags], inherited)
    given = ChildInputs(variables=link | plan.pick_secret_variables())
    for number in range(1, plan.workers + 1):
        flags = _build_worker_flags(plan, data_dir, number)
        commands[_name_worker(number)] = ([*_OKU, "worker", *flags], given)
    environment = _build_environment(plan)
    for name, (command, inputs) in commands.items():
        yield Child(name, command, data_dir.logs / f"{name}.log", environment, data_dir.absolute, inputs)


def _build_coordinator_flags(plan: StackPlan, data_dir: DataDir, sockets: StackSockets) -> list[str]:
    names = [_name_worker(number) for number in range(1, plan.workers + 1)]
    return [
        "--data-dir", str(data_dir.absolute), *_FILES, "--allow-user-code",
        "--close-metrics", "--max-run-files", str(_MOST_RUN_FILES),
        *(["--server-url", build_listening_url(sockets.servers)] if sockets.servers else []),
        *(flag for name in names for flag in ("--expect-worker", name)),
        *_name_sockets("--listen-fd", sockets.api),
        *_name_sockets("--files-listen-fd", sockets.files),
        *_name_sockets("--broker-listen-fd", [sockets.workers.listening] if sockets.workers else []),
    ]  # fmt: skip


def _build_worker_flags(plan: StackPlan, data_dir: DataDir, number: int) -> list[str]:
    address = ["--local-address", f"127.0.0.{1 + number % 254}"] if plan.spreads_addresses else []
    open_flags = ["--no-confine-user-code"] if plan.confinement is Confinement.OFF else []
    return [
        "--name", _name_worker(number), *_FILES, *plan.build_flags(), *open_flags,
        # The user owns both the user code and this environment.
        "--files-cache", str(data_dir.files_cache), "--inherit-env", "*", *address,
    ]  # fmt: skip


def _build_environment(plan: StackPlan) -> dict[str, str]:
    """Build the environment of all children: the user's, without secrets and variables of Oku's own."""
    environment = build_environment(os.environ)
    secret = {*plan.secrets.variables} - _NEEDED
    kept = {name: value for name, value in environment.items() if name not in secret}
    # People read these files, and see the last line of one.
    return kept | {"OKU_LOG_FORMAT": "text", "PYTHONIOENCODING": "utf-8"}


def _name_worker(number: int) -> str:
    return f"worker-{number}"


def _name_sockets(flag: str, listening: Sequence[socket.socket]) -> list[str]:
    return [word for each in listening for word in (flag, str(each.fileno()))]
