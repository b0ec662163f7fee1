"""The engine of a worker: one at a time, made anew when a lease comes whose spec it does not serve.

Connections stay open from lease to lease of one spec. A lease of another spec waits until those before it are
finished; then their engine is closed and one for the new spec takes its place. User code is loaded ahead of
the first lease, so that nothing is late for that.
"""

import asyncio
import logging
from functools import partial
from typing import Protocol

from oku_core.messaging.hook import SetupData, build_spec_key
from oku_core.messaging.order import CallHook
from oku_core.process.supervision import Supervisor, cancel_tasks
from oku_core.spec.request_rules import has_patterns
from oku_core.spec.secrets import reads_sources
from oku_core.spec.spec import Spec
from oku_workers.engines.contract.engine_protocol import EngineContext, EngineError
from oku_workers.executions.execution import Execution
from oku_workers.feed.feed_protocol import LimitRequester
from oku_workers.runs.engine_slot import EngineKey, EngineSettings, EngineSlot
from oku_workers.runs.run_sources import RunSources
from oku_workers.timing.timing import Timing

_log = logging.getLogger(__name__)


class EngineListener(LimitRequester, Protocol):
    """Is notified of the engine of a worker."""

    def on_kept(self) -> None:
        """A lease has come to its end and is kept open, as it may be the last."""

    def on_loaded(self) -> None:
        """User code has been loaded ahead, or could not be."""


class EngineSwitch:
    """Feeds executions to the engine of their spec; belongs to the thread of the event loop.

    Attributes:
        slot: has the engine at work.
        loaded: the run whose user code is loaded, or could not be, by `build_spec_key`; empty without one.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        sources: RunSources | None = None,
        timing: Timing | None = None,
        settings: EngineSettings | None = None,
    ) -> None:
        self.sources = sources or RunSources()
        self.slot = EngineSlot(supervisor, self.sources, timing or Timing(), settings or EngineSettings())
        self.loaded = ""
        self._listener: EngineListener | None = None
        self._served: set[Execution] = set()
        """The executions that the engine has; those that wait for another one are not among them."""
        self._kept: Execution | None = None
        self._farewell: asyncio.Task[None] | None = None
        self._loading: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()

    def attach(self, listener: EngineListener) -> None:
        """Have feeds ask a listener for higher limits, and notify it of the engine from now on."""
        self._listener = self.slot.requester = listener

    async def serve(self, execution: Execution) -> None:
        """Send the requests of an execution; returns when all of them have ended.

        Raises:
            EngineError: its spec cannot be carried out here.
        """
        try:
            self._release_kept()
            await self.sources.fetch_for(execution)
            await self._prepare(execution)
            execution.keeper = self
            if not execution.finished.done():
                self.slot.feed.add(execution)
            await execution.finished
        except BaseException:
            self.drain(execution)
            raise
        finally:
            self._served.discard(execution)
            if execution is self._kept and self._farewell is None:
                self._kept = None
            self.sources.release(execution)

    def load_ahead(self, run: str, spec: Spec, setup: SetupData) -> None:
        """Load the user code of a run, unless leases of another one are under way; each call tries again.

        Args:
            run: the run that is about to begin, or goes on.
            spec: of the run.
            setup: what its setup returned.
        """
        is_loading = self._loading is not None and not self._loading.done()
        if not (is_loading or self._served or self.loaded == build_spec_key(run, setup.attempt)):
            self._loading = asyncio.get_running_loop().create_task(self._load_ahead(run, spec, setup))

    def drain(self, execution: Execution) -> None:
        """Take no further index of an execution; requests in flight may end."""
        execution.is_last = True
        self.slot.feed.shorten(execution, 0)
        self.end_kept(execution)

    def end_kept(self, execution: Execution) -> None:
        """An execution that is kept open was the last of its run: users stop, and it is finished."""
        if execution.is_kept and execution is self._kept and self._farewell is None:
            self._farewell = asyncio.get_running_loop().create_task(self._take_farewell(execution))

    def cancel(self, execution: Execution) -> None:
        """Drop the requests of an execution that are in flight and give their indices back."""
        self.slot.flush_counts()
        if execution.is_kept:
            execution.release()  # its users have had the time that there was
        if execution.finished.done() or self.slot.engine is None:
            return
        lease, in_flight = execution.lease, execution.in_flight
        _log.info(
            "lease %s: %d requests are cut off", lease.id, in_flight,
            extra={"run": lease.run, "lease": lease.id, "requests": in_flight},
        )  # fmt: skip
        self.slot.engine.cancel(execution)

    def is_fresh_for(self, run: str) -> bool:
        """Whether this process has run no user code of another run."""
        return self.slot.code_run in {"", run}

    async def prepare_call(self, order: CallHook) -> tuple[EngineContext, Spec]:
        """Provide what a hook needs that is called beside the engine: files, which are kept, and secrets.

        The hook is user code that this process has run, from here on.

        Raises:
            EngineError: something of it is not here.
        """
        self.slot.code_run = order.attempt.run
        isolation = self.slot.settings.isolation
        if self.sources.are_fetched:
            self.sources.add_tickets(order.tickets)
            await self.sources.fetch(order.spec, order.attempt)
        filled, _ = await self.sources.read(order.spec)
        context = EngineContext(
            find_file=self.sources.find_file,
            setup_data=order.setup_data,
            isolation=isolation,
            secrets=self.sources.list_visible_secrets(filled, isolation.environment),
            output=self.slot.output,
        )
        return context, filled.spec

    async def close(self) -> None:
        """Close the engine with every connection."""
        if self._loading is not None:
            await cancel_tasks([self._loading])
        if self._farewell is not None:
            await cancel_tasks([self._farewell])
        async with self._changing:
            await self.slot.close()

    def keeps_open(self, execution: Execution) -> bool:
        """Whether an execution that has come to its end may be the last one for users that stop then."""
        engine = self.slot.engine
        if engine is None or engine.fault or not engine.has_farewell:
            return False
        if any(not other.finished.done() for other in self._served if other is not execution):
            return False
        self._kept = execution
        loop = asyncio.get_running_loop()
        if execution.is_last:
            loop.call_soon(self.end_kept, execution)
        elif self._listener is not None:
            loop.call_soon(self._listener.on_kept)
        return True

    def _release_kept(self) -> None:
        """There is more to do; users that are stopping already are replaced."""
        if self._kept is not None and self._farewell is None:
            self._kept.release()
            self._kept = None

    async def _take_farewell(self, execution: Execution) -> None:
        try:
            if self.slot.engine is not None:
                await self.slot.engine.run_farewell(execution)
        finally:
            self._kept = self._farewell = None
            execution.release()

    async def _load_ahead(self, run: str, spec: Spec, setup: SetupData) -> None:
        """Have an engine that is ready to begin; the first lease is refused for an error of it."""
        user = object()
        try:
            await self.sources.fetch(spec, user)
            async with self._changing:
                key = EngineKey(spec, run, setup.attempt, self.sources.count_changes(spec))
                if self._served:
                    return
                if self.slot.key != key:
                    await self.slot.close()
                    await self.slot.open(key, setup.value, partial(self.sources.fetch, spec, user))
        except EngineError as error:
            _log.warning("user code of run %s cannot be loaded: %s", run, error, extra={"run": run})
        finally:
            self.sources.release(user)
        self.loaded = build_spec_key(run, setup.attempt)
        if self._listener is not None:
            self._listener.on_loaded()

    async def _prepare(self, execution: Execution) -> None:
        """Have an engine for the spec of an execution; one for another spec first finishes what it serves."""
        slot, spec = self.slot, execution.spec
        key = _build_key(execution, self.sources.count_changes(spec))
        async with self._changing:
            # An execution that is stopped meanwhile needs no engine.
            while self._served and slot.key != key and not execution.finished.done():
                await asyncio.wait(
                    [*(other.finished for other in self._served), execution.finished],
                    return_when=asyncio.FIRST_COMPLETED,
                )
            if execution.finished.done():
                return
            if slot.key != key:
                await slot.close()
                fetch = partial(self.sources.fetch_for, execution)
                if not await slot.open(key, execution.setup.value, fetch):
                    return
            if spec.runs_user_code:
                self.loaded = build_spec_key(key.run, key.attempt)
            if slot.engine is not None and slot.engine.fault:
                raise EngineError(slot.engine.fault)
            slot.start(spec)
            self._served.add(execution)


def _build_key(execution: Execution, changes: int) -> EngineKey:
    spec = execution.spec
    is_of_one_run = reads_sources(spec) or has_patterns(spec) or spec.runs_user_code
    return EngineKey(spec, execution.lease.run if is_of_one_run else "", execution.setup.attempt, changes)
