"""One way to talk to runs, wherever they are: `open_backend` chooses by the options of a command.

A coordinator's runs are reached through its API (`oku_cli.remote.client.Client`), those of a data folder in
which no local stack runs through its ledger (`LedgerBackend`).
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from oku_cli.backends.data_dir import DataDir
from oku_cli.remote.client import Client
from oku_cli.remote.endpoint import CoordinatorRef
from oku_core.accounting.run_state import RunState
from oku_core.results.run_rows import RunRows
from oku_core.results.summary import Summary


class RunBackend(Protocol):
    """What can be asked of runs. `UserError` says in one line what cannot be done, and why.

    A `run` is an id, which `oku_cli.backends.run_lookup` finds for what a user gave.
    """

    @property
    def flags(self) -> Sequence[str]:
        """The flags that name this backend in a command."""

    @property
    def place(self) -> str:
        """Where its runs are, as an error names it."""

    async def fetch_runs(self, most: int | None = None, reference: str | None = None) -> list[dict[str, Any]]:
        """List runs as the API does, newest first: all, or at most so many.

        With a reference only those that it stands for (`oku_core.accounting.run_reference`).
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
        """End a run for good, and drop what is in flight if it is to end at once; return its state now."""

    async def delete(self, run: str) -> None:
        """Delete a run that is over or paused, with all that is kept of it."""


@asynccontextmanager
async def open_backend(coordinator: CoordinatorRef | None, data_dir: Path) -> AsyncIterator[RunBackend]:
    """The coordinator that was named, else the local stack that runs in the folder, else its ledger."""
    folder = DataDir(data_dir)
    reached = find_coordinator(coordinator, folder)
    if reached is None:
        from oku_cli.backends.ledger_backend import LedgerBackend  # noqa: PLC0415  # loads the ledger

        yield LedgerBackend.settle(folder)
        return
    async with Client(reached) as client:
        yield client


def find_coordinator(given: CoordinatorRef | None, folder: DataDir) -> CoordinatorRef | None:
    """The coordinator that was named, else that of the local stack that runs in the folder, else None."""
    return given or folder.find_endpoint()
