"""The data folder of a local stack: where everything lies, and who holds it."""

import difflib
import json
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from oku_coordinator.ledger import Ledger, UnknownRunError
from oku_coordinator.ledger.file_lock import FileLock, lock_ledger
from oku_coordinator.ledger.records import RunRecord
from oku_core.errors import UserError
from oku_core.process.private_files import (
    NotPrivateError,
    check_private_folder,
    make_private_folder,
    write_private,
)

DEFAULT = Path(".oku")
_LOCK_WAIT_S = 10.0


@dataclass(frozen=True)
class Endpoint:
    """Where a coordinator answers.

    Args:
        url: of its API.
        token: that its API wants.
        token_note: said beside the answer that this is the wrong one; empty for nothing.
        find_trouble: what is wrong on the way there; empty for nothing that is known.
    """

    url: str
    token: str
    token_note: str = ""
    find_trouble: Callable[[], str] = field(default=str, compare=False)

    @property
    def flags(self) -> Sequence[str]:
        """The flags that name it."""
        return ["--coordinator", self.url]

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        """There is nothing to open on the way to it."""
        yield self


class DataDir:
    """Paths in a data folder, made absolute so that children find them from anywhere."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._absolute = path.absolute()
        self._lock: FileLock | None = None

    @property
    def flags(self) -> Sequence[str]:
        """The flags that name it; none for the usual folder."""
        return [] if self.path == DEFAULT else ["--data-dir", str(self.path)]

    @property
    def ledger(self) -> Path:
        """The ledger."""
        return self._absolute / "ledger.sqlite3"

    @property
    def logs(self) -> Path:
        """The logs of the stack's processes."""
        return self._absolute / "logs"

    @property
    def broker(self) -> Path:
        """The broker's data."""
        return self._absolute / "broker"

    @property
    def counts(self) -> Path:
        """What the delay servers count."""
        return self._absolute / "servers"

    @property
    def reports(self) -> Path:
        """A page for each run, as it came to rest."""
        return self._absolute / "reports"

    @property
    def message_key(self) -> Path:
        """The key that the stack's processes sign their messages with."""
        return self._absolute / "message.key"

    @property
    def stack_file(self) -> Path:
        """What is known of the running stack: its API and its processes."""
        return self._absolute / "stack.json"

    @property
    def absolute(self) -> Path:
        """The folder itself."""
        return self._absolute

    def hold(self) -> None:
        """Make the folder, and be the only one to run a stack in it; `UserError` when another one does."""
        try:
            for folder in (self._absolute, self.logs, self.broker, self.counts):
                make_private_folder(folder)
            # Whoever only looks whether a stack runs here holds the lock for a moment.
            self._lock = FileLock(self._absolute / "stack.lock", wait_s=0.3)
        except BlockingIOError:
            raise UserError(
                f"{self.path}: another run holds this data folder; wait for it, or name another by --data-dir"
            ) from None
        except OSError as error:
            raise UserError(f"{error.filename or self.path}: {error.strerror}") from error

    def release(self) -> None:
        """Let others run a stack in it."""
        self.stack_file.unlink(missing_ok=True)
        if self._lock is not None:
            self._lock.release()

    def write_stack(self, endpoint: Endpoint, pids: dict[str, int]) -> None:
        """Keep what is known of the running stack, readable by its owner only."""
        document = {"url": endpoint.url, "token": endpoint.token, "pid": os.getpid(), "children": pids}
        write_private(self.stack_file, json.dumps(document))

    def find_endpoint(self) -> Endpoint | None:
        """The API of the stack that runs in this folder, or None; `UserError` when others may write it."""
        try:
            check_private_folder(self._absolute)
            FileLock(self._absolute / "stack.lock").release()
        except BlockingIOError:
            return self._read_endpoint()
        except FileNotFoundError:
            return None
        except NotPrivateError as error:
            raise UserError(f"{error.filename}: {error.strerror}") from error
        return None

    def _read_endpoint(self) -> Endpoint:
        try:
            document: dict[str, Any] = json.loads(self.stack_file.read_text())
        except FileNotFoundError:
            raise UserError(f"{self.path}: a run is being started or ended here, try again") from None
        return Endpoint(document["url"], document["token"])

    def open_ledger(self) -> Ledger:
        """The ledger, to read."""
        return Ledger(self.ledger, read_only=True)

    def open_settled_ledger(self) -> Ledger | None:
        """The ledger, to read, with what a crash left put in order; None when there is none yet."""
        if not self.ledger.exists():
            return None
        if self.find_endpoint() is None:
            self.hold()
            self.park_interrupted(time.time())
            self.release()
        return self.open_ledger()

    def require_run(self, run: str) -> RunRecord:
        """A run of this folder; `UserError` when it is not there."""
        ledger = self.open_settled_ledger()
        if ledger is None:
            raise UserError(f"{self.path}: there are no runs in this data folder")
        try:
            return ledger.fetch_run(run)
        except UnknownRunError:
            near = difflib.get_close_matches(run, [record.run for record in ledger.fetch_runs()], n=1)
            hint = f", did you mean {near[0]}?" if near else ""
            raise UserError(f"{self.path}: there is no run {run}{hint}") from None
        finally:
            ledger.close()

    def change_ledger(self, change: Callable[[Ledger], None]) -> None:
        """Change the ledger while no coordinator runs; the caller holds the folder.

        Raises:
            UserError: it cannot be written, as on a full disk.
        """
        lock = lock_ledger(self.ledger, _LOCK_WAIT_S)
        ledger = Ledger(self.ledger)
        try:
            change(ledger)
        except sqlite3.OperationalError as error:
            raise UserError(f"{self.path}: the ledger cannot be written: {error}") from error
        finally:
            ledger.close()
            lock.release()

    def park_interrupted(self, now: float, *, but: str | None = None) -> None:
        """Pause what a killed stack left running, but for one run; the caller holds the folder."""
        if self.ledger.exists():
            self.change_ledger(lambda ledger: ledger.park_interrupted(now, but=but))
