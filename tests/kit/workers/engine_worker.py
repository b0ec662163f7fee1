"""A worker without its broker: the real lease runner and engine on a real event loop, lease by lease."""

import asyncio
import gc
import logging
import time
from typing import Any

from oku_core.accounting.outcome import OUTCOMES
from oku_core.messaging.lease import Lease, Report, find_fault
from oku_core.messaging.order import Stop
from oku_core.messaging.progress import Progress
from oku_core.process.supervision import Supervisor
from oku_core.spec.files import EVERYWHERE
from oku_core.spec.secrets import SpecSources
from oku_core.spec.spec import Spec
from oku_workers.leases.engine_switch import EngineSwitch
from oku_workers.leases.lease_runner import LeaseRunner
from oku_workers.leases.reports import WorkerIdentity
from oku_workers.loop_thread import LoopThread

PATIENCE_S = 30.0


class EngineWorker:
    """The worker's lease runner in the thread of its event loop.

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
        supervisor = supervisor or Supervisor()
        engines = EngineSwitch(supervisor, local_address, SpecSources(files=EVERYWHERE))
        self.runner = LeaseRunner(WorkerIdentity("w1", "b1"), supervisor, engines)
        self._loop_thread.start()
        self._loop_thread.ask(self.runner.start)

    async def run(self, spec: Spec, requests: int, *, start: int = 0) -> Report:
        """Run one lease on `[start, start + requests)` to its end, and check its report."""
        return await self.run_lease(self.build_lease(spec, requests, start=start))

    async def run_lease(self, lease: Lease) -> Report:
        """Run a lease to its end, and check its report."""
        async with asyncio.timeout(PATIENCE_S):
            report = await asyncio.to_thread(
                self._loop_thread.await_result, self.runner.run(lease, f"e-{lease.id}")
            )
        assert report is not None
        assert find_fault(report, lease.start, lease.stop) is None
        self._loop_thread.ask(lambda: self.runner.forget(lease.id))
        return report

    def build_lease(self, spec: Spec, requests: int, *, start: int = 0, run: str = "r1") -> Lease:
        """A new lease."""
        self._leases += 1
        return Lease(
            id=f"l{self._leases}",
            run=run,
            start=start,
            stop=start + requests,
            start_by=time.time() + 60,
            spec=spec,
        )

    def stop(self, grace_s: float, **what: Any) -> None:
        """Order an early end."""
        order = Stop(**({"run": "r1"} | what), grace_s=grace_s)
        self._loop_thread.ask(lambda: self.runner.stop(order))

    def build_progress(self) -> Progress:
        """What it says of the time since the last call."""
        return self._loop_thread.ask(self.runner.build_progress)

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


def count(report: Report) -> dict[str, int]:
    """The outcomes that occurred."""
    return {outcome.value: n for outcome, n in zip(OUTCOMES, report.outcomes, strict=True) if n}
