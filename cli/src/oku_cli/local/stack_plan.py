"""Plans a local stack: its child processes, and the input of each.

Keys, tokens and passwords go to them by sockets: they are in no argument and in no environment.
"""

import hashlib
import hmac
import os
import secrets
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from oku_cli.backends.data_dir import DataDir, StackShape
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

    def describe(self, folder_key: str) -> StackShape:
        """Describe the stack to other commands in its folder, which have the same key."""
        environment = {
            name: value for name, value in build_environment(os.environ).items() if name not in _OF_A_TERMINAL
        }
        settings = (
            sys.executable, self.secrets.variables, str(self.secrets.folder), self.pick_secret_variables(),
            sorted(self.coordinator_environment.items()), self.confinement.name, sorted(environment.items()),
            self.broker_url,
        )  # fmt: skip
        # Keyed, because a password may be easy to guess from a plain digest.
        digest = hmac.digest(folder_key.encode(), repr(settings).encode(), hashlib.sha256).hex()
        return StackShape(digest, self.servers, str(self.delay), self.seed, self.spreads_addresses)

    def pick_secret_variables(self) -> dict[str, str]:
        """Return the allowed environment variables that are set."""
        return {name: os.environ[name] for name in self.secrets.variables if name in os.environ}


_OF_A_TERMINAL = {
    "_", "OLDPWD", "PWD", "SHLVL", "SSH_TTY", "STY", "TERM_SESSION_ID", "TMUX_PANE", "WINDOWID", "WINDOW",
}  # fmt: skip
"""Variables that differ between two terminals of one user."""


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

    def list_own(self) -> Sequence[socket.socket]:
        """List the socket that workers connect to, if there is one."""
        return [] if self.workers is None else [self.workers.listening]

    def close(self) -> None:
        """Close all of them."""
        if self.workers is not None:
            self.workers.close()
        for listening in (*self.api, *self.files, *self.servers):
            listening.close()


def build_listening_url(listening: Sequence[socket.socket]) -> str:
    """Build the URL of sockets that share a port."""
    return f"http://{format_address(listening[0])}"


class StackChildren:
    """Builds the children of a stack, whose command holds the folder.

    Attributes:
        folder_key: signs their messages if they go over a broker, which may still have some of a stack that
            was killed. Otherwise they have a key of their own, which is in no file.
    """

    def __init__(self, plan: StackPlan, data_dir: DataDir, sockets: StackSockets, token: str) -> None:
        self._plan, self._data_dir, self._sockets, self._token = plan, data_dir, sockets, token
        self.folder_key = data_dir.keep_message_key()
        own_url = build_socket_url(sockets.workers.path) if sockets.workers else ""
        self._link = {
            "OKU_BROKER_URL": plan.broker_url or own_url,
            "OKU_MESSAGE_KEY": self.folder_key if plan.broker_url else secrets.token_hex(32),
        }
        self._environment = _build_environment(plan)

    def build_all(self) -> Iterator[Child]:
        """Build the children in the order of their start: coordinator, delay servers, workers."""
        plan, data_dir, sockets = self._plan, self._data_dir, self._sockets
        flags = _build_coordinator_flags(plan, data_dir, sockets)
        inputs = ChildInputs(
            sockets=[each.fileno() for each in (*sockets.api, *sockets.files, *sockets.list_own())],
            variables=self._link | {"OKU_TOKEN": self._token, **plan.coordinator_environment},
        )
        yield self._build("coordinator", [*_OKU, "coordinator", *flags], inputs)
        if sockets.servers:
            flags = ["--processes", str(plan.servers), "--delay", plan.delay, "--seed", str(plan.seed)]
            flags += ["--counts-dir", str(data_dir.counts), *_name_sockets("--listen-fd", sockets.servers)]
            inherited = ChildInputs(sockets=[each.fileno() for each in sockets.servers])
            yield self._build("server", [*_OKU, "server", *flags], inherited)
        yield from map(self.build_worker, range(1, plan.workers + 1))

    def build_worker(self, number: int) -> Child:
        """Build a worker."""
        flags = _build_worker_flags(self._plan, self._data_dir, number)
        variables = self._link | self._plan.pick_secret_variables()
        command = [*_OKU, "worker", *flags]
        return self._build(_name_worker(number), command, ChildInputs(variables=variables))

    def _build(self, name: str, command: Sequence[str], inputs: ChildInputs) -> Child:
        log = self._data_dir.logs / f"{name}.log"
        return Child(name, command, log, self._environment, self._data_dir.absolute, inputs)


def _build_coordinator_flags(plan: StackPlan, data_dir: DataDir, sockets: StackSockets) -> list[str]:
    names = [_name_worker(number) for number in range(1, plan.workers + 1)]
    return [
        "--data-dir", str(data_dir.absolute), *_FILES, "--allow-user-code",
        "--close-metrics", "--max-run-files", str(_MOST_RUN_FILES),
        *(["--server-url", build_listening_url(sockets.servers)] if sockets.servers else []),
        *(flag for name in names for flag in ("--expect-worker", name)),
        *_name_sockets("--listen-fd", sockets.api),
        *_name_sockets("--files-listen-fd", sockets.files),
        *_name_sockets("--broker-listen-fd", sockets.list_own()),
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
