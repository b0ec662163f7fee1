"""The runs of a data folder in which no local stack runs: its ledger is read and changed in place."""

import sqlite3
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from oku_cli.backends.client import RunGoneError
from oku_cli.backends.data_dir import DataDir
from oku_coordinator.files.file_store import find_stored_file
from oku_coordinator.ledger import Ledger, UnknownRunError, batches
from oku_coordinator.ledger.rules import hooks, lifecycle, snapshots
from oku_coordinator.ledger.storage.records import RunInUseError, RunRecord
from oku_coordinator.ledger.storage.schema import lock_ledger
from oku_coordinator.ledger.tables import deletion_table, run_table, submission_table
from oku_coordinator.runs.notices import fetch_unconfined_notice
from oku_coordinator.runs.retention import KeyTakenError, RunDeletedError, build_end, find_submitted
from oku_coordinator.runs.run_documents import (
    build_row_object,
    read_run_rows,
    write_failures,
    write_run_history,
)
from oku_coordinator.runs.summary.summaries import build_summary
from oku_core.accounting.run_state import RunState, TransitionError
from oku_core.errors import UserError
from oku_core.json_reader import JsonDecoder, JsonError
from oku_core.results.run_api import RunRows
from oku_core.spec.spec import Spec
from oku_core.summary.summary import Summary

if TYPE_CHECKING:
    from oku_coordinator.runs.file_keeper import FileKeeper

_SUMMARY: JsonDecoder[Summary] = JsonDecoder(Summary)
_LOCK_WAIT_S = 10.0
_NOT_TORN_DOWN = "was not called: the run was cancelled where no worker runs"


class LedgerBackend:
    """A `RunBackend` on the ledger of a folder, which may not be there yet."""

    def __init__(self, folder: DataDir) -> None:
        self._folder = folder

    @classmethod
    def settle(cls, folder: DataDir) -> Self:
        """The backend of a folder that no stack holds; runs that a killed stack left running are paused."""
        backend = cls(folder)
        if folder.ledger.exists():
            with folder.held():
                backend.pause_interrupted()
        return backend

    @property
    def flags(self) -> Sequence[str]:
        """The flags that name the folder."""
        return self._folder.flags

    @property
    def place(self) -> str:
        """The folder, as the user named it."""
        return str(self._folder.path)

    async def fetch_runs(self, most: int | None = None, reference: str | None = None) -> list[dict[str, Any]]:
        """List runs as the API does, newest first: all, at most `most`, or the matches of a reference."""
        if not self._folder.ledger.exists():
            return []
        with self._read() as ledger, ledger.read() as t:
            page = run_table.fetch_runs(t, -1 if most is None else most, reference=reference)
        return [build_row_object(run) for run in page]

    async def fetch_summary(self, run: str) -> Summary:
        """The summary of a run as it stands."""
        with self._read_run(run) as (ledger, _):
            with ledger.read() as t:
                snapshot = snapshots.fetch_snapshot(t, run)
            return build_summary(snapshot, time.time(), fetch_unconfined_notice(ledger, snapshot.record))

    async def read_run_history(self, run: str) -> AsyncGenerator[bytes]:
        """The history of a run, line by line and without line ends."""
        now = time.time()
        with self._read_run(run) as (ledger, _):
            with ledger.read() as t:
                snapshot = snapshots.fetch_snapshot(t, run)
            for piece in write_run_history(ledger, build_summary(snapshot, now), now):
                for line in piece.splitlines():
                    yield line

    async def read_failures(self, run: str) -> AsyncGenerator[bytes]:
        """The failed requests of a run, line by line and without line ends."""
        with self._read_run(run) as (ledger, _):
            for piece in write_failures(ledger, run):
                for line in piece.splitlines():
                    yield line

    async def fetch_rows(self, run: str, start: int, stop: int) -> RunRows:
        """The rows of the data of a run for the indices `start <= i < stop`, at most `MOST_ROWS`."""
        spec = self.require_run(run).spec
        return read_run_rows(run, spec, self._find_file, range(start, stop))

    async def fetch_run_file(self, run: str, digest: str) -> bytes:  # noqa: ARG002  # one folder has all
        """A file of a run, which fits into memory."""
        return self._find_file(digest).read_bytes()

    def _find_file(self, digest: str) -> Path:
        path = find_stored_file(self._folder.files, digest)
        if path is None:
            raise UserError(f"{self._folder.files / digest}: this file of the run is not there any more")
        return path

    async def pause(self, run: str) -> RunState:
        """Nothing runs here: `UserError`."""
        raise UserError(f"run {self.require_run(run).run} is not running, there is nothing to pause")

    async def cancel(self, run: str, *, at_once: bool = False) -> RunState:  # noqa: ARG002  # nothing is in flight
        """End a run for good. Its teardown is not called: no worker is here."""
        self.require_run(run)
        with self._folder.held():
            return self.cancel_interrupted(run)

    def cancel_interrupted(self, run: str) -> RunState:
        """End a run of a stack that has ended; the caller holds the folder."""
        try:
            with self._change() as ledger:
                now = time.time()
                with ledger.change(now) as t:
                    lifecycle.change_state(t, run, RunState.CANCELLED, now)
                    hooks.give_up_teardown(t, run, _NOT_TORN_DOWN, now)
                    return run_table.fetch_run(t, run).state
        except TransitionError as error:
            raise UserError(str(error)) from error

    async def delete(self, run: str) -> None:
        """Delete a run that is over or paused, with all that is kept of it."""
        self.require_run(run)
        try:
            with self._folder.held(), self._change() as ledger:
                end = build_end(ledger, run, time.time())
                with ledger.change() as t:
                    deletion_table.begin_deletion(t, run, end)
                self._folder.find_report(run).unlink(missing_ok=True)
                keeper = self._build_keeper(ledger)
                _remove_deleted(ledger, keeper)
                while ledger.free_pages():
                    pass
        except RunInUseError as error:
            raise UserError(str(error)) from error

    def _build_keeper(self, ledger: Ledger) -> "FileKeeper":
        # They load the HTTP client, which would make a user at a prompt wait.
        from oku_coordinator.files.file_store import FileStore  # noqa: PLC0415
        from oku_coordinator.runs.file_keeper import FileKeeper  # noqa: PLC0415

        return FileKeeper(ledger, FileStore(self._folder.files))

    def require_run(self, run: str) -> RunRecord:
        """A run of this folder; `UserError` if it has none with that id."""
        with self._read_run(run) as (_, record):
            return record

    def find_submitted(self, key: str, spec: Spec, keep_keys_s: float) -> RunRecord | None:
        """The run of this folder that was submitted with a key; None if there is none.

        `UserError` if it has another spec. A key is kept for `keep_keys_s` after the deletion of its run.

        Raises:
            RunGoneError: the run was deleted.
        """
        if not self._folder.ledger.exists():
            return None
        with self._read() as ledger:
            try:
                return find_submitted(ledger, key, spec, time.time() - keep_keys_s)
            except KeyTakenError as error:
                raise UserError(f"{self.place}: {error}") from None
            except RunDeletedError as error:
                raise RunGoneError(str(error), _read_kept_summary(error.summary)) from None

    def pause_interrupted(self, *, but: str | None = None) -> None:
        """Pause what a killed stack left running, but for one run; the caller holds the folder."""
        if self._folder.ledger.exists():
            with self._change() as ledger:
                batches.pause_interrupted(ledger, time.time(), but=but)

    @contextmanager
    def _read_run(self, run: str) -> Iterator[tuple[Ledger, RunRecord]]:
        """The ledger, to be read, with the record of a run; `UserError` if there is none with that id."""
        with self._read() as ledger:
            try:
                with ledger.read() as t:
                    record = run_table.fetch_run(t, run)
            except UnknownRunError as error:
                raise UserError(f"{self.place}: {error}") from None
            yield ledger, record

    @contextmanager
    def _read(self) -> Iterator[Ledger]:
        ledger = Ledger(self._folder.ledger, read_only=True)
        try:
            yield ledger
        finally:
            ledger.close()

    @contextmanager
    def _change(self) -> Iterator[Ledger]:
        """The ledger, to be changed by the holder of the folder; `UserError` if it cannot be written."""
        lock = lock_ledger(self._folder.ledger, _LOCK_WAIT_S)
        ledger = Ledger(self._folder.ledger)
        try:
            yield ledger
        except sqlite3.OperationalError as error:
            raise UserError(f"{self._folder.path}: the ledger cannot be written: {error}") from error
        finally:
            ledger.close()
            lock.release()


def _remove_deleted(ledger: Ledger, keeper: "FileKeeper") -> None:
    """Remove all that is left of deleted runs."""
    while True:
        with ledger.read() as t:
            run = deletion_table.find_deletion(t)
            digests = submission_table.fetch_digests(t, run) if run is not None else []
        if run is None:
            return
        is_left = True
        while is_left:
            with ledger.change() as t:
                is_left = deletion_table.delete_some(t, run)
        keeper.release(digests)


def _read_kept_summary(content: bytes) -> Summary:
    try:
        return _SUMMARY.decode(content)
    except JsonError as error:
        raise UserError(f"this version of oku cannot read how the deleted run ended: {error}") from error
