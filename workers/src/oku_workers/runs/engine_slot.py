"""The engine at work, with the feed and the rows that it takes from: one at a time."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from oku_core.process.resources import measure_busy_s
from oku_core.process.supervision import Supervisor
from oku_core.spec.request_rules import find_memory_fault
from oku_core.spec.spec import Spec
from oku_workers.engines.contract.engine_protocol import EngineContext, EngineError, EngineProtocol, HostLoad
from oku_workers.engines.contract.user_code_host import HostEnds, Isolation
from oku_workers.engines.contract.user_output import UserOutput
from oku_workers.engines.engine_registry import BuildEngine, build_engine
from oku_workers.executions.execution import Execution
from oku_workers.feed.feed import Feed
from oku_workers.feed.feed_protocol import NO_REQUESTER, FeedProtocol, LimitRequester
from oku_workers.feed.paced_feed import PacedFeed
from oku_workers.feed.scheduled_feed import ScheduledFeed
from oku_workers.runs.run_pace import RunPace, RunPaces
from oku_workers.runs.run_sources import RunSources
from oku_workers.timing.timing import Timing

if TYPE_CHECKING:
    from oku_core.data.row_reader import RowReader

_MOST_OPENINGS = 3
"""How often an engine is opened whose files another program removes meanwhile."""
_LOW_PARTS_OF_USER_CODE = 5
"""A worker with user code goes less far ahead of the ledger, so it has time until less is left."""


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """Settings of the engines of this worker, the same for all runs.

    Attributes:
        local_address: what to send from; the system chooses unless given.
        memory_bytes: how much memory this process may use; 0 if that is not known.
        printed: the file of what user code prints; None writes it nowhere.
        build: makes an engine.
    """

    local_address: str | None = None
    isolation: Isolation = field(default_factory=Isolation)
    memory_bytes: int = 0
    printed: Path | None = None
    build: BuildEngine = build_engine


class EngineKey(NamedTuple):
    """An engine serves leases of one spec and, if the spec names files or secrets of this worker, has
    patterns or runs user code, of one run, with what one attempt at its setup returned.
    """

    spec: Spec
    run: str
    attempt: int
    changes: int
    """`RunFiles.changes` when it was opened."""


class EngineSlot:
    """The place of one engine; belongs to the thread of the event loop.

    Attributes:
        key: what it serves.
        code_run: the run whose user code this process has begun to run; empty before the first.
    """

    def __init__(
        self, supervisor: Supervisor, sources: RunSources, timing: Timing, settings: EngineSettings
    ) -> None:
        self._supervisor = supervisor
        self._sources = sources
        self.timing = timing
        self.settings = settings
        self.engine: EngineProtocol | None = None
        self.key: EngineKey | None = None
        self.feed: FeedProtocol = Feed()
        self.requester: LimitRequester = NO_REQUESTER
        self.host_ends = HostEnds()
        self.output = UserOutput(settings.printed)
        self.code_run = ""
        self._paces = RunPaces(supervisor)
        self._has_begun = False
        """Whether the engine takes what the feed has; one that was loaded ahead does not yet."""
        self._rows: RowReader | None = None
        self._ended_cpu_s = 0.0

    @property
    def in_flight(self) -> int:
        """Requests sent and not yet answered."""
        return self.engine.in_flight if self.engine else 0

    @property
    def keeps_window(self) -> bool:
        """Whether no more is in flight than the window allows, now and from now on."""
        return self.engine is None or not self._has_begun or self.engine.keeps_window

    @property
    def window(self) -> int:
        """How many requests are in flight at most; 0 without an engine."""
        return self.engine.window if self.engine else 0

    @property
    def host_load(self) -> HostLoad | None:
        """The load of the process that the engine has beside this one; None if it has none."""
        return self.engine.host_load if self.engine else None

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
        """The largest lateness of the event loop of that other process since the last call."""
        load = self.host_load
        return load.pop_late_s() if load else 0.0

    def flush_counts(self) -> None:
        """Count responses that are buffered in this turn of the event loop."""
        if self.engine:
            self.engine.flush_counts()

    def group_in_flight(self) -> Mapping[Execution, Sequence[int]]:
        """The coordinates in flight of each execution that has any."""
        return self.engine.group_in_flight() if self.engine else {}

    def set_pace(self, spec: Spec, pace: RunPace) -> None:
        """Carry a spec out at a pace from now on, or once it has its turn."""
        has_changed = self._paces.keep(spec, pace)
        if has_changed and self.key is not None and self.key.spec == spec and self._has_begun:
            assert self.engine is not None
            self._paces.apply(spec, self.engine, self.feed)

    async def open(self, key: EngineKey, setup_data: str, fetch: Callable[[], Awaitable[bool]]) -> bool:
        """Open an engine; False if it is no longer needed. It has read only files that were whole.

        Args:
            key: what it is to serve.
            setup_data: what the setup of the run returned.
            fetch: fetches the files of the spec; returns whether the engine is still needed.

        Raises:
            EngineError: the spec cannot be carried out here.
        """
        sources, spec = self._sources, key.spec
        for left in reversed(range(_MOST_OPENINGS)):
            if not await fetch():
                return False
            try:
                await self._try_to_open(key, setup_data)
            except EngineError:
                if not left or sources.are_whole(spec):
                    raise
            else:
                if sources.are_whole(spec):
                    self.key = key
                    return True
            await self.close()
        raise EngineError("another program keeps removing or changing the files of the run")

    def start(self, spec: Spec) -> None:
        """Have the engine take from the feed, unless it does already."""
        if not self._has_begun:
            assert self.engine is not None
            self._has_begun = True
            self._paces.apply(spec, self.engine, self.feed)
            self.engine.start()

    async def close(self) -> None:
        """Close the engine with every connection."""
        engine, self.engine, self.key = self.engine, None, None
        if engine is not None:
            load, counted_s = engine.host_load, 0.0
            if load is not None:
                self._ended_cpu_s += load.cpu_s  # not after it is closed: the time spent never falls
                counted_s = load.cpu_s
            await engine.close()
            if load is not None:
                self._ended_cpu_s += load.cpu_s - counted_s
        self.feed.close()  # there is a feed even if no engine could be opened
        if self._rows is not None:
            self._rows.close()
            self._rows = None

    async def _try_to_open(self, key: EngineKey, setup_data: str) -> None:
        spec, sources, settings = key.spec, self._sources, self.settings
        filled, tls = await sources.read(spec)
        window = self._paces.find_window(spec)
        if fault := find_memory_fault(filled.spec, window, settings.memory_bytes, sources.find_file):
            raise EngineError(fault)
        self.feed = self._build_feed(spec)
        self._rows = sources.open_rows(filled.spec)
        context = EngineContext(
            settings.local_address,
            tls,
            self._rows,
            sources.find_file,
            setup_data,
            settings.isolation,
            key.run,
            self.host_ends,
            partial(sources.fetch_again, spec),
            sources.list_visible_secrets(filled, settings.isolation.environment),
            self.output,
        )
        if spec.runs_user_code:
            self.code_run = key.run
        engine = settings.build(filled.spec, self.feed, self._supervisor, context)
        await engine.open()
        self.engine, self._has_begun = engine, False

    def _build_feed(self, spec: Spec) -> FeedProtocol:
        requester = self.requester
        if spec.is_open:
            return ScheduledFeed(self.timing, spec.late.duration_s, requester)
        if spec.max_rate is not None:
            return PacedFeed(self.timing, spec.max_rate.per_second, requester)
        return Feed(_LOW_PARTS_OF_USER_CODE, requester) if spec.runs_user_code else Feed(requester=requester)
