"""The coordinator's main loop: a round on every change, at least twice a second.

A round finds dead workers, takes back lost leases, deals new ones and ends runs. All leases and workers are
swept about once a second: checkpoints trigger a round at once, but no sweep, whose cost grows with workers
and leases.

After a stall or an outage of the broker, no worker is blamed for its silence: all timers restart.
"""

import asyncio
import logging
import math
import time

from oku_coordinator.active_run import ActiveRuns, Installation
from oku_coordinator.foundation import Foundation
from oku_coordinator.leasing.pace import choose_checkpoint_s
from oku_coordinator.leasing.void_work import VoidWork
from oku_coordinator.ledger.rules import history
from oku_coordinator.ledger.storage.records import BreachError, RunRecord
from oku_coordinator.ledger.tables import lease_table, outbox_table, run_table
from oku_coordinator.loops.ticker import Ticker
from oku_coordinator.runs.runs import Runs
from oku_coordinator.watches.end_watch import EndWatch
from oku_coordinator.watches.worker_watch import WorkerWatch
from oku_coordinator.workers.repeated_orders import IntervalAnnouncer, Renewal
from oku_core.accounting.run_state import RunState
from oku_core.process.supervision import Health
from oku_core.results.event import Event, EventType

_log = logging.getLogger(__name__)

_ROUND_S = 0.5
_ROUND_SHARE = 0.2
"""Rounds take at most this share of the time: with thousands of workers, they are less frequent."""
_LONGEST_REST_S = 0.5
_STALL_S = 2.0
_SWEEP_S = 1.0
_SWEEP_SHARE = 0.05
"""The same share for sweeps."""


class MainLoop:
    """The main loop of one coordinator.

    Args:
        installation: the parts that all runs share.
        active_runs: the runs that have their turn.
        ticker: makes their ticks.
        interval_announcer: sends workers the intervals of their reports.
        runs: cancels runs and ends them.
        foundation: the link to the workers, the clock, and the lines for Loki.
    """

    def __init__(
        self,
        installation: Installation,
        active_runs: ActiveRuns,
        ticker: Ticker,
        interval_announcer: IntervalAnnouncer,
        runs: Runs,
        foundation: Foundation,
    ) -> None:
        ledger, roster, broker = installation.ledger, installation.roster, installation.broker
        self.interval_announcer = interval_announcer
        self.void_work = VoidWork(ledger=ledger, roster=roster, broker=broker, delivery=installation.delivery)
        self._ledger = ledger
        self._roster = roster
        self._assignment = installation.assignment
        self._signals = installation.signals
        self._active_runs = active_runs
        self._ticker = ticker
        self._followers = runs.followers
        self._worker_watch = WorkerWatch(ledger, runs, installation.readiness)
        self._end_watch = EndWatch(ledger, runs)
        self._renewal = Renewal(roster, broker)
        self._inbound = foundation.inbound
        self._clock = foundation.clock
        self._clock_store = foundation.clock_store
        self._publisher = foundation.telemetry.publisher
        self._has_recorded_start = False
        self._round_at = time.monotonic()
        """When the last round started; stalls count from then."""
        self._next_sweep = -math.inf

    async def run(self, health: Health) -> None:
        """Run until the end is requested; errors are raised, and the loop can be run again."""
        if not self._has_recorded_start and not self._signals.ending.is_set():
            self.record_start()
            self._has_recorded_start = True
        while not self._signals.ending.is_set():
            await self._active_runs.load()  # before the clocks are read, or a run would start in the past
            now = time.monotonic()
            self._signals.woken.clear()  # later signals are for the next round
            if now - self._round_at > _STALL_S or self._inbound.may_miss_messages(now, _STALL_S):
                self.reset_timers(now)
            self._round_at, began_cpu_s = now, time.thread_time()
            try:
                await self.step(now)
            except BreachError as error:
                self._followers.announce_breach(error)
            health.record_success()
            round_cpu_s = time.thread_time() - began_cpu_s
            await asyncio.sleep(min(round_cpu_s / _ROUND_SHARE - round_cpu_s, _LONGEST_REST_S))
            await self._signals.wait(now + _ROUND_S - time.monotonic())

    def record_start(self) -> None:
        """Record in the history of the active run that a coordinator has started."""
        run = self._fetch_current_run()
        if run is not None and run.is_active:
            text = "a coordinator has started while the run is active"
            event = Event(at=self._clock.now(), type=EventType.COORDINATOR_STARTED, text=text)
            with self._ledger.change() as t:
                history.keep_events(t, run.run, [event])

    def reset_timers(self, now: float) -> None:
        """Restart the timers of all workers, leases and turns after an outage of the link to the workers."""
        self._roster.reset_timers(now)
        self._worker_watch.reset_timers(now)
        for active in self._active_runs:
            active.reset_timers(now)

    async def step(self, now: float) -> None:
        """Run one round, at `now` in monotonic seconds."""
        if now >= self._next_sweep or self._signals.is_sweep_due:
            self._signals.is_sweep_due = False
            self._next_sweep, began_cpu_s = now + _SWEEP_S, time.thread_time()
            await self._sweep(now)
            self._next_sweep = max(self._next_sweep, now + (time.thread_time() - began_cpu_s) / _SWEEP_SHARE)
        run = await self._active_runs.advance(now, self._clock.now())
        if run is not None and run.state is RunState.PENDING:
            self._active_runs.open(run).confinement.check(run)  # it may be over before the next sweep
        if self._active_runs.has_more:
            self._signals.wake()
        self._renewal.renew_used(run.run if run else "", now)
        await self.end_runs(run)

    async def end_runs(self, run: RunRecord | None) -> None:
        """End the run that was active before this one, and others whose end is still due."""
        if rested := self._ticker.switch_to(run):
            self._end_watch.add(rested)
        self._active_runs.close_others(run.run if run else None, self._ticker.active)
        await self._end_watch.step()

    async def _sweep(self, now: float) -> None:
        """Check all workers and leases.

        Each step reads the run that has its turn again: the previous step may have ended that run.
        """
        self._follow_wall_clock()
        self._ticker.remove_silent(now)
        await self._sweep_leases(now)
        self._assign_workers(now)
        self._prepare_run(now)
        self._worker_watch.cancel_abandoned(now)
        self._end_watch.add_due_summaries()
        if self._publisher is not None:
            await self._publisher.bound()

    async def _sweep_leases(self, now: float) -> None:
        with self._ledger.read() as t:
            run = run_table.fetch_current_run(t)
            held = lease_table.fetch_fleet(t, run.run) if run else {}
        self.void_work.sweep(held)
        suspects = self._roster.mark_suspects(now)
        if run is not None:
            await self._active_runs.open(run).reaper.sweep(run, held, suspects, now)

    def _assign_workers(self, now: float) -> None:
        """Assign workers to the run, check both, and announce how often workers report."""
        run = self._fetch_current_run()
        self._ticker.record_assigned(self._assignment.settle(run))
        if run is None:
            checkpoint_s = choose_checkpoint_s(len(self._roster))
        else:
            active = self._active_runs.open(run)
            active.check(run, now)
            active.pace.adjust(self._assignment.count(run.run) or len(self._roster), now)
            checkpoint_s = active.pace.checkpoint_s
        self.interval_announcer.announce(
            self._roster.heartbeat_interval_s, checkpoint_s, now, run.run if run else ""
        )

    def _prepare_run(self, now: float) -> None:
        """Send workers the files address and the requirements of the run; end its turn in time."""
        if (run := self._fetch_current_run()) is not None:
            active = self._active_runs.open(run)
            active.preparation.send_needs(run, now)
            active.turn.expire(run, now)

    def _fetch_current_run(self) -> RunRecord | None:
        with self._ledger.read() as t:
            return run_table.fetch_current_run(t)

    def _follow_wall_clock(self) -> None:
        """Record changes of the wall clock; follow it again while no run is measured and no line waits."""
        step_s = self._clock.find_step()
        if not step_s and not self._clock.wall_ahead_s:
            return
        run = self._fetch_current_run()
        if step_s:
            _log.warning("the clock of this machine was set by %+.1f s", step_s)
            if run is not None and run.is_active:
                with self._ledger.change() as t:
                    history.record_clock_step(t, run.run, step_s, self._clock.now())
        is_idle = run is None and self._ticker.active is None and self._end_watch.is_idle
        if self._clock.wall_ahead_s and is_idle:
            with self._ledger.read() as t:
                size = outbox_table.measure(t)
            if not size.lines:
                self._clock_store.anchor()
