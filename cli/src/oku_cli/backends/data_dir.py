"""The data folder of a local stack: where everything is, who holds it, and which stack runs in it."""

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from oku_cli.backends.coordinator_ref import Endpoint
from oku_core.errors import UserError
from oku_core.json_reader import JsonDecoder, JsonError
from oku_core.messaging.credentials import find_weakness
from oku_core.process.private_files import (
    DATA_FOLDER,
    FileLock,
    NotPrivateError,
    check_private_folder,
    make_data_folder,
    make_private_folder,
    write_private,
)

DEFAULT = Path(DATA_FOLDER)
_SETTLES_S = 5.0
"""Starting or ending a run takes a moment; other commands wait for it this long."""
_POLL_S = 0.05


class FolderHeldError(UserError):
    """Another command holds the folder."""


class StackShape(msgspec.Struct, frozen=True):
    """The parts of a stack that decide which runs it can make.

    Args:
        settings: a digest of its environment, secrets and settings.
        servers: the number of delay server processes.
        delay: their delay.
        seed: the seed of their delays.
        spreads_addresses: whether each worker sends from an address of its own.
    """

    settings: str
    servers: int
    delay: str
    seed: int
    spreads_addresses: bool

    def can_serve(self, wanted: "StackShape") -> bool:
        """Whether a run that was planned for a stack of another shape can be made on this one."""
        has_servers = not wanted.servers or (
            wanted.servers <= self.servers and (wanted.delay, wanted.seed) == (self.delay, self.seed)
        )
        has_addresses = self.spreads_addresses or not wanted.spreads_addresses
        return self.settings == wanted.settings and has_servers and has_addresses


class RunningStack(msgspec.Struct, frozen=True):
    """The stack that runs in a folder, as its command writes it down.

    Args:
        url: the URL of its API.
        token: the token of its API.
        pid: the process id of the command that keeps it.
        children: the process ids of its processes.
    """

    url: str
    token: str
    pid: int
    children: dict[str, int]
    shape: StackShape


_decode_stack = JsonDecoder[RunningStack](RunningStack).decode


class DataDir:
    """Paths in a data folder, made absolute so that children find them from anywhere.

    Attributes:
        path: the folder as the user named it.
        absolute: the folder itself.
        logs: the logs of the stack's processes.
        files: the files of runs, as the coordinator keeps them.
        files_cache: the same, as the workers have them.
        counts: what the delay servers count.
        reports: a page for each run, as it came to rest.
        joined: the commands whose runs are on a stack that another command started here.
        message_key: the key of this folder: it conceals settings in `stack_file`, and signs the messages of
            stacks with a broker.
        stack_file: the API and the processes of the running stack.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.absolute = path.absolute()
        self.ledger = self.absolute / "ledger.sqlite3"
        self.logs = self.absolute / "logs"
        self.files = self.absolute / "files"
        self.files_cache = self.absolute / "cache"
        self.counts = self.absolute / "servers"
        self.reports = self.absolute / "reports"
        self.joined = self.absolute / "joined"
        self.message_key = self.absolute / "message.key"
        self.stack_file = self.absolute / "stack.json"
        self._lock: FileLock | None = None

    @property
    def flags(self) -> Sequence[str]:
        """The flags that name it; none for the usual folder."""
        return [] if self.path == DEFAULT else ["--data-dir", str(self.path)]

    def find_report(self, run: str) -> Path:
        """Where the page of a run is, or will be."""
        return self.reports / f"{run}.html"

    def keep_message_key(self) -> str:
        """Return the key, made unless there is one; the caller holds the folder.

        Raises:
            UserError: it cannot be kept, or the one that is there is not what Oku wrote.
        """
        try:
            if not self.message_key.exists():
                write_private(self.message_key, secrets.token_hex(32))
            key = self.message_key.read_bytes().strip()
        except OSError as error:
            raise UserError(f"{self.message_key}: {error.strerror}") from error
        if weakness := find_weakness(key, "bytes"):
            raise UserError(f"{self.message_key}: {weakness}; delete it, and the next run makes another")
        return key.decode(errors="replace")

    def hold(self) -> None:
        """Make the folder and claim it for one stack; `UserError` if another one holds it."""
        try:
            make_data_folder(self.absolute)
            for folder in (self.logs, self.counts):
                make_private_folder(folder)
            # A process that only looks whether a stack runs here holds the lock briefly.
            self._lock = FileLock(self.absolute / "stack.lock", wait_s=0.3)
        except BlockingIOError:
            raise FolderHeldError(
                f"{self.path}: another run holds this data folder; wait for it, or name another by --data-dir"
            ) from None
        except OSError as error:
            raise UserError(f"{error.filename or self.path}: {error.strerror}") from error

    def release(self) -> None:
        """Let other stacks use the folder."""
        self.remove_stack()
        if self._lock is not None:
            self._lock.release()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder as long as the context lasts."""
        self.hold()
        try:
            yield
        finally:
            self.release()

    def write_stack(self, stack: RunningStack) -> None:
        """Write down what the running stack is, readable by its owner only."""
        write_private(self.stack_file, msgspec.json.encode(stack).decode())

    def remove_stack(self) -> None:
        """Remove the file of the running stack, which no longer answers."""
        self.stack_file.unlink(missing_ok=True)

    def is_left_by(self, endpoint: Endpoint) -> bool:
        """Whether the stack with this API does not run here any more."""
        if not self.is_held():
            return True
        stack = self.read_stack()
        return stack is None or self.build_endpoint(stack) != endpoint

    def find_endpoint(self, patience_s: float = _SETTLES_S) -> Endpoint | None:
        """The API of the stack that runs in this folder, or None.

        Raises:
            UserError: others may write the folder, or a stack is still being started or ended in it after
                `patience_s`.
        """
        deadline = time.monotonic() + patience_s
        while self.is_held():
            if stack := self.read_stack():
                return self.build_endpoint(stack)
            if time.monotonic() > deadline:
                raise FolderHeldError(f"{self.path}: a run is being started or ended here, try again")
            time.sleep(_POLL_S)
        return None

    def is_held(self) -> bool:
        """Whether a stack holds the folder now; `UserError` if others may write it."""
        try:
            check_private_folder(self.absolute)
            FileLock(self.absolute / "stack.lock").release()
        except BlockingIOError:
            return True
        except FileNotFoundError:
            return False
        except NotPrivateError as error:
            raise UserError(f"{error.filename}: {error.strerror}") from error
        return False

    def build_endpoint(self, stack: RunningStack) -> Endpoint:
        """The API of a stack that runs here."""
        return Endpoint(stack.url, stack.token, self.flags)

    def read_stack(self) -> RunningStack | None:
        """What a stack has written down here; None before it has, and when it ends."""
        try:
            return _decode_stack(self.stack_file.read_bytes())
        except FileNotFoundError:
            return None
        except JsonError as error:
            raise UserError(f"{self.stack_file}: was not written by Oku: {error}") from error
