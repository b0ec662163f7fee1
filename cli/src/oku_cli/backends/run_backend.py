"""One way to talk to runs, wherever they are: `RunPlace` opens it.

Commands name a run by `latest`, its id, its name, or a part that only its id has. Its spec, failed requests
and rows of data are fetched in pieces.
"""

import difflib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from oku_cli.backends.client import Client
from oku_cli.backends.coordinator_ref import CoordinatorRef
from oku_cli.backends.data_dir import DataDir
from oku_cli.process.interrupt_hints import build_hint
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError, format_value
from oku_core.json_reader import JsonDecoder
from oku_core.results.run_api import MOST_ROWS, FailedRange, FailuresHead, RunRows, check_reference
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Spec
from oku_core.summary.summary import Summary


class RunBackend(Protocol):
    """Reads and changes runs. `UserError` gives the reason of a failure in one line.

    A `run` is an id, which `oku_cli.backends.run_backend` finds for what a user gave.
    """

    @property
    def flags(self) -> Sequence[str]:
        """The flags that name this backend in a command."""

    @property
    def place(self) -> str:
        """Where its runs are, as an error names it."""

    async def fetch_runs(self, most: int | None = None, reference: str | None = None) -> list[dict[str, Any]]:
        """List runs as the API does, newest first: all, or at most `most`.

        With a reference only those that it stands for (`oku_core.results.run_api`).
        """

    async def fetch_summary(self, run: str) -> Summary:
        """The summary of a run as it stands."""

    def read_run_history(self, run: str) -> AsyncGenerator[bytes]:
        """The history of a run, line by line and without line ends; there may be millions."""

    def read_failures(self, run: str) -> AsyncGenerator[bytes]:
        """The failed requests of a run, line by line and without line ends."""

    async def fetch_rows(self, run: str, start: int, stop: int) -> RunRows:
        """The rows of the data of a run for the indices `start <= i < stop`, at most `MOST_ROWS`."""

    async def fetch_run_file(self, run: str, digest: str) -> bytes:
        """A file of a run, which fits into memory."""

    async def pause(self, run: str) -> RunState:
        """Let a run come to rest; return its state now."""

    async def cancel(self, run: str, *, at_once: bool = False) -> RunState:
        """End a run for good, and at once drop its requests in flight if asked to; return its state now."""

    async def delete(self, run: str) -> None:
        """Delete a run that is over or paused, with all that is kept of it."""


@dataclass(frozen=True)
class RunPlace:
    """Where a command finds runs: at the coordinator that the user named, else in a data folder."""

    coordinator: CoordinatorRef | None
    folder: DataDir

    def find_coordinator(self) -> CoordinatorRef | None:
        """The named coordinator, else the one of the local stack that runs in the folder, else None."""
        return self.coordinator or self.folder.find_endpoint()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[RunBackend]:
        """Open a way to that coordinator, else to the ledger of the folder."""
        reached = self.find_coordinator()
        if reached is None:
            from oku_cli.backends.ledger_backend import LedgerBackend  # noqa: PLC0415  # loads the ledger

            yield LedgerBackend.settle(self.folder)
            return
        async with Client(reached) as client:
            yield client


MOST_NAMED = 5
"""Of several runs that a text may mean, this many are named, the newest first."""
_MOST_COMPARED = 100


async def find_run(backend: RunBackend, reference: str, *, takes_newest: bool = False) -> str:
    """Return the id of the run that a text stands for.

    Args:
        backend: where the runs are.
        reference: the text: an id is taken first, then `latest`, then a name, then a part of an id.
        takes_newest: whether a name that several runs share stands for the newest of them. That suits
            commands that only look; those that change a run should not choose one.

    Raises:
        UserError: it stands for no run, or for several.
    """
    try:
        check_reference(reference)
    except ValueError as error:
        raise UserError(f"RUN: {error}") from error
    found = await backend.fetch_runs(MOST_NAMED + 1, reference)
    if not found:
        raise UserError(f"{backend.place}: {await _describe_none(backend, reference)}")
    is_shared_name = found[0]["name"] == reference
    if len(found) > 1 and not (takes_newest and is_shared_name):
        raise UserError(f"{backend.place}: {_describe_several(reference, found)}")
    return str(found[0]["run"])


async def _describe_none(backend: RunBackend, reference: str) -> str:
    newest = await backend.fetch_runs(_MOST_COMPARED)
    if not newest:
        return f"there are no runs yet, start one with: {build_hint('run', *backend.flags)}"
    names = [text for row in newest for text in (row["run"], row["name"]) if text]
    near = difflib.get_close_matches(reference, names, n=1)
    hint = f", did you mean {near[0]}?" if near else ""
    return f"there is no run {format_value(reference)}{hint}"


def _describe_several(reference: str, found: Sequence[dict[str, Any]]) -> str:
    named = [f"{row['run']} ({row['state']})" for row in found[:MOST_NAMED]]
    if len(found) > MOST_NAMED:
        named.append("an older one")
    return f"{reference} may be {', '.join(named[:-1])} or {named[-1]}; give the id of one"


_decode_head = JsonDecoder[FailuresHead](FailuresHead).decode
_decode_range = JsonDecoder[FailedRange](FailedRange).decode


async def open_failures(backend: RunBackend, run: str) -> tuple[FailuresHead, AsyncIterator[FailedRange]]:
    """Open the list of failed requests of a run: its head, and its ranges as they arrive.

    A truncated list raises `UserError`, here or while its ranges are read.
    """
    lines = backend.read_failures(run)
    head = _read_head(run, await anext(lines, b""))
    return head, _read_ranges(run, lines)


async def fetch_run_spec(backend: RunBackend, run: str) -> Spec:
    """The spec of a run."""
    async with aclosing(backend.read_failures(run)) as lines:
        return parse_spec(Source("spec", _read_head(run, await anext(lines, b"")).spec))


def _read_head(run: str, line: bytes) -> FailuresHead:
    if not line:
        raise _build_cut_off(run)
    return _decode_head(line.rpartition(b',"failures":[')[0] + b"}")


async def _read_ranges(run: str, lines: AsyncIterator[bytes]) -> AsyncIterator[FailedRange]:
    async for line in lines:
        if line.startswith(b"]"):
            return
        yield _decode_range(line.removeprefix(b","))
    raise _build_cut_off(run)


def _build_cut_off(run: str) -> UserError:
    return UserError(f"run {run}: its failed requests cannot be read: the list is cut off")


class RunData:
    """Finds the rows of the requests of a run."""

    def __init__(self, backend: RunBackend, run: str, spec: Spec) -> None:
        self._backend, self._run, self._spec = backend, run, spec
        self._start = 0
        self._rows: list[Mapping[str, str]] = []

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns of the data; none without data."""
        return () if self._spec.data is None else self._spec.data.columns

    async def fetch(self, index: int, most: int = MOST_ROWS) -> Mapping[str, str] | None:
        """The row of a request; None if the run has no data.

        If it is not known, up to `most` rows are fetched: the following ones may be wanted, too.
        """
        if self._spec.data is None:
            return None
        if not self._start <= index < self._start + len(self._rows):
            stop = min(index + most, self._spec.requests)
            self._rows = (await self._backend.fetch_rows(self._run, index, stop)).rows
            self._start = index
        return self._rows[index - self._start]
