"""Makes the progress of a worker: what its leases have done since the last one, and its own figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from oku_core.messaging.process_ends import FlightRecord
from oku_core.messaging.progress import MOST_TROUBLES, Progress
from oku_core.messaging.share import Settled
from oku_core.process.supervision import Supervisor
from oku_workers.executions.open_lease import OpenLease
from oku_workers.leases.hook_runner import HookRunner
from oku_workers.leases.lease_inbox import LeaseInbox
from oku_workers.meters.worker_meter import WorkerMeter
from oku_workers.runs.engine_switch import EngineSwitch
from oku_workers.settings import WorkerIdentity


@dataclass
class ProgressMaker:
    """Makes messages of progress; belongs to the thread of the event loop.

    Args:
        worker: whose leases they are.
        supervisor: knows the troubles of this process.
        leases: those in hand, by id.
        engines: carry them out.
        meter: measures meanwhile.
        inbox: knows the specs that have come.
    """

    worker: WorkerIdentity
    supervisor: Supervisor
    leases: Mapping[str, OpenLease]
    engines: EngineSwitch
    meter: WorkerMeter
    inbox: LeaseInbox
    _count: int = field(default=0, init=False)

    def build(
        self, hooks: HookRunner, found: Sequence[FlightRecord], settled: list[Settled], *, coarse: bool
    ) -> Progress:
        """Build the progress since the last call.

        Args:
            hooks: those in hand.
            found: the records of dead processes of this machine.
            settled: the divisions of runs that this worker has settled on.
            coarse: whether latencies are coarse, which makes a shorter message.
        """
        engines, slot = self.engines, self.engines.slot
        delta = self.meter.take_progress(slot.in_flight)
        self._count += 1
        clock = slot.timing.coordinator_clock
        return Progress(
            worker=self.worker.name,
            incarnation=self.worker.incarnation,
            at=self.meter.clock.now(),
            sequence=self._count,
            seconds=max(round(delta.seconds, 3), 0.001),
            leases={lease.id: lease.build_progress() for lease in self.leases.values()},
            specs=self.inbox.specs,
            files=engines.sources.settled,
            loaded=engines.loaded,
            code_run=slot.code_run,
            settled=settled,
            hooks=hooks.attempts,
            runs={run: done.coarsen() for run, done in delta.runs.items()} if coarse else delta.runs,
            coordinator_at=clock.now() if clock.is_known else None,
            clock_bound_s=clock.bound_s,
            cpu_share=round(delta.cpu_share, 3),
            rss_mb=round(self.meter.gauges.rss_mb(), 1),
            memory_bytes=slot.settings.memory_bytes,
            stopping=self.inbox.is_leaving,
            troubles=self.supervisor.troubles[:MOST_TROUBLES],
            found=list(found),
            host_ends=slot.host_ends.list_latest(),
            is_unconfinable=slot.settings.isolation.is_unconfinable,
        )
