"""The active runs, each with its state in memory and the rules that act on it.

The `Installation` (ledger, workers, broker, files) outlives every run. An `ActiveRun` is created when a run
gets its turn and dropped when the run loses it or comes to rest, so no state leaks from one run into the
next. A coordinator that restarts in the middle of a run creates it again.
"""

import asyncio
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from oku_coordinator.broker.sender import Broker
from oku_coordinator.event_loop import LoopSignals
from oku_coordinator.files.file_access import FileAccess
from oku_coordinator.leasing.delivery import Delivery
from oku_coordinator.leasing.expiry import ExpiryRule
from oku_coordinator.leasing.hook_gate import HookGate
from oku_coordinator.leasing.lease_end import LeaseEnd
from oku_coordinator.leasing.pace import Pace
from oku_coordinator.leasing.ranges.range_dealer import RangeDealer
from oku_coordinator.leasing.reaper import Reaper
from oku_coordinator.leasing.run_clock import RunClock, TimeLimit
from oku_coordinator.leasing.shares import Shares
from oku_coordinator.leasing.waves.wave_dealer import WaveDealer
from oku_coordinator.ledger import Ledger, batches
from oku_coordinator.ledger.storage.lease_records import Receipt
from oku_coordinator.ledger.storage.records import BreachError, RunRecord
from oku_coordinator.ledger.tables import lease_table, run_table, schedule_table
from oku_coordinator.ledger.tables.accounts import account_table
from oku_coordinator.runs.readiness import Readiness
from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_coordinator.telemetry.settled_seconds import SettledSeconds
from oku_coordinator.telemetry.tick_maker import TargetTicks, TickMaker
from oku_coordinator.watches.circuit_breaker import CircuitBreaker
from oku_coordinator.watches.file_preparation import FilePreparation
from oku_coordinator.watches.target_watch import TargetWatch
from oku_coordinator.watches.threshold_watch import ThresholdWatch
from oku_coordinator.watches.turn import Turn
from oku_coordinator.watches.worker_watch import ConfinementWatch, SkewWatch
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.liveness import Roster
from oku_coordinator.workers.worker_state import FlightRecords, WorkerState
from oku_core.accounting.lease_state import MessageVerdict
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.lease import read_lease_run
from oku_core.messaging.progress import Progress
from oku_core.process.clock import Clock
from oku_core.spec.spec import Spec

_DIVIDE_EVERY_S = 0.2
"""How often it is checked whether a run has other workers."""


@dataclass(frozen=True, kw_only=True)
class Installation:
    """The parts that all runs share. They outlive every run; each `ActiveRun` is built on them."""

    ledger: Ledger
    roster: Roster
    assignment: Assignment
    broker: Broker
    delivery: Delivery
    file_access: FileAccess
    readiness: Readiness
    metrics: Metrics
    signals: LoopSignals
    clock: Clock
    """Unix time."""
    start_within_s: float
    """How long a run waits for its workers, unless its spec sets a limit."""
    records: FlightRecords = field(default_factory=FlightRecords)


class ActiveRun:
    """A run that has its turn."""

    def __init__(self, run: str, shared: Installation) -> None:
        self.run = run
        self._shared = shared
        ledger, assignment = shared.ledger, shared.assignment
        self.turn = Turn(ledger, shared.readiness, shared.start_within_s, shared.clock)
        self._build_leasing(shared)
        self.preparation = FilePreparation(ledger, assignment, shared.broker, shared.file_access)
        self.confinement = ConfinementWatch(ledger, assignment, shared.clock)
        self.skew = SkewWatch(ledger, assignment)
        self.thresholds = ThresholdWatch(ledger, shared.signals, shared.clock)
        self.target = TargetWatch(ledger, shared.readiness.target_notices, shared.signals)
        self.ticks: TickMaker | None = None
        """None until the run is active: earlier progress belongs to no tick."""
        self.target_ticks = TargetTicks()
        self.settled = SettledSeconds(run)
        self._is_load_tried = False
        self._divides_at = -math.inf

    def _build_leasing(self, shared: Installation) -> None:
        ledger, assignment, delivery = shared.ledger, shared.assignment, shared.delivery
        self.pace, self.shares, self.expiry = Pace(), Shares(self.run), ExpiryRule(shared.roster)
        clock = RunClock(ledger=ledger, turn=self.turn)
        self._ender = LeaseEnd(ledger=ledger, delivery=delivery)
        self.ranges = RangeDealer(
            ledger=ledger,
            assignment=assignment,
            delivery=delivery,
            pace=self.pace,
            expiry=self.expiry,
            time_limit=TimeLimit(ledger=ledger, delivery=delivery, clock=clock, ender=self._ender),
            shares=self.shares,
        )
        self.waves = WaveDealer(
            ledger=ledger,
            assignment=assignment,
            delivery=delivery,
            expiry=self.expiry,
            clock=clock,
            shares=self.shares,
        )
        self.hooks = HookGate(
            ledger=ledger,
            roster=shared.roster,
            assignment=assignment,
            broker=shared.broker,
            file_access=shared.file_access,
        )
        self.breaker = CircuitBreaker(ledger, shared.roster, assignment, shared.readiness, shared.clock)
        self.reaper = Reaper(
            ledger=ledger,
            expiry=self.expiry,
            delivery=delivery,
            pace=self.pace,
            metrics=shared.metrics,
            clock=shared.clock,
            breaker=self.breaker,
            records=shared.records,
            shares=self.shares,
        )

    def start_ticks(self) -> None:
        """Make ticks from now on: the run is active."""
        if self.ticks is None:
            self.ticks = TickMaker(self.run)

    async def load(self, run: RunRecord) -> None:
        """Load the account of a run that is about to start, so that the event loop does not wait for it.

        Done once per turn: a broken account would otherwise be read in every round while the run waits for
        workers.
        """
        if self._is_load_due(run):
            self._is_load_tried = True
            await asyncio.to_thread(batches.preload_account, self._shared.ledger, self.run)

    async def advance(self, run: RunRecord, now: float, wall_now: float) -> RunRecord:
        """Perform the next step that the state of the run requires: start, deal, tear down or stop.

        Args:
            run: its record.
            now: monotonic seconds.
            wall_now: Unix time.

        Returns:
            Its record, updated if the run has started.
        """
        self.ranges.has_more = False
        if run.state == RunState.PENDING:
            # It may have got its turn since the round began; the next round loads it.
            begun = None if self._is_load_due(run) else self.turn.start(run, now, wall_now)
            if begun is None:
                return run
            run = begun
        if run.state == RunState.TEARING_DOWN:
            self.hooks.tear_down(run, now, wall_now)
        elif run.state != RunState.RUNNING:
            self._stop(run, now)
        elif self.hooks.is_set_up(run, now, wall_now):
            self._divide(run, now, wall_now)
            if run.spec.is_open:
                self.waves.visit(run, now, wall_now)
            else:
                await self.ranges.visit(run, now, wall_now)
            self._ender.end_kept(run, now)
        return run

    def check(self, run: RunRecord, now: float) -> None:
        """Check whether the run can go on, and whether its workers are in order."""
        self.confinement.check(run)
        self.skew.check(run)
        self.breaker.check(run, now)

    def record_receipt(self, receipt: Receipt, now: float) -> None:
        """Record that the ledger has stored checkpoints of one of its workers."""
        batch = receipt.batch
        self.ranges.schedule_visit(batch.worker)
        for checkpoint, verdict in zip(batch.checkpoints, receipt.verdicts, strict=True):
            if verdict == MessageVerdict.ACCOUNTED:
                self.expiry.record_named(checkpoint.lease, now)
        if batch.checkpoints:
            self.settled.record_checkpoints(batch.worker, self.pace.checkpoint_s, self._shared.clock())
        self.thresholds.settled.record_receipt(receipt)
        self.breaker.record_receipt(receipt, now)

    def record_progress(self, progress: Progress, wall_now: float) -> None:
        """Record progress from a worker, possibly of another run."""
        if self.ticks is not None:
            self.ticks.add(progress)
        self.settled.record_progress(progress, wall_now)
        self.thresholds.settled.record_progress(progress)

    def forget_worker(self, worker: WorkerState) -> None:
        """Forget a worker that is gone."""
        if self.ticks is not None:
            self.ticks.forget_worker(worker.name)
        self.settled.forget_worker(worker.name)
        self.thresholds.settled.forget(worker.incarnation)

    def reset_timers(self, now: float) -> None:
        """Restart the timers of its turn and of its leases after an outage of the broker."""
        self.turn.reset_timers(now)
        self.expiry.reset_timers(now)

    def _is_load_due(self, run: RunRecord) -> bool:
        if self._is_load_tried or run.state != RunState.PENDING or not any(run.outcomes):
            return False
        with self._shared.ledger.read() as t:
            return not account_table.is_in_memory(t, self.run)

    def _divide(self, run: RunRecord, now: float, wall_now: float) -> None:
        """Divide the run among its workers, and send them their shares."""
        assignment, delivery = self._shared.assignment, self._shared.delivery
        if delivery.is_away or (now < self._divides_at and not self.shares.is_awaited):
            return
        self._divides_at = now + _DIVIDE_EVERY_S
        workers = assignment.workers(run.run)
        if run.spec.is_open:  # a worker without the clock does not know when requests are due
            workers = [worker for worker in workers if worker.knows_clock]
        with self._shared.ledger.read() as t:
            held = lease_table.fetch_held(t, run.run, assignment.list_incarnations(run.run))
        holders = [incarnation for incarnation, leases in held.items() if leases]
        takers = self.shares.find_takers(workers)
        delivery.send_controls(self.shares.divide(workers, holders, now, wall_now))
        if self.shares.find_takers(workers) != takers:
            self.ranges.schedule_visits()

    def _stop(self, run: RunRecord, now: float) -> None:
        with self._shared.ledger.read() as t:
            period = schedule_table.fetch_period(t, self.run)
        self._ender.stop(run, now, None if period is None else period.find_end())


class ActiveRuns:
    """The runs that have their turn: at most one today, and the previous one until its end is recorded.

    The event loop changes them; any thread may read them.
    """

    def __init__(self, shared: Installation) -> None:
        self.shared = shared
        self._runs: dict[str, ActiveRun] = {}
        self._no_pace = Pace()

    def __iter__(self) -> Iterator[ActiveRun]:
        """Iterate over the runs."""
        return iter(list(self._runs.values()))

    def find(self, run: str) -> ActiveRun | None:
        """Find a run that has its turn."""
        return self._runs.get(run)

    def find_named(self, batch: CheckpointBatch) -> Sequence[ActiveRun]:
        """Find the runs that a message concerns; by its leases alone if its worker has taken nothing yet."""
        named = dict.fromkeys([batch.run, *(read_lease_run(each.lease) for each in batch.checkpoints)])
        return [active for run in named if (active := self.find(run)) is not None]

    def open(self, run: RunRecord) -> ActiveRun:
        """Return the run that has its turn; create it if it has just got its turn."""
        active = self._runs.get(run.run)
        if active is None:
            active = self._runs[run.run] = ActiveRun(run.run, self.shared)
        return active

    def close_others(self, *kept: str | None) -> None:
        """Drop all runs but these."""
        for run in self._runs.keys() - set(kept):
            del self._runs[run]
            self.shared.readiness.target_notices.show(run, "")

    @property
    def ticking(self) -> set[str]:
        """The runs that have ticks."""
        return {active.run for active in self if active.ticks is not None}

    @property
    def has_more(self) -> bool:
        """Whether more was left to deal than one round deals."""
        return any(active.ranges.has_more for active in self)

    def allow(self, batch: CheckpointBatch, spec: Spec) -> int:
        """How far the sender of these checkpoints may go ahead of them."""
        active = self.find(batch.run)
        return (self._no_pace if active is None else active.pace).allow(batch, spec)

    async def load(self) -> None:
        """Load the account of the run that has its turn, if it is about to start; this may take a second."""
        with suppress(BreachError):  # the round finds the same fault, and reports it
            with self.shared.ledger.read() as t:
                run = run_table.fetch_current_run(t)
            if run is not None:
                await self.open(run).load(run)

    async def advance(self, now: float, wall_now: float) -> RunRecord | None:
        """Advance the run that has its turn and return it; `now` is monotonic, `wall_now` Unix time."""
        ledger, assignment = self.shared.ledger, self.shared.assignment
        with ledger.read() as t:
            run = run_table.fetch_current_run(t)
        if run is None or run.run != assignment.run or run.state == RunState.PENDING:
            assignment.settle(run)
        return None if run is None else await self.open(run).advance(run, now, wall_now)

    def schedule_visit(self, worker: str) -> None:
        """Visit a new worker in the next round."""
        for active in self:
            active.ranges.schedule_visit(worker)

    def record_progress(self, progress: Progress, wall_now: float) -> None:
        """Record progress from a worker."""
        for active in self:
            active.record_progress(progress, wall_now)

    def forget_worker(self, worker: WorkerState) -> None:
        """Forget a worker that is gone."""
        for active in self:
            active.forget_worker(worker)

    def forget_process(self, incarnation: str) -> None:
        """Forget a process that another one of the same worker has replaced."""
        for active in self:
            active.thresholds.settled.forget(incarnation)
