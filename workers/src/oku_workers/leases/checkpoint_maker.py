"""Builds one message from the news of all open leases of a worker."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from oku_core.messaging.checkpoint import CheckpointBatch
from oku_workers.executions.open_lease import OpenLease
from oku_workers.leases.run_watch import RunWatch
from oku_workers.meters.worker_meter import WorkerMeter
from oku_workers.runs.engine_slot import EngineSlot
from oku_workers.settings import WorkerIdentity

_FEW_ENDED, _FEW_OF = 1, 10
"""While there is more to take, this many ended leases, or one in this many of all, wait for the next regular
checkpoints: a message for each would add half as many again."""


@dataclass
class CheckpointMaker:
    """Makes messages of checkpoints; belongs to the thread of the event loop.

    Args:
        worker: whose leases they are.
        leases: those in hand, by id.
        slot: knows the requests in flight and the next lease to take from.
        meter: charges the leases for processor time.
        watch: knows how far the worker is with each run.
    """

    worker: WorkerIdentity
    leases: Mapping[str, OpenLease]
    slot: EngineSlot
    meter: WorkerMeter
    watch: RunWatch
    _ended: int = field(default=0, init=False)
    """Leases that have ended since the last message."""

    def count_end(self) -> bool:
        """Count a lease that has ended; returns whether the coordinator may wait for its checkpoint."""
        self._ended += 1
        has_more = self.slot.feed.find_first() is not None
        return not has_more or self._ended > max(_FEW_ENDED, len(self.leases) // _FEW_OF)

    def collect(self, *, is_repeat: bool) -> CheckpointBatch | None:
        """The checkpoints of all leases with news, or also of those not confirmed if it is a repeat; None
        without any.

        A worker that limits keep from going on asks for more, although it has no news.
        """
        self.slot.flush_counts()  # includes requests that end by this, and not those it abandons
        told = [
            lease
            for lease in self.leases.values()
            if (lease.has_news or (is_repeat and not lease.is_confirmed)) and not lease.execution.is_abandoned
        ]
        if not told and self.slot.output.has_news:  # user code may print long before an iteration ends
            told = [lease for lease in self.leases.values() if not lease.execution.is_abandoned][:1]
        starved = self._find_starved()
        if not told and starved is not None:
            starved.is_asked = True
            told = [starved]
        if not told:
            return None
        self._ended = 0
        now, peak_rss_mb = self.meter.clock.now(), self.meter.gauges.peak_rss_mb()
        self.meter.charge_cpu()
        self.meter.sample_runs()
        for lease in told:
            if (
                not lease.is_open
            ):  # perhaps it ended in this turn of the event loop, and this is the first place to see it
                self.meter.record_end(lease)
        in_flight = self.slot.group_in_flight()
        # The limits of the run named here rise; the starved lease may be of a run that has not begun.
        run = starved.run if starved is not None else self.watch.newest
        measured = self.watch.find_meter(run)
        return CheckpointBatch(
            worker=self.worker.name,
            incarnation=self.worker.incarnation,
            run=run,
            taken=measured.taken if measured else 0,
            rate_rps=round(measured.rate_rps, 3) if measured else 0.0,
            told_to=self._find_earlier(now),
            printed=self.slot.output.find(told[-1].execution.lease.run),
            checkpoints=[
                lease.build_checkpoint(now, in_flight.get(lease.execution, ()), peak_rss_mb) for lease in told
            ],
        )

    def on_sent(self, batch: CheckpointBatch) -> None:
        """The broker has a message."""
        for checkpoint in batch.checkpoints:
            if (lease := self.leases.get(checkpoint.lease)) is not None:
                lease.on_sent(checkpoint.sequence)

    def _find_earlier(self, now: float) -> float:
        """The time of this machine's clock, or the coordinator's if that is behind: seconds are of both."""
        clock = self.slot.timing.coordinator_clock
        return min(now, clock.now()) if clock.is_known else now

    def _find_starved(self) -> OpenLease | None:
        """A lease that its limit keeps from going on while nothing else can be taken."""
        starved = self.slot.feed.find_starved()
        return self.leases.get(starved.lease.id) if starved is not None else None
