"""The engine of a worker: one at a time, made anew when a lease comes whose spec it does not serve.

Connections stay open from lease to lease of one spec. A lease of another spec waits until those before it are
finished; then their engine is closed and one for the new spec takes its place.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence

from oku_core.process.supervision import Supervisor
from oku_core.spec.secrets import NO_SOURCES, SecretError, SpecSources, reads_sources
from oku_core.spec.spec import Spec
from oku_workers.engines.engine_error import EngineError
from oku_workers.engines.engine_registry import EngineProtocol, build_engine
from oku_workers.engines.tls import build_tls, may_speak_tls
from oku_workers.engines.window import describe_lowered_window
from oku_workers.executions.execution import Execution
from oku_workers.executions.feed import Feed

_log = logging.getLogger(__name__)

_FILES_TIMEOUT_S = 10.0
"""A file system that is away never answers; other runs have to go on."""


RunBlocking = Callable[
    [Callable[[], tuple[Spec, ssl.SSLContext | None]]], Awaitable[tuple[Spec, ssl.SSLContext | None]]
]
"""Calls a function elsewhere and gives its result."""


class EngineSwitch:
    """Feeds executions to the engine of their spec; belongs to the thread of the event loop.

    Args:
        supervisor: of the tasks of its engines.
        local_address: what to send from; the system chooses unless given.
        sources: has the files and secrets that specs name.
        build: makes an engine.
        run_blocking: calls a function that may block, elsewhere than in the event loop.

    Attributes:
        feed: gives the engine its indices.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        local_address: str | None = None,
        sources: SpecSources = NO_SOURCES,
        build: Callable[..., EngineProtocol] = build_engine,
        run_blocking: RunBlocking = asyncio.to_thread,
    ) -> None:
        self._supervisor = supervisor
        self._files_health = supervisor.enlist("open files")
        self._local_address = local_address
        self._sources = sources
        self._build = build
        self._run_blocking = run_blocking
        self.feed = Feed()
        self._served: set[Execution] = set()
        """The executions that the engine has; those that wait for another one are not among them."""
        self._engine: EngineProtocol | None = None
        self._key: _EngineKey | None = None
        self._changing = asyncio.Lock()

    @property
    def in_flight(self) -> int:
        """Requests sent and not yet answered."""
        return self._engine.in_flight if self._engine else 0

    @property
    def window(self) -> int:
        """How many requests are in flight at most; 0 without an engine."""
        return self._engine.window if self._engine else 0

    def group_in_flight(self) -> Mapping[Execution, Sequence[int]]:
        """The indices in flight of each execution that has any."""
        return self._engine.group_in_flight() if self._engine else {}

    async def serve(self, execution: Execution) -> None:
        """Send the requests of an execution; returns when all of them have ended.

        Raises:
            EngineError: its spec cannot be carried out here.
        """
        try:
            await self._prepare(execution)
            if not execution.finished.done():
                self.feed.add(execution)
            await execution.finished
        except BaseException:
            self.withdraw(execution)
            raise
        finally:
            self._served.discard(execution)

    def withdraw(self, execution: Execution) -> None:
        """Take no further index of an execution; what is in flight may end."""
        self.feed.withdraw(execution)

    def cut_off(self, execution: Execution) -> None:
        """Drop the requests of an execution that are in flight and give their indices back."""
        if execution.finished.done() or self._engine is None:
            return
        lease, in_flight = execution.lease, execution.in_flight
        _log.info(
            "lease %s: %d requests are cut off", lease.id, in_flight,
            extra={"run": lease.run, "lease": lease.id, "requests": in_flight},
        )  # fmt: skip
        self._engine.cut_off(execution)

    async def close(self) -> None:
        """Close the engine with every connection."""
        async with self._changing:
            await self._close_engine()

    async def _prepare(self, execution: Execution) -> None:
        """Have an engine for the spec of an execution; one for another spec first finishes what it serves."""
        spec, key = execution.spec, _build_key(execution)
        async with self._changing:
            # An execution that is stopped meanwhile needs no engine.
            while self._served and self._key != key and not execution.finished.done():
                await asyncio.wait(
                    [*(other.finished for other in self._served), execution.finished],
                    return_when=asyncio.FIRST_COMPLETED,
                )
            if execution.finished.done():
                return
            if self._key != key:
                await self._close_engine()
                self._warn_of_lowered_window(spec)
                filled, tls = await self._read_sources(spec)
                self._engine = self._build(filled, self.feed, self._supervisor, self._local_address, tls)
                self._key = key
                self._engine.start()
            self._served.add(execution)

    def _warn_of_lowered_window(self, spec: Spec) -> None:
        """In the log, and to those who watch the run, for as long as it is so."""
        self._files_health.trouble = reason = describe_lowered_window(spec)
        if reason:
            _log.warning("%s", reason)

    async def _read_sources(self, spec: Spec) -> tuple[Spec, ssl.SSLContext | None]:
        """The spec with its secrets, and how to speak TLS for it; read in a thread, for files may block."""
        if not (may_speak_tls(spec) or reads_sources(spec)):
            return spec, None

        def read() -> tuple[Spec, ssl.SSLContext | None]:
            return self._sources.secrets.fill_in(spec), build_tls(spec, self._sources.files)

        try:
            async with asyncio.timeout(_FILES_TIMEOUT_S):
                return await self._run_blocking(read)
        except SecretError as error:
            raise EngineError(str(error)) from error
        except TimeoutError:
            raise EngineError(
                f"the files that the spec names could not be read within {_FILES_TIMEOUT_S:.0f} s"
            ) from None

    async def _close_engine(self) -> None:
        engine, self._engine, self._key = self._engine, None, None
        if engine is not None:
            await engine.close()


_EngineKey = tuple[Spec, str]
"""An engine serves leases of one spec and, if the spec names files or secrets of this worker, of one run."""


def _build_key(execution: Execution) -> _EngineKey:
    return execution.spec, execution.lease.run if reads_sources(execution.spec) else ""
