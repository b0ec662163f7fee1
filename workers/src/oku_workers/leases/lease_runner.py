"""Runs the leases of a worker, all of them in one event loop.

A lease arrives through `accept` and becomes an execution in the feed of the engine. Checkpoints report it
until the coordinator has confirmed the final one. `control` and `stop` carry out the coordinator's decisions:
how far a lease may go, where it ends, and which checkpoints need not be repeated.
"""

import asyncio
import logging
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache

from oku_core.messaging.codec import LeaseBatchHead
from oku_core.messaging.lease import Lease, LeaseBatch, read_lease_run
from oku_core.messaging.order import Control, Fetch, FilesAddress, Stop
from oku_core.messaging.process_ends import FlightRecord
from oku_core.messaging.progress import Progress
from oku_core.messaging.share import Share
from oku_core.process.supervision import cancel_tasks
from oku_core.schedule.schedule import Schedule
from oku_core.schedule.wave import ActivePeriod
from oku_core.spec.load import build_schedule
from oku_core.spec.spec import Spec
from oku_core.spec.values.file_reference import FileRef
from oku_workers.engines.contract.engine_protocol import EngineError
from oku_workers.executions.execution import Execution
from oku_workers.executions.flight_recording import FlightRecording
from oku_workers.executions.open_lease import OpenLease
from oku_workers.executions.scheduled_execution import ScheduledExecution
from oku_workers.leases.checkpoint_maker import CheckpointMaker
from oku_workers.leases.checkpointer import COALESCE_S, Checkpointer
from oku_workers.leases.hook_runner import HookRunner
from oku_workers.leases.lease_inbox import LeaseInbox, Objection
from oku_workers.leases.lease_stopper import LeaseStopper
from oku_workers.leases.progress_maker import ProgressMaker
from oku_workers.leases.run_log import RunLog
from oku_workers.leases.run_watch import RunWatch
from oku_workers.leases.worker_parts import WorkerParts
from oku_workers.meters.worker_meter import WorkerMeter
from oku_workers.runs.engine_switch import EngineSwitch
from oku_workers.runs.run_pacer import RunPacer

_log = logging.getLogger(__name__)

_MOST_SCHEDULES = 4


class LeaseRunner:
    """Holds the leases of this process; belongs to the thread of the event loop.

    Args:
        parts: supplied by its process.
        engines: sends the requests.
        meter: measures meanwhile.

    Attributes:
        hooks: calls those.
        recorder: as in the parts.
        may_leave: whether the coordinator knows that this worker is about to leave, and has sent it its last
            message.
    """

    def __init__(self, parts: WorkerParts, engines: EngineSwitch, meter: WorkerMeter | None = None) -> None:
        self._worker = worker = parts.worker
        self._process = parts.process
        self._supervisor = parts.supervisor
        self.recorder = parts.recorder
        self._engines = engines
        self._meter = meter or WorkerMeter()
        self.coordinator_clock = engines.slot.timing.coordinator_clock
        self._inbox = LeaseInbox(worker.incarnation, self._meter.clock)
        self.hooks = HookRunner(worker, engines, parts.sink, self._meter.clock, parts.call)
        self._leases: dict[str, OpenLease] = {}
        self._watch = RunWatch(engines.slot)
        self._maker = CheckpointMaker(worker, self._leases, engines.slot, self._meter, self._watch)
        spread = zlib.crc32(worker.incarnation.encode()) / 2**32
        self._checkpointer = Checkpointer(parts.sink, self._maker, spread)
        self._stopper = LeaseStopper(self._leases, engines, self._watch, self._checkpointer)
        self._pacer = RunPacer(engines.slot, self._meter.clock, self._stopper)
        self._progress = ProgressMaker(
            worker, parts.supervisor, self._leases, engines, self._meter, self._inbox
        )
        self._run_log = RunLog()
        self._current = ""
        """The run whose turn it is: named by the coordinator, or by the leases received since."""
        self._serving: set[asyncio.Task[None]] = set()
        self._sending: asyncio.Task[None] | None = None
        self.may_leave = False
        engines.attach(self)

    def start(self) -> None:
        """Begin to measure, and to send checkpoints."""
        self._meter.start(self)
        self._sending = self._supervisor.start("checkpoints", self._checkpointer.keep_sending)

    def request_limits(self) -> None:
        """Send a checkpoint now, which asks for higher limits."""
        self._checkpointer.request()

    def find_reserve(self) -> float:
        """How many indices bridge the absence of a coordinator."""
        return self._watch.find_reserve()

    def on_kept(self) -> None:
        """A lease has come to its end and is kept open: the coordinator decides whether it is the last."""
        self._checkpointer.request(COALESCE_S)

    def on_loaded(self) -> None:
        """User code has been loaded ahead, or could not be: the run may begin."""
        self._process.send_progress()

    def sample_runs(self, now: float, leases: Mapping[Execution, OpenLease]) -> None:
        """Follow the clock, and sample the runs of the leases in hand; `now` is in monotonic seconds."""
        self._engines.slot.feed.refresh()
        self._pacer.follow_clock()
        self._confirm_share()
        if self._watch.sample(now, leases):
            self._checkpointer.begin_run()

    @property
    def incarnation(self) -> str:
        """The id of this process."""
        return self._worker.incarnation

    @property
    def lease_ids(self) -> list[str]:
        """The leases in hand, those included whose final checkpoint is not confirmed."""
        return list(self._leases)

    @property
    def is_stopping(self) -> bool:
        """Whether it takes no more leases."""
        return self._inbox.is_leaving

    @property
    def has_sent_all(self) -> bool:
        """Whether the broker has the newest checkpoint of every lease."""
        return not any(lease.has_news for lease in self._leases.values())

    def accept(self, batch: LeaseBatch) -> None:
        """Begin with leases; those that were here before are passed over."""
        self._checkpointer.on_heard()
        arrivals = self._inbox.accept(batch)
        if arrivals:
            self._engines.sources.add_tickets(batch.tickets)
            if batch.share is not None:
                self._share(batch.share)
            self._pacer.start_run(batch.run, arrivals[0].spec, batch.period)
        for lease, spec, objection, setup in arrivals:
            if lease.id in self._leases:
                continue
            try:
                execution = self._build_execution(lease, spec, batch.period)
                execution.setup = setup
            except ValueError as error:
                _log.error("lease %s is dropped: %s", lease.id, error, extra=_build_context(lease))
                continue
            if reason := objection or self._find_objection(batch.run):
                _log.info("lease %s is given back: %s", lease.id, reason, extra=_build_context(lease))
                self._decline(execution)
            else:
                self._begin(OpenLease(execution))

    def _share(self, share: Share) -> None:
        self._pacer.share(share)
        self._confirm_share()

    def _confirm_share(self) -> None:
        """Confirm new divisions at once: other workers wait for it to use more."""
        if self._pacer.settle():
            self._process.send_progress()

    def _find_objection(self, run: str) -> Objection | None:
        if not self._engines.is_fresh_for(run):
            self._process.renew()
            return Objection.USED
        return Objection.OVER if self._pacer.is_over(run) else None

    def refuse(self, head: LeaseBatchHead, reason: str) -> None:
        """Give back leases that can't be read, for a reason that their run's owner can understand."""
        for lease in head.leases if head.incarnation == self._worker.incarnation else ():
            if lease.id not in self._leases and self._inbox.refuse_unknown(lease.id):
                self._decline(self._build_unknown(lease.id, head.run), reason)

    def control(self, control: Control) -> None:
        """Do what the coordinator has decided about single leases."""
        if control.incarnation != self._worker.incarnation:
            return
        self._checkpointer.on_answer(control.confirmed, control.ends)
        if control.share is not None:
            self._share(control.share)
        self.may_leave |= control.may_leave
        if control.renew:
            self._process.renew()
        for lease_id, sequence in control.confirmed.items():
            if (lease := self._leases.get(lease_id)) is not None:
                lease.confirm(sequence)
                if lease.is_forgettable:
                    self._inbox.record_end(lease_id)
                    self._forget(lease)
        self._log_runs()
        if all(lease.is_confirmed for lease in self._leases.values()):
            self._checkpointer.on_all_confirmed()
        known = self._leases
        raised = {known[each].execution: limit for each, limit in control.limits.items() if each in known}
        if raised:
            self._engines.slot.feed.raise_limits(raised)
        for lease_id, end in control.ends.items():
            self._shorten(lease_id, end)

    def stop(self, order: Stop) -> None:
        """End the leases of a run early, as ordered: at once, or at a time."""
        self._checkpointer.on_heard()
        self._inbox.stop(order)
        wait_s = 0.0 if order.at is None else order.at - self._pacer.read_now()
        self._stopper.stop(order, wait_s)

    def stop_all(self, grace_s: float) -> None:
        """End every lease early, also those that come from now on."""
        self._inbox.is_leaving = True
        self.hooks.drop_all()
        # The last checkpoints must reach the broker, even if the coordinator is away.
        self._checkpointer.on_heard(begins_anew=True)
        self._stopper.stop_all(grace_s)

    def fetch(self, order: Fetch) -> None:
        """Fetch the files of a run, and load its user code, before its first lease."""
        if order.incarnation != self.incarnation:
            return
        self._engines.sources.add_tickets(order.tickets)
        self._engines.sources.prepare([FileRef(file) for file in order.files])
        if order.code is not None and not self.is_stopping and self._engines.is_fresh_for(order.run):
            self._engines.load_ahead(order.run, order.code.spec, order.code.setup)

    def set_files_address(self, address: FilesAddress) -> None:
        """Set where the coordinator serves the files of runs."""
        self._engines.sources.set_address(address)

    def set_checkpoint_interval(self, interval_s: float) -> None:
        """Set the interval between regular checkpoints."""
        self._checkpointer.on_heard()
        self._checkpointer.set_interval(interval_s)

    def on_heard(self) -> None:
        """A message of the coordinator has arrived that contained nothing new."""
        self._checkpointer.on_heard()

    def set_current_run(self, run: str) -> None:
        """Set which run has its turn; empty without one."""
        self._current = run
        self._log_runs()

    def build_progress(self, *, coarse: bool = False, found: Sequence[FlightRecord] = ()) -> Progress:
        """Build the progress since the last call.

        Args:
            coarse: whether latencies are coarse, which makes a shorter message.
            found: the records of dead processes of this machine.
        """
        return self._progress.build(self.hooks, found, self._pacer.settled, coarse=coarse)

    async def close(self) -> None:
        """End every lease at once and close every connection."""
        self.stop_all(0)
        self._meter.stop()
        self._pacer.close()
        if self._sending is not None:
            self._sending.cancel()
        await self.hooks.close()
        await self._engines.close()
        await cancel_tasks(self._serving)
        await self._engines.sources.close()
        for lease in self._leases.values():
            self._run_log.add(lease.execution)
        self._run_log.close()

    def _log_runs(self) -> None:
        for run in self._run_log.list_others(self._current):
            if not any(lease.run == run for lease in self._leases.values()):
                self._run_log.end(run)

    def _build_execution(self, lease: Lease, spec: Spec, period: ActivePeriod | None = None) -> Execution:
        finished = asyncio.get_running_loop().create_future()
        clock = self._meter.clock.now
        if not spec.is_open:
            return Execution(lease, spec, finished, clock)
        return ScheduledExecution(lease, spec, finished, clock, _find_schedule(spec), period)

    def _build_unknown(self, lease_id: str, run: str) -> Execution:
        return self._build_execution(Lease(id=lease_id, run=run, ranges=[], limit=0), Spec())

    def _begin(self, lease: OpenLease) -> None:
        self._leases[lease.id] = lease
        self._current = lease.run
        if (write := self.recorder.open_slot(lease.id)) is not None:
            lease.execution.recording = FlightRecording(write)
        self._meter.add(lease)
        serving = asyncio.get_running_loop().create_task(self._serve(lease))
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)

    async def _serve(self, lease: OpenLease) -> None:
        try:
            await self._engines.serve(lease.execution)
        except EngineError as error:
            context = _build_context(lease.execution.lease)
            _log.error("lease %s cannot be carried out here: %s", lease.id, error, extra=context)
            lease.refusal = str(error)
            self._refuse(lease.run, lease.refusal)
        except Exception as error:  # noqa: BLE001  # it is logged
            # The counts of the lease are unknown; the coordinator misses it and takes it back.
            context = _build_context(lease.execution.lease)
            _log.exception("lease %s failed: %s: %s", lease.id, type(error).__name__, error, extra=context)
            error.__traceback__ = None  # its frames refer to the lease, and the lease to the error
            self._inbox.record_loss(lease.id)
            self._forget(lease)
            return
        self._meter.record_end(lease)
        if self._maker.count_end():
            self._checkpointer.request(COALESCE_S)

    def _refuse(self, run: str, reason: str) -> None:
        """Give back all leases of a run that have not begun: they would meet the same error."""
        for lease in self._leases.values():
            if lease.run == run and lease.is_open and not lease.execution.taken:
                lease.refusal = reason
                self._engines.drain(lease.execution)

    def _decline(self, execution: Execution, refusal: str = "") -> None:
        """Send a final checkpoint: nothing of the lease was or will be taken."""
        execution.shorten(0)
        lease = self._leases[execution.lease.id] = OpenLease(execution)
        lease.refusal = refusal
        self._meter.add(lease)
        self._checkpointer.request(COALESCE_S)

    def _shorten(self, lease_id: str, end: int) -> None:
        lease = self._leases.get(lease_id)
        if lease is None:
            if end <= 0 and self._inbox.refuse_unknown(lease_id):
                self._decline(self._build_unknown(lease_id, read_lease_run(lease_id)))
            return
        execution = lease.execution
        self._engines.end_kept(execution)
        if end < execution.end and execution.untaken:
            lease.is_asked = True
            self._engines.slot.feed.shorten(execution, end)
        if lease.has_news:
            self._checkpointer.request()

    def _forget(self, lease: OpenLease) -> None:
        self._leases.pop(lease.id, None)
        self.recorder.forget(lease.id)
        self._meter.forget(lease)
        self._run_log.add(lease.execution)
        lease.execution.drop_tallies()


@lru_cache(maxsize=_MOST_SCHEDULES)
def _find_schedule(spec: Spec) -> Schedule:
    return build_schedule(spec)


def _build_context(lease: Lease) -> dict[str, str]:
    """What a program can look for in a log."""
    return {"run": lease.run, "lease": lease.id}
