"""Runs the leases of a worker, all of them in one event loop.

A lease comes in by `run`, becomes an execution that the engine is fed with, and leaves as its report. `stop`
ends leases early: no further index is sent, what is in flight may finish within the grace time, and the rest
is given back.
"""

import asyncio
import threading

from oku_core.accounting.histogram import coarsen
from oku_core.messaging.lease import Lease, Report, read_lease_number
from oku_core.messaging.order import Stop
from oku_core.messaging.progress import MOST_TROUBLES, Progress
from oku_core.process.memory import measure_rss_mb
from oku_core.process.supervision import Supervisor
from oku_workers.executions.execution import Execution
from oku_workers.leases.engine_switch import EngineSwitch
from oku_workers.leases.reports import WorkerIdentity, build_report
from oku_workers.leases.worker_meter import WorkerMeter


class LeaseRunner:
    """Has the leases that are under way; all but `fill_slot` belongs to the thread of the event loop.

    Args:
        worker: whose leases they are.
        supervisor: knows the troubles of this process.
        engines: sends the requests.
        meter: measures meanwhile.
    """

    def __init__(
        self,
        worker: WorkerIdentity,
        supervisor: Supervisor,
        engines: EngineSwitch,
        meter: WorkerMeter | None = None,
    ) -> None:
        self._worker = worker
        self._supervisor = supervisor
        self._engines = engines
        self._meter = meter or WorkerMeter()
        self._executions: dict[str, Execution] = {}
        self._progress_count = 0
        self.is_stopping = False
        self._is_leaving = threading.Event()
        self.refused: set[str] = set()
        """Leases that were refused some seconds ago, and still fill a slot."""

    def start(self) -> None:
        """Begin to measure."""
        self._meter.start()

    @property
    def lease_ids(self) -> list[str]:
        """The leases under way, those included whose report has not reached the broker."""
        return list(self._executions)

    async def run(self, lease: Lease, execution_id: str) -> Report | None:
        """Send the requests of a lease; None when it is under way already.

        The lease counts as under way until `forget`.

        Raises:
            EngineError: its spec cannot be carried out here; it is not under way any more.
        """
        if lease.id in self._executions:
            return None
        finished = asyncio.get_running_loop().create_future()
        execution = self._executions[lease.id] = Execution(lease, finished, self._meter.clock.now)
        self._meter.add(execution)
        if self.is_stopping:
            execution.withdraw()
        try:
            await self._engines.serve(execution)
        except BaseException:
            # The coordinator misses the lease then, and gives it to another worker.
            self.forget(lease.id)
            raise
        self._meter.settle(execution)
        return build_report(self._worker, execution, execution_id)

    def forget(self, lease: str) -> None:
        """The report of a lease has reached the broker."""
        execution = self._executions.pop(lease, None)
        if execution is not None:
            self._meter.forget(execution)

    def fill_slot(self, lease: str, seconds: float) -> None:
        """Block with a lease that was refused, until the worker is about to leave; for Celery's threads."""
        self.refused.add(lease)
        self._is_leaving.wait(seconds)
        self.refused.discard(lease)

    def stop(self, order: Stop) -> None:
        """End leases early, as ordered."""
        self._stop_executions(
            [each for each in self._executions.values() if _is_meant(each.lease, order)], order.grace_s
        )

    def stop_all(self, grace_s: float) -> None:
        """End every lease early, also those that come from now on."""
        self.is_stopping = True
        self._is_leaving.set()
        self._stop_executions(list(self._executions.values()), grace_s)

    def _stop_executions(self, executions: list[Execution], grace_s: float) -> None:
        stopped = [execution for execution in executions if not execution.finished.done()]
        for execution in stopped:
            self._engines.withdraw(execution)
        if stopped:
            asyncio.get_running_loop().call_later(grace_s, self._cut_off, stopped)

    def _cut_off(self, executions: list[Execution]) -> None:
        for execution in executions:
            self._engines.cut_off(execution)

    def build_progress(self, *, coarse: bool = False) -> Progress:
        """What happened since the last call of this; coarse latencies make a shorter message."""
        delta, lag_s = self._meter.take_progress()
        self._progress_count += 1
        return Progress(
            worker=self._worker.name,
            incarnation=self._worker.incarnation,
            at=self._meter.clock.now(),
            sequence=self._progress_count,
            seconds=max(round(delta.seconds, 3), 0.001),
            leases={lease: list(execution.outcomes) for lease, execution in self._executions.items()},
            in_flight=self._engines.in_flight,
            outcomes=delta.outcomes,
            bytes_received=delta.bytes_received,
            latency=coarsen(delta.latency) if coarse else delta.latency,
            lag_s=round(lag_s, 4),
            cpu_share=round(delta.cpu_share, 3),
            rss_mb=round(measure_rss_mb(), 1),
            stopping=self.is_stopping,
            troubles=self._supervisor.troubles[:MOST_TROUBLES],
        )

    async def close(self) -> None:
        """End every lease at once and close every connection."""
        self.stop_all(0)
        self._meter.stop()
        await self._engines.close()


def _is_meant(lease: Lease, order: Stop) -> bool:
    if lease.id in order.leases:
        return True
    return lease.run == order.run and read_lease_number(lease.id) <= order.up_to
