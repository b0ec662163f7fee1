"""A worker without its broker: the real lease runner and engine on a real event loop, lease by lease."""

import asyncio
import gc
import logging
import time
from concurrent.futures import Future
from typing import Any

from tests.kit.workers.checkpoint_book import CheckpointBook, LeaseAccount, count
from tests.kit.workers.whole_share import build_whole_share

from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.lease import Lease, LeaseBatch, build_lease_id
from oku_core.messaging.order import Control, Stop
from oku_core.messaging.progress import Progress
from oku_core.process.supervision import Supervisor
from oku_core.spec.files import EVERYWHERE
from oku_core.spec.secrets import SpecSources
from oku_core.spec.spec import Spec
from oku_workers.leases.lease_runner import LeaseRunner
from oku_workers.leases.worker_parts import WorkerParts
from oku_workers.loop_thread import LoopThread
from oku_workers.runs.engine_slot import EngineSettings
from oku_workers.runs.engine_switch import EngineSwitch
from oku_workers.runs.run_sources import RunSources
from oku_workers.settings import WorkerIdentity

__all__ = ["EngineWorker", "LeaseAccount", "count"]

PATIENCE_S = 30.0
_INCARNATION = "b1"


class EngineWorker:
    """The worker's lease runner in the thread of its event loop; each checkpoint is confirmed at once.

    Args:
        local_address: what it sends from; the system chooses unless given.
        supervisor: of its engines' tasks.
    """

    def __init__(self, local_address: str | None = None, supervisor: Supervisor | None = None) -> None:
        # What was there before need not be searched for leftovers in the end: most tests take less time.
        gc.freeze()
        self._loop_thread = LoopThread()
        self._complaints = _Complaints()
        self._leases = 0
        self._specs: dict[str, Spec] = {}
        self._finals: dict[str, Future[LeaseAccount]] = {}
        self.book = CheckpointBook()
        supervisor = supervisor or Supervisor()
        sources, settings = (
            RunSources(SpecSources(files=EVERYWHERE)),
            EngineSettings(local_address=local_address),
        )
        engines = EngineSwitch(supervisor, sources, settings=settings)
        worker = WorkerIdentity("w1", _INCARNATION)
        self.runner = LeaseRunner(WorkerParts(worker=worker, supervisor=supervisor, sink=self), engines)
        self._loop_thread.start()
        self._loop_thread.ask(self.runner.start)

    async def run(self, spec: Spec, requests: int, *, start: int = 0) -> LeaseAccount:
        """Run one lease on `[start, start + requests)` to its end; its account."""
        return await self.run_lease(self.build_lease(spec, requests, start=start))

    async def run_lease(self, lease: Lease) -> LeaseAccount:
        """Run a lease to its end; its account."""
        self.book.open(lease)
        final = self._finals[lease.id] = Future()
        batch = LeaseBatch(
            run=lease.run,
            incarnation=_INCARNATION,
            leases=[lease],
            start_by=time.time() + 60,
            spec=self._specs[lease.id],
            share=build_whole_share(lease.run),
        )
        self._loop_thread.ask(lambda: self.runner.accept(batch))
        async with asyncio.timeout(PATIENCE_S):
            return await asyncio.wrap_future(final)

    def build_lease(self, spec: Spec, requests: int, *, start: int = 0, run: str = "r1") -> Lease:
        """A new lease, all of which may be taken."""
        self._leases += 1
        lease = Lease(
            id=build_lease_id(run, self._leases),
            run=run,
            ranges=[(start, start + requests)] if requests else [],
            limit=requests,
        )
        self._specs[lease.id] = spec
        return lease

    def stop(self, grace_s: float, run: str = "r1") -> None:
        """Order an early end of all leases of a run so far."""
        order = Stop(run=run, up_to=self._leases, grace_s=grace_s)
        self._loop_thread.ask(lambda: self.runner.stop(order))

    def control(self, **what: Any) -> None:
        """Tell it what the coordinator has decided."""
        control = Control(incarnation=_INCARNATION, **what)
        self._loop_thread.ask(lambda: self.runner.control(control))

    def build_progress(self) -> Progress:
        """What it says of the time since the last call."""
        return self._loop_thread.ask(self.runner.build_progress)

    def count_in_flight(self) -> int:
        """How many requests are in flight, as it says."""
        return sum(done.in_flight for done in self.build_progress().runs.values())

    def overlook(self, complaint: str) -> None:
        """Accept errors in the log that say this."""
        self._complaints.overlooked.append(complaint)

    def close_runner(self) -> None:
        """End all leases and close all connections."""
        self._loop_thread.await_result(self.runner.close())

    def close(self) -> None:
        """Close everything; fails if anything was left behind, or an error was logged."""
        self.close_runner()
        # What aiohttp and asyncio have to say about leftovers they say when these are freed.
        self._loop_thread.ask(gc.collect)
        self._loop_thread.end()
        gc.collect()
        gc.unfreeze()
        self._complaints.check()

    async def send(self, batch: CheckpointBatch) -> None:
        """Take what the runner sends, in its loop; whoever waits for a lease learns of what can't be true."""
        try:
            confirmed = self.book.take(batch)
        except Exception as error:
            for checkpoint in batch.checkpoints:
                self._finals[checkpoint.lease].set_exception(error)
            raise
        self.runner.control(Control(incarnation=_INCARNATION, confirmed=confirmed))
        for checkpoint in batch.checkpoints:
            final = self._finals[checkpoint.lease]
            if checkpoint.is_final and not final.done():
                final.set_result(self.book.accounts[checkpoint.lease])


class _Complaints(logging.Handler):
    """Errors that reach nobody but the event loop."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._records: list[str] = []
        self.overlooked: list[str] = []
        logging.getLogger().addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        complaint = self.format(record)
        if not any(text in complaint for text in self.overlooked):
            self._records.append(complaint)

    def check(self) -> None:
        logging.getLogger().removeHandler(self)
        assert self._records == []
