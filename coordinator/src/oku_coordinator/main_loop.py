"""What the coordinator does, round by round: end runs, judge who lives, take lost leases back, deal new ones.

A round begins when something has changed, and twice a second. All leases and workers are swept about once a
second: checkpoints make a round begin at once, but no sweep, since its cost grows with workers and leases.

A coordinator that stalled, or could not hear its workers, blames nobody for a silence.
"""

import asyncio
import logging
import math
import time
from dataclasses import dataclass, field

from oku_coordinator.active_run import ActiveRuns
from oku_coordinator.broker.inbound import Inbound
from oku_coordinator.clock.clock_store import ClockStore
from oku_coordinator.leasing.pace import choose_checkpoint_s
from oku_coordinator.leasing.void_work import VoidWork
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import history
from oku_coordinator.ledger.storage.records import BreachError, RunRecord
from oku_coordinator.ledger.tables import lease_table, outbox_table, run_table
from oku_coordinator.loop_signals import LoopSignals
from oku_coordinator.runs.followers import Followers
from oku_coordinator.telemetry.publisher import Publisher
from oku_coordinator.ticker import Ticker
from oku_coordinator.watches.end_watch import EndWatch
from oku_coordinator.watches.worker_watch import WorkerWatch
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.intervals import IntervalAnnouncer
from oku_coordinator.workers.liveness import Roster
from oku_coordinator.workers.renewal import Renewal
from oku_core.accounting.run_state import RunState
from oku_core.process.clock import Clock, SteadyClock
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
        active_runs: the runs that have their turn.
        void_work: calls off what workers hold and must not.
        ticker: makes ticks of the runs that have their turn.
        worker_watch: cancels runs that have had no worker for too long.
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
    active_runs: ActiveRuns
    void_work: VoidWork
    ticker: Ticker
    worker_watch: WorkerWatch
    end_watch: EndWatch
    interval_announcer: IntervalAnnouncer
    renewal: Renewal
    followers: Followers
    publisher: Publisher | None
    monotonic: Clock = time.monotonic
    cpu_clock: Clock = time.thread_time
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
        with self.ledger.read() as t:
            run = run_table.fetch_current_run(t)
        if run is not None and run.is_active:
            text = "a coordinator has started and finds the run active"
            event = Event(at=self.clock.now(), type=EventType.COORDINATOR_STARTED, text=text)
            with self.ledger.change() as t:
                history.keep_events(t, run.run, [event])

    def reset_timers(self, now: float) -> None:
        """Begin the time of all workers, leases and turns anew: nobody could have been heard."""
        self.roster.reset_timers(now)
        self.worker_watch.reset_timers(now)
        for active in self.active_runs:
            active.reset_timers(now)

    async def step(self, now: float) -> None:
        """One round, at `now` in monotonic seconds."""
        if now >= self._next_sweep or self.signals.is_sweep_due:
            self.signals.is_sweep_due = False
            self._next_sweep, began_cpu_s = now + _SWEEP_S, self.cpu_clock()
            await self._sweep(now)
            self._next_sweep = max(self._next_sweep, now + (self.cpu_clock() - began_cpu_s) / _SWEEP_SHARE)
        run = await self.active_runs.advance(now, self.clock.now())
        if run is not None and run.state is RunState.PENDING:
            self.active_runs.open(run).confinement.check(run)  # it may be over before the next sweep
        if self.active_runs.has_more:
            self.signals.wake()
        self.renewal.renew_used(run.run if run else "", now)
        await self.end_runs(run)

    async def end_runs(self, run: RunRecord | None) -> None:
        """End the run that was active before this one, and those that could not be ended yet."""
        if rested := self.ticker.turn_to(run):
            self.end_watch.add(rested)
        self.active_runs.close_others(run.run if run else None, self.ticker.active)
        await self.end_watch.step()

    async def _sweep(self, now: float) -> None:
        self._follow_wall_clock()
        self.ticker.remove_silent(now)
        await self._sweep_leases(now)
        with self.ledger.read() as t:
            run = run_table.fetch_current_run(t)
        self.ticker.record_assigned(self.assignment.settle(run))
        if run is None:
            checkpoint_s = choose_checkpoint_s(len(self.roster))
        else:
            active = self.active_runs.open(run)
            active.check(run, now)
            active.pace.adjust(self.assignment.count(run.run) or len(self.roster), now)
            checkpoint_s = active.pace.checkpoint_s
        self.interval_announcer.announce(
            self.roster.heartbeat_interval_s, checkpoint_s, now, run.run if run else ""
        )
        with self.ledger.read() as t:
            run = run_table.fetch_current_run(t)
        if run is not None:
            active = self.active_runs.open(run)
            active.preparation.send_needs(run, now)  # now that a worker knows where files are
            active.turn.expire(run, now)
        self.worker_watch.cancel_abandoned(now)
        self.end_watch.add_owing()
        if self.publisher is not None:
            await self.publisher.bound()

    async def _sweep_leases(self, now: float) -> None:
        with self.ledger.read() as t:
            run = run_table.fetch_current_run(t)
            held = lease_table.fetch_fleet(t, run.run) if run else {}
        self.void_work.sweep(held)
        suspects = self.roster.mark_suspects(now)
        if run is not None:
            await self.active_runs.open(run).reaper.sweep(run, held, suspects, now)

    def _follow_wall_clock(self) -> None:
        """Record that the wall clock was set; follow it again when nothing is measured and no line waits."""
        step_s = self.clock.find_step()
        if not step_s and not self.clock.wall_ahead_s:
            return
        with self.ledger.read() as t:
            run = run_table.fetch_current_run(t)
        if step_s:
            _log.warning("the clock of this machine was set by %+.1f s", step_s)
            if run is not None and run.is_active:
                with self.ledger.change() as t:
                    history.record_clock_step(t, run.run, step_s, self.clock.now())
        is_idle = run is None and self.ticker.active is None and self.end_watch.is_idle
        if self.clock.wall_ahead_s and is_idle:
            with self.ledger.read() as t:
                size = outbox_table.measure(t)
            if not size.lines:
                self.clock_store.anchor()
