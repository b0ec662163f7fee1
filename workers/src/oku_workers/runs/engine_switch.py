"""The engine of a worker: one at a time, made anew when a lease comes whose spec it does not serve.

Connections stay open from lease to lease of one spec. A lease of another spec waits until those before it are
finished; then their engine is closed and one for the new spec takes its place. User code is loaded ahead of
the first lease, so that nothing is late for that.
"""

import asyncio
import logging
import math
import ssl
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from oku_core.data.row_reader import RowReader
from oku_core.http_client.tls import TlsError, build_tls, may_speak_tls
from oku_core.messaging.hook import SetupData, build_spec_key
from oku_core.messaging.order import CallHook
from oku_core.process.resources import measure_busy_s
from oku_core.process.supervision import Supervisor, cancel
from oku_core.spec.body_memory import find_memory_fault
from oku_core.spec.files import SpecFileError, list_files
from oku_core.spec.rules import compile_patterns, has_patterns
from oku_core.spec.secrets import NO_SOURCES, FilledSpec, SecretError, SpecSources, reads_sources
from oku_core.spec.spec import Spec
from oku_core.spec.values.file_reference import FileRef
from oku_core.spec.values.pattern import PatternError
from oku_workers.engines.contract.engine_context import EngineContext, EngineError
from oku_workers.engines.contract.engine_protocol import EngineProtocol, HostLoad
from oku_workers.engines.contract.host_ends import HostEnds
from oku_workers.engines.contract.host_isolation import Isolation
from oku_workers.engines.contract.window import choose_window, describe_lowered_window, limit_window
from oku_workers.engines.engine_registry import build_engine
from oku_workers.engines.http.request_parts import open_rows
from oku_workers.executions.execution import Execution
from oku_workers.feed.feed import Feed, ignore
from oku_workers.feed.feed_protocol import FeedProtocol
from oku_workers.feed.paced_feed import PacedFeed
from oku_workers.feed.scheduled_feed import ScheduledFeed
from oku_workers.files.file_cache import FileError
from oku_workers.timing.timing import Timing

if TYPE_CHECKING:
    from oku_workers.files.run_files import RunFiles

_log = logging.getLogger(__name__)

_FILES_TIMEOUT_S = 10.0
"""A file system that is away never answers; other runs have to go on."""
_MOST_OPENINGS = 3
"""How often an engine is opened whose files another program removes meanwhile."""
_MOST_PACES = 4
_LOW_PARTS_OF_USER_CODE = 5
"""A worker with user code goes less far ahead of the ledger, so it has time until less is left."""


@dataclass(frozen=True)
class RunPace:
    """What changes while a spec is carried out.

    Attributes:
        window: how many requests may be in flight here, as far as the system allows.
        phase: what requests are counted in, unless due times tell it.
        share: the place of this worker, and the number of workers, that share a highest rate.
    """

    window: int
    phase: str = ""
    share: tuple[int, int] | None = None


_Sources = tuple[FilledSpec, ssl.SSLContext | None]
RunBlocking = Callable[[Callable[[], _Sources]], Awaitable[_Sources]]
"""Calls a function elsewhere and gives its result."""


class EngineSwitch:
    """Feeds executions to the engine of their spec; belongs to the thread of the event loop.

    Args:
        supervisor: of the tasks of its engines.
        local_address: what to send from; the system chooses unless given.
        sources: has the files and secrets that specs name.
        build: makes an engine.
        run_blocking: calls a function that may block, elsewhere than in the event loop.
        timing: clocks and timers.

    Attributes:
        feed: gives the engine at work its requests.
        timing: as given.
        files: has the files of runs; None if there is nobody to fetch them.
        on_low: called when little is left of what may be taken, and limits hold more back.
        find_enough: gives the number of requests that is not little.
        on_kept: called when a lease has come to its end and is kept open, as it may be the last.
        on_loaded: called when user code has been loaded ahead, or could not be.
        loaded: the run whose user code is loaded, or could not be, by `build_spec_key`; empty without one.
        code_run: the run whose user code this process has begun to run; empty before the first.
        isolation: what the process of user code gets and may take.
        host_ends: how processes of user code ended.
        memory_bytes: how much memory this process may use; 0 if that is not known.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        local_address: str | None = None,
        sources: SpecSources = NO_SOURCES,
        build: Callable[..., EngineProtocol] = build_engine,
        run_blocking: RunBlocking = asyncio.to_thread,
        timing: Timing | None = None,
    ) -> None:
        self._supervisor = supervisor
        self._files_health = supervisor.enlist("open files")
        self._local_address = local_address
        self._sources = sources
        self._build = build
        self._run_blocking = run_blocking
        self.timing = timing or Timing()
        self.feed: FeedProtocol = Feed()
        self.files: RunFiles | None = None
        self.on_low: Callable[[], None] = ignore
        self.find_enough: Callable[[], float] = lambda: math.inf
        self.on_kept: Callable[[], None] = ignore
        self.on_loaded: Callable[[], None] = ignore
        self.loaded = self.code_run = ""
        self.isolation = Isolation()
        self.host_ends = HostEnds()
        self.memory_bytes = 0
        self._paces: dict[Spec, RunPace] = {}
        self._served: set[Execution] = set()
        """The executions that the engine has; those that wait for another one are not among them."""
        self._kept: Execution | None = None
        self._farewell: asyncio.Task[None] | None = None
        self._engine: EngineProtocol | None = None
        self._key: _EngineKey | None = None
        self._has_begun = False
        """Whether the engine takes what the feed has; one that was loaded ahead does not yet."""
        self._loading: asyncio.Task[None] | None = None
        self._rows: RowReader | None = None
        self._ended_cpu_s = 0.0
        self._changing = asyncio.Lock()

    @property
    def in_flight(self) -> int:
        """Requests sent and not yet answered."""
        return self._engine.in_flight if self._engine else 0

    @property
    def window(self) -> int:
        """How many requests are in flight at most; 0 without an engine."""
        return self._engine.window if self._engine else 0

    @property
    def host_load(self) -> HostLoad | None:
        """How busy the process is that the engine has beside this one; None if it has none."""
        return self._engine.host_load if self._engine else None

    @property
    def cpu_s(self) -> float:
        """The processor time of this process, and of those that engines have started."""
        load = self.host_load
        return time.process_time() + self._ended_cpu_s + (load.cpu_s if load else 0.0)

    def measure_busy_s(self) -> float:
        """How long the process that measures latencies ran, or waited for a processor, in seconds."""
        load = self.host_load
        return measure_busy_s() if load is None else load.busy_s

    def take_host_late_s(self) -> float:
        """How late the event loop of that other process was at the worst since the last call of this."""
        load = self.host_load
        return load.take_late_s() if load else 0.0

    def set_pace(self, spec: Spec, pace: RunPace) -> None:
        """Carry a spec out at a pace from now on, or once it has its turn."""
        before = self._paces.pop(spec, None)
        self._paces[spec] = pace
        while len(self._paces) > _MOST_PACES:
            del self._paces[next(iter(self._paces))]
        if pace != before and self._key is not None and self._key.spec == spec and self._has_begun:
            self._apply(spec, pace)

    def count_waiting(self) -> None:
        """Count what has ended and waits to be counted."""
        if self._engine:
            self._engine.count_waiting()

    def group_in_flight(self) -> Mapping[Execution, Sequence[int]]:
        """The coordinates in flight of each execution that has any."""
        return self._engine.group_in_flight() if self._engine else {}

    async def serve(self, execution: Execution) -> None:
        """Send the requests of an execution; returns when all of them have ended.

        Raises:
            EngineError: its spec cannot be carried out here.
        """
        try:
            self._release_kept()
            await self._fetch_files(execution)
            await self._prepare(execution)
            execution.keeps_open = self._keeps_open
            if not execution.finished.done():
                self.feed.add(execution)
            await execution.finished
        except BaseException:
            self.withdraw(execution)
            raise
        finally:
            self._served.discard(execution)
            if execution is self._kept and self._farewell is None:
                self._kept = None
            if self.files is not None:
                self.files.release(execution)

    def load_ahead(self, run: str, spec: Spec, setup: SetupData) -> None:
        """Load the user code of a run, unless leases of another one are under way; told again, try again.

        Args:
            run: the run that is about to begin, or goes on.
            spec: of the run.
            setup: what its setup returned.
        """
        is_loading = self._loading is not None and not self._loading.done()
        if not (is_loading or self._served or self.loaded == build_spec_key(run, setup.attempt)):
            self._loading = asyncio.get_running_loop().create_task(self._load_ahead(run, spec, setup))

    def withdraw(self, execution: Execution) -> None:
        """Take no further index of an execution; what is in flight may end."""
        execution.is_last = True
        self.feed.withdraw(execution)
        self.end_kept(execution)

    def end_kept(self, execution: Execution) -> None:
        """An execution that is kept open was the last of its run: users stop, and it is finished."""
        if execution.is_kept and execution is self._kept and self._farewell is None:
            self._farewell = asyncio.get_running_loop().create_task(self._take_farewell(execution))

    def cut_off(self, execution: Execution) -> None:
        """Drop the requests of an execution that are in flight and give their indices back."""
        self.count_waiting()
        if execution.is_kept:
            execution.release()  # its users have had the time that there was
        if execution.finished.done() or self._engine is None:
            return
        lease, in_flight = execution.lease, execution.in_flight
        _log.info(
            "lease %s: %d requests are cut off", lease.id, in_flight,
            extra={"run": lease.run, "lease": lease.id, "requests": in_flight},
        )  # fmt: skip
        self._engine.cut_off(execution)

    def is_fresh_for(self, run: str) -> bool:
        """Whether this process has run no user code of another run."""
        return self.code_run in {"", run}

    async def prepare_call(self, order: CallHook) -> tuple[EngineContext, Spec]:
        """Have what a hook needs that is called beside the engine: files, which are kept, and secrets.

        The hook is user code that this process has run, from here on.

        Raises:
            EngineError: something of it is not here.
        """
        self.code_run = order.attempt.run
        if self.files is not None:
            self.files.note_tickets(order.tickets)
            await self._provide(order.spec, order.attempt)
        filled, _ = await self._read_sources(order.spec)
        context = EngineContext(
            find_file=self._find_path,
            setup_data=order.setup_data,
            isolation=self.isolation,
            secrets=self._list_visible(filled),
        )
        return context, filled.spec

    def release_files(self, user: Hashable) -> None:
        """Somebody uses no file any more."""
        if self.files is not None:
            self.files.release(user)

    async def close(self) -> None:
        """Close the engine with every connection."""
        if self._loading is not None:
            await cancel([self._loading])
        if self._farewell is not None:
            await cancel([self._farewell])
        async with self._changing:
            await self._close_engine()

    def _keeps_open(self, execution: Execution) -> bool:
        """Whether an execution that has come to its end may be the last one for users that stop then."""
        engine = self._engine
        if engine is None or engine.fault or not engine.has_farewell:
            return False
        if any(not other.finished.done() for other in self._served if other is not execution):
            return False
        self._kept = execution
        loop = asyncio.get_running_loop()
        loop.call_soon(self.end_kept if execution.is_last else self._tell_of_kept, execution)
        return True

    def _tell_of_kept(self, _: Execution) -> None:
        self.on_kept()

    def _release_kept(self) -> None:
        """There is more to do; users that are stopping already are replaced."""
        if self._kept is not None and self._farewell is None:
            self._kept.release()
            self._kept = None

    async def _take_farewell(self, execution: Execution) -> None:
        try:
            if self._engine is not None:
                await self._engine.take_farewell(execution)
        finally:
            self._kept = self._farewell = None
            execution.release()

    async def _load_ahead(self, run: str, spec: Spec, setup: SetupData) -> None:
        """Have an engine that is ready to begin; what is wrong with it is said of the first lease."""
        user = object()
        try:
            await self._provide(spec, user)
            async with self._changing:
                key = _EngineKey(spec, run, setup.attempt, self._count_changes(spec))
                if self._served:
                    return
                if self._key != key:
                    await self._close_engine()
                    await self._open_engine(key, setup.value, partial(self._provide, spec, user))
                    self._key = key
        except EngineError as error:
            _log.warning("user code of run %s cannot be loaded: %s", run, error, extra={"run": run})
        finally:
            self.release_files(user)
        self.loaded = build_spec_key(run, setup.attempt)
        self.on_loaded()

    async def _fetch_files(self, execution: Execution) -> bool:
        """Fetch the files of its run; False if the execution is stopped meanwhile, and needs none."""
        if not any(list_files(execution.spec)):
            return True
        providing = asyncio.ensure_future(self._provide(execution.spec, execution))
        either: list[asyncio.Future[Any]] = [providing, execution.finished]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if providing.done():
                await providing
        finally:
            await cancel([providing])
            del providing, either  # an error refers to this frame, and with it to the execution
        return not execution.finished.done()

    async def _provide(self, spec: Spec, user: Hashable) -> bool:
        """Fetch the files of a spec; `EngineError` if one of them cannot be fetched."""
        named = list(list_files(spec))
        if not named:
            return True
        if self.files is None:
            raise EngineError("this worker cannot fetch the files of the run")
        try:
            await self.files.provide(named, user)
        except FileError as error:
            raise EngineError(str(error)) from error
        return True

    async def _fetch_again(self, spec: Spec) -> None:
        """Have the files of an engine that opens them again, whose leases may be over; they linger then."""
        user = object()
        try:
            await self._provide(spec, user)
        finally:
            self.release_files(user)

    def _count_changes(self, spec: Spec) -> int:
        """The `RunFiles.changes` that matter to an engine for the spec; 0 if it keeps no file open."""
        return self.files.changes if self.files is not None and spec.data is not None else 0

    async def _prepare(self, execution: Execution) -> None:
        """Have an engine for the spec of an execution; one for another spec first finishes what it serves."""
        key = _build_key(execution, self._count_changes(execution.spec))
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
                fetch = partial(self._fetch_files, execution)
                if not await self._open_engine(key, execution.setup.value, fetch):
                    return
                self._key = key
            if execution.spec.runs_user_code:
                self.loaded = build_spec_key(key.run, key.attempt)
            if self._engine is not None and self._engine.fault:
                raise EngineError(self._engine.fault)
            if not self._has_begun:
                self._begin(execution.spec)
            self._served.add(execution)

    async def _open_engine(
        self, key: "_EngineKey", setup_data: str, fetch: Callable[[], Awaitable[bool]]
    ) -> bool:
        """Open an engine; False if it is no longer needed. It has read only files that were whole.

        Args:
            key: what it is to serve.
            setup_data: what the setup of the run returned.
            fetch: fetches the files of the spec; returns whether the engine is still needed.
        """
        files, spec = self.files, key.spec
        for left in reversed(range(_MOST_OPENINGS)):
            if not await fetch():
                return False
            try:
                await self._try_to_open(key, setup_data)
            except EngineError:
                if not left or files is None or files.are_whole(list_files(spec)):
                    raise
            else:
                if files is None or files.are_whole(list_files(spec)):
                    return True
            await self._close_engine()
        raise EngineError("another program keeps removing or changing the files of the run")

    async def _try_to_open(self, key: "_EngineKey", setup_data: str) -> None:
        spec = key.spec
        filled, tls = await self._read_sources(spec)
        window = self._find_window(spec)
        if fault := find_memory_fault(filled.spec, window, self.memory_bytes, self._find_file):
            raise EngineError(fault)
        self.feed = self._build_feed(spec)
        self._rows = self._open_rows(filled.spec)
        context = EngineContext(
            self._local_address,
            tls,
            self._rows,
            self._find_path,
            setup_data,
            self.isolation,
            key.run,
            self.host_ends,
            partial(self._fetch_again, spec),
            self._list_visible(filled),
        )
        if spec.runs_user_code:
            self.code_run = key.run
        engine = self._build(filled.spec, self.feed, self._supervisor, context)
        await engine.open()
        self._engine, self._has_begun = engine, False

    def _begin(self, spec: Spec) -> None:
        assert self._engine is not None
        self._has_begun = True
        self._apply(spec, self._paces.get(spec) or RunPace(choose_window(spec)))
        self._engine.start()

    def _find_window(self, spec: Spec) -> int:
        """How many requests may be in flight, as far as is known before the engine is there."""
        pace = self._paces.get(spec)
        return limit_window(choose_window(spec) if pace is None else max(pace.window, 1), spec)

    def _build_feed(self, spec: Spec) -> FeedProtocol:
        feed: FeedProtocol
        if spec.is_open:
            feed = ScheduledFeed(self.timing, spec.late.duration_s)
        elif spec.max_rate is not None:
            feed = PacedFeed(self.timing, spec.max_rate.per_second)
        else:
            feed = Feed(_LOW_PARTS_OF_USER_CODE) if spec.runs_user_code else Feed()
        feed.on_low, feed.find_enough = self.on_low, self.find_enough
        return feed

    def _apply(self, spec: Spec, pace: RunPace) -> None:
        assert self._engine is not None
        window = limit_window(pace.window, spec)
        self._warn_of_lowered_window(describe_lowered_window(window, pace.window, spec))
        # The window comes last: where it opens, an engine takes at once what the rest allows.
        self.feed.enter(pace.phase)
        if isinstance(self.feed, PacedFeed):
            self.feed.share(pace.share if window else None)
        if window != self._engine.window:
            self._engine.set_window(window)

    def _warn_of_lowered_window(self, reason: str) -> None:
        """In the log, and to those who watch the run, for as long as it is so."""
        if reason and not self._files_health.trouble:
            _log.warning("%s", reason)
        self._files_health.trouble = reason

    def _list_visible(self, filled: FilledSpec) -> tuple[str, ...]:
        """The secrets that user code can see: those of its spec, and those of its own environment."""
        if not filled.spec.runs_user_code:
            return ()
        return (*filled.secrets, *self._sources.secrets.find_visible(self.isolation.environment))

    async def _read_sources(self, spec: Spec) -> _Sources:
        """The spec with its secrets, and how to speak TLS for it.

        This is done in a thread: reading files may block, and compiling patterns may take long.
        """
        if not (may_speak_tls(spec) or reads_sources(spec) or has_patterns(spec)):
            return FilledSpec(spec), None

        files = replace(self._sources.files, find=self._find_file)

        def read() -> _Sources:
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

    def _find_file(self, file: FileRef) -> Path:
        if self.files is None:
            raise SpecFileError("this worker cannot fetch it")
        return self.files.path_of(file.digest)

    def _find_path(self, digest: str) -> Path:
        assert self.files is not None
        return self.files.path_of(digest)

    def _open_rows(self, spec: Spec) -> RowReader | None:
        """The rows of its data, whose files are here by now."""
        files = self.files
        return None if spec.data is None or files is None else open_rows(spec, files.path_of)

    async def _close_engine(self) -> None:
        engine, self._engine, self._key = self._engine, None, None
        if engine is not None:
            load, counted_s = engine.host_load, 0.0
            if load is not None:
                self._ended_cpu_s += load.cpu_s  # not after it is closed: what was spent never falls
                counted_s = load.cpu_s
            await engine.close()
            if load is not None:
                self._ended_cpu_s += load.cpu_s - counted_s
        self.feed.close()  # there is a feed even if no engine could be opened
        if self._rows is not None:
            self._rows.close()
            self._rows = None


class _EngineKey(NamedTuple):
    """An engine serves leases of one spec and, if the spec names files or secrets of this worker, has
    patterns or runs user code, of one run, with what one attempt at its setup returned.
    """

    spec: Spec
    run: str
    attempt: int
    changes: int
    """`RunFiles.changes` when it was opened."""


def _build_key(execution: Execution, changes: int) -> _EngineKey:
    spec = execution.spec
    is_of_one_run = reads_sources(spec) or has_patterns(spec) or spec.runs_user_code
    return _EngineKey(spec, execution.lease.run if is_of_one_run else "", execution.setup.attempt, changes)
