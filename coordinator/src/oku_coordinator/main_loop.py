"""What the coordinator does, round by round: end runs, judge who lives, take lost leases back, deal new ones.

A round begins when something has changed, and twice a second. All leases and workers are swept about once a
second: checkpoints make a round begin at once, but no sweep, since its cost grows with workers and leases.

A coordinator that stalled, or could not hear its workers, blames nobody for a silence.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from oku_coordinator.clock.clock_store import ClockStore
from oku_coordinator.inbound import Inbound
from oku_coordinator.leasing.dispatcher import Dispatcher
from oku_coordinator.leasing.pace import Pace
from oku_coordinator.leasing.reaper import Reaper
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import BreachError, RunRecord
from oku_coordinator.loop_signals import LoopSignals
from oku_coordinator.runs.circuit_breaker import CircuitBreaker
from oku_coordinator.runs.confinement_watch import ConfinementWatch
from oku_coordinator.runs.end_watch import EndWatch
from oku_coordinator.runs.file_preparation import FilePreparation
from oku_coordinator.runs.followers import Followers
from oku_coordinator.runs.queue_watch import QueueWatch
from oku_coordinator.runs.skew_watch import SkewWatch
from oku_coordinator.runs.worker_watch import WorkerWatch
from oku_coordinator.telemetry.publisher import Publisher
from oku_coordinator.telemetry.ticker import Ticker
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.intervals import IntervalAnnouncer
from oku_coordinator.workers.liveness import Roster
from oku_coordinator.workers.renewal import Renewal
from oku_core.accounting.run_state import RunState
from oku_core.process.clock import SteadyClock
from oku_core.process.supervision import Health
from oku_core.results.event import Event, EventType

_log = logging.getLogger(__name__)

_ROUND_S = 0.5
_ROUND_SHARE = 0.2
"""Rounds take at most this share of the time: with thousands of workers they come less often."""
_LONGEST_REST_S = 0.5
_STALL_S = 2.0
_SWEEP_S = 1.0
_SWEEP_SHARE = 0.05
"""The same of sweeps."""


@dataclass(kw_only=True)
class MainLoop:
    """The main loop of one coordinator.

    Args:
        ledger: the truth.
        inbound: says whether workers can be heard.
        signals: begin a round early, and end the loop.
        clock: Unix time that nobody can set.
        clock_store: keeps that clock, and tells it to workers.
        roster: who lives.
        assignment: gives the run that has its turn its workers.
        pace: follows the number of workers.
        ticker: makes ticks of the run that has its turn.
        dispatcher: deals out the run that has its turn.
        reaper: takes lost leases back.
        breaker: ends a run that no worker can go on with.
        queue_watch: takes the turn from a run that cannot begin.
        worker_watch: cancels runs that have had no worker for too long.
        file_preparation: has workers fetch the files of the run that has its turn.
        confinement_watch: notes workers that cannot confine the user code of the run.
        skew_watch: flags runs whose workers do not know the clock well.
        end_watch: keeps the last figures of runs at rest.
        interval_announcer: tells workers how often to speak.
        renewal: has workers replaced that have run user code.
        followers: hear of a run that does not balance; the others go on.
        publisher: takes lines to Loki, if anything does.
        monotonic: monotonic seconds.
        cpu_clock: seconds of processor time of this thread.
    """

    ledger: Ledger
    inbound: Inbound
    signals: LoopSignals
    clock: SteadyClock
    clock_store: ClockStore
    roster: Roster
    assignment: Assignment
    pace: Pace
    ticker: Ticker
    dispatcher: Dispatcher
    reaper: Reaper
    breaker: CircuitBreaker
    queue_watch: QueueWatch
    worker_watch: WorkerWatch
    file_preparation: FilePreparation
    confinement_watch: ConfinementWatch
    skew_watch: SkewWatch
    end_watch: EndWatch
    interval_announcer: IntervalAnnouncer
    renewal: Renewal
    followers: Followers
    publisher: Publisher | None
    monotonic: Callable[[], float] = time.monotonic
    cpu_clock: Callable[[], float] = time.thread_time
    _has_recorded_start: bool = field(default=False, init=False)
    _round_at: float = field(init=False)
    _next_sweep: float = field(default=-math.inf, init=False)

    def __post_init__(self) -> None:
        """Count stalls from now on."""
        self._round_at = self.monotonic()

    async def run(self, health: Health) -> None:
        """Go on until the end; what fails is raised, and the loop can be run again."""
        if not self._has_recorded_start and not self.signals.ending.is_set():
            self.record_start()
            self._has_recorded_start = True
        while not self.signals.ending.is_set():
            now = self.monotonic()
            self.signals.woken.clear()  # what comes from here on is for the next round
            if now - self._round_at > _STALL_S or self.inbound.is_deaf(now, _STALL_S):
                self.reset_timers(now)
            self._round_at, began_cpu_s = now, self.cpu_clock()
            try:
                await self.step(now)
            except BreachError as error:
                self.followers.announce_breach(error)
            health.note_well()
            round_cpu_s = self.cpu_clock() - began_cpu_s
            await asyncio.sleep(min(round_cpu_s / _ROUND_SHARE - round_cpu_s, _LONGEST_REST_S))
            await self.signals.wait(now + _ROUND_S - self.monotonic())

    def record_start(self) -> None:
        """Record in the history of the active run that a coordinator has started."""
        run = self.ledger.runs.fetch_current()
        if run is not None and run.is_active:
            text = "a coordinator has started and finds the run active"
            event = Event(at=self.clock.now(), type=EventType.COORDINATOR_STARTED, text=text)
            self.ledger.history.note(run.run, [event])

    def reset_timers(self, now: float) -> None:
        """Begin the time of all workers, leases and turns anew: nobody could have been heard."""
        self.roster.reset_timers(now)
        self.queue_watch.reset_timers(now)
        self.worker_watch.reset_timers(now)
        self.reaper.reset_timers(now)

    async def step(self, now: float) -> None:
        """One round, at `now` in monotonic seconds."""
        if now >= self._next_sweep or self.signals.is_sweep_due:
            self.signals.is_sweep_due = False
            self._next_sweep, began_cpu_s = now + _SWEEP_S, self.cpu_clock()
            await self._sweep(now)
            self._next_sweep = max(self._next_sweep, now + (self.cpu_clock() - began_cpu_s) / _SWEEP_SHARE)
        run = await self.dispatcher.step(now, self.clock.now())
        if run is not None and run.state is RunState.PENDING:
            self.confinement_watch.look(run)  # it may be over before the next sweep
        if self.dispatcher.has_more:
            self.signals.wake()
        self.renewal.look(run.run if run else "", now)
        await self.end_runs(run)

    async def end_runs(self, run: RunRecord | None) -> None:
        """End the run that was active before this one, and those that could not be ended yet."""
        if rested := self.ticker.note_turn(run):
            self.end_watch.add(rested)
        await self.end_watch.step()

    async def _sweep(self, now: float) -> None:
        self._follow_wall_clock()
        self.ticker.remove_silent(now)
        await self.reaper.look(now)
        run = self.ledger.runs.fetch_current()
        self.ticker.note_assigned(self.assignment.settle(run))
        self.confinement_watch.look(run)
        self.breaker.look(now)
        self.pace.adjust(self.assignment.count(self.assignment.run) or len(self.roster), now)
        self.interval_announcer.step(
            self.roster.heartbeat_interval_s, self.pace.checkpoint_s, now, run.run if run else ""
        )
        self.file_preparation.look(now)  # now that a worker knows where files are
        self.queue_watch.look(now)
        self.worker_watch.look(now)
        self.skew_watch.look()
        self.end_watch.add_owing()
        if self.publisher is not None:
            await self.publisher.bound()

    def _follow_wall_clock(self) -> None:
        """Record that the wall clock was set; follow it again when nothing is measured and no line waits."""
        step_s = self.clock.find_step()
        if not step_s and not self.clock.wall_ahead_s:
            return
        run = self.ledger.runs.fetch_current()
        if step_s:
            _log.warning("the clock of this machine was set by %+.1f s", step_s)
            if run is not None and run.is_active:
                self.ledger.history.note_clock_step(run.run, step_s, self.clock.now())
        is_idle = run is None and self.ticker.active is None and self.end_watch.is_idle
        if self.clock.wall_ahead_s and is_idle and not self.ledger.outbox.measure().lines:
            self.clock_store.anchor()
