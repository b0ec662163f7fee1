"""What a spec names beside itself: the files of its run, secrets of this worker, and how to speak TLS."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from oku_core.data.row_reader import RowReader
from oku_core.http_client.tls import TlsError, build_tls, may_speak_tls
from oku_core.messaging.order import FilesAddress
from oku_core.process.supervision import cancel_tasks
from oku_core.spec.files import SpecFileError, list_files
from oku_core.spec.request_rules import compile_patterns, has_patterns
from oku_core.spec.secrets import NO_SOURCES, FilledSpec, SecretError, SpecSources, reads_sources
from oku_core.spec.spec import Spec
from oku_core.spec.values.file_reference import FileRef
from oku_core.spec.values.pattern import PatternError
from oku_workers.engines.contract.engine_protocol import EngineError
from oku_workers.engines.http.request_parts import open_data_rows
from oku_workers.executions.execution import Execution
from oku_workers.files.file_cache import FileError
from oku_workers.files.run_files import RunFiles

_FILES_TIMEOUT_S = 10.0
"""A file system that is away never answers; other runs have to go on."""

ReadSources = tuple[FilledSpec, ssl.SSLContext | None]
RunBlocking = Callable[[Callable[[], ReadSources]], Awaitable[ReadSources]]
"""Calls a function in a thread and returns its result, as `asyncio.to_thread`."""


class RunSources:
    """Provides the files and secrets of specs; belongs to the thread of the event loop.

    Args:
        sources: the files and secrets of this worker.
        files: the files of runs; None for a worker that cannot fetch any.
        run_blocking: calls a function that may block, elsewhere than in the event loop.
    """

    def __init__(
        self,
        sources: SpecSources = NO_SOURCES,
        files: RunFiles | None = None,
        run_blocking: RunBlocking = asyncio.to_thread,
    ) -> None:
        self._sources = sources
        self._files = files
        self._run_blocking = run_blocking

    @property
    def settled(self) -> list[str]:
        """The digests of the prepared files that are here, or cannot be fetched."""
        return [] if self._files is None else self._files.settled

    def add_tickets(self, tickets: Mapping[str, str]) -> None:
        """Add tickets for files, by their digests."""
        if self._files is not None:
            self._files.add_tickets(tickets)

    def set_address(self, address: FilesAddress) -> None:
        """Set where the coordinator serves files."""
        if self._files is not None:
            self._files.set_address(address)

    def prepare(self, files: Iterable[FileRef]) -> None:
        """Begin to fetch the files of the current run."""
        if self._files is not None:
            self._files.prepare(files)

    def release(self, user: Hashable) -> None:
        """Drop the files of a user: an execution, an attempt at a hook, or another value given to `fetch`."""
        if self._files is not None:
            self._files.release(user)

    async def close(self) -> None:
        """Remove all files."""
        if self._files is not None:
            await self._files.close()

    async def fetch(self, spec: Spec, user: Hashable) -> bool:
        """Fetch the files of a spec, and keep them until `release`; returns True.

        Raises:
            EngineError: one of them cannot be fetched.
        """
        named = list(list_files(spec))
        if not named:
            return True
        if self._files is None:
            raise EngineError("this worker cannot fetch the files of the run")
        try:
            await self._files.provide(named, user)
        except FileError as error:
            raise EngineError(str(error)) from error
        return True

    async def fetch_for(self, execution: Execution) -> bool:
        """Fetch the files of an execution; False if it is stopped meanwhile, and needs none."""
        if not any(list_files(execution.spec)):
            return True
        fetching = asyncio.ensure_future(self.fetch(execution.spec, execution))
        either: list[asyncio.Future[Any]] = [fetching, execution.finished]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if fetching.done():
                await fetching
        finally:
            await cancel_tasks([fetching])
            del fetching, either  # an error refers to this frame, and with it to the execution
        return not execution.finished.done()

    async def fetch_again(self, spec: Spec) -> None:
        """Fetch the files of an engine that opens them again when its leases may be over."""
        user = object()
        try:
            await self.fetch(spec, user)
        finally:
            self.release(user)

    def count_changes(self, spec: Spec) -> int:
        """The `RunFiles.changes` that matter to an engine for the spec; 0 if it keeps no file open."""
        return self._files.changes if self._files is not None and spec.data is not None else 0

    def are_whole(self, spec: Spec) -> bool:
        """Whether the files of a spec are here and unchanged, as far as this worker fetches files."""
        return self._files is None or self._files.are_whole(list_files(spec))

    @property
    def are_fetched(self) -> bool:
        """Whether this worker fetches the files of runs."""
        return self._files is not None

    def list_visible_secrets(self, filled: FilledSpec, environment: Mapping[str, str]) -> tuple[str, ...]:
        """The secrets that user code can see: in its spec, and in its environment."""
        if not filled.spec.runs_user_code:
            return ()
        return (*filled.secrets, *self._sources.secrets.find_visible(environment))

    async def read(self, spec: Spec) -> ReadSources:
        """Fill the secrets of a spec in, and build its TLS settings.

        This is done in a thread: reading files may block, and compiling patterns may take long.

        Raises:
            EngineError: a file, a secret or a pattern cannot be used.
        """
        if not (may_speak_tls(spec) or reads_sources(spec) or has_patterns(spec)):
            return FilledSpec(spec), None

        files = replace(self._sources.files, find=self.find_file)

        def read() -> ReadSources:
            compile_patterns(spec)
            return self._sources.secrets.fill_in(files.fill_in_bodies(spec)), build_tls(spec, files)

        try:
            async with asyncio.timeout(_FILES_TIMEOUT_S):
                return await self._run_blocking(read)
        except (PatternError, SecretError, SpecFileError, TlsError) as error:
            raise EngineError(str(error)) from error
        except TimeoutError:
            raise EngineError(
                f"the files that the spec names could not be read within {_FILES_TIMEOUT_S:.0f} s"
            ) from None

    def find_file(self, digest: str) -> Path:
        """The path of a fetched file; `SpecFileError` if it was not fetched."""
        if self._files is None:
            raise SpecFileError("this worker cannot fetch it")
        return self._files.path_of(digest)

    def open_rows(self, spec: Spec) -> RowReader | None:
        """Open the data of a spec, whose files are here by now; None without data."""
        return None if spec.data is None or self._files is None else open_data_rows(spec, self._files.path_of)
