"""Records the progress of workers, and makes a tick each second."""

import asyncio
import contextlib
import logging
import math
from collections.abc import Iterable, Sequence

import msgspec

from oku_coordinator.active_run import ActiveRun, ActiveRuns, Installation
from oku_coordinator.ledger.rules import snapshots
from oku_coordinator.ledger.storage.records import BreachError, RunRecord, UnknownRunError
from oku_coordinator.ledger.tables import run_table
from oku_coordinator.ledger.tables.accounts import account_table
from oku_coordinator.runs.runs import Runs
from oku_coordinator.telemetry.telemetry import Telemetry
from oku_coordinator.telemetry.tick_maker import TargetTicks, TickMaker
from oku_coordinator.workers.liveness import ReplayGuard
from oku_coordinator.workers.worker_state import WorkerState
from oku_core.messaging.progress import Progress
from oku_core.process.supervision import Health
from oku_core.results.event import EventType
from oku_core.summary.tick import TargetTick, Tick

_log = logging.getLogger(__name__)

_LATE_S = 0.25
"""After a tick that is later than this, the next second has none."""


class Ticker:
    """Makes the ticks of runs, publishes them and has them recorded.

    Args:
        installation: the ledger, the workers and their assignment to runs.
        active_runs: the runs with their ticks, thresholds and targets.
        runs: publishes ticks to followers, and has the notices and verdicts of runs.
        telemetry: stores samples and events of workers, and exports the last tick to Prometheus.

    Attributes:
        active: the active run as of the last `switch_to`; its last second is still to be stored.
    """

    def __init__(
        self, installation: Installation, active_runs: ActiveRuns, runs: Runs, telemetry: Telemetry
    ) -> None:
        self.clock = installation.clock
        self.active: str | None = None
        self._ledger = installation.ledger
        self._roster = installation.roster
        self._assignment = installation.assignment
        self._metrics = installation.metrics
        self._active_runs = active_runs
        self._runs = runs
        self._recorder = telemetry.recorder
        self._recent_runs = telemetry.recent_runs
        self._replays = ReplayGuard()

    def record(self, progress: Sequence[Progress], now: float) -> bool:
        """Record the progress of workers, at `now` in monotonic seconds; true if a worker is new."""
        return sum([self._record(each, now) for each in progress]) > 0

    def _record(self, progress: Progress, now: float) -> bool:
        if not self._replays.admits(progress, now):
            return False
        self._metrics.count_progress()
        is_new = not self._roster.is_current(progress.worker, progress.incarnation)
        replaced = self._roster.find_replaced(progress.worker, progress.incarnation)
        for end in self._roster.list_new_host_ends(progress):
            if end.run == self.active:
                self._recorder.record_host_end(progress.worker, end, self.clock())
        self._roster.record(progress, now, self.clock())
        if replaced is not None:
            self._active_runs.forget_process(replaced.incarnation)
            self._record_gone(replaced)
        if is_new:
            _log.info("worker %s joined", progress.worker, extra={"worker": progress.worker})
        if not progress.runs.keys() <= self._active_runs.ticking:
            self._follow_current()  # it may have started since the last tick
        self._active_runs.record_progress(progress, self.clock())
        self._recorder.record(progress, self._active_runs.ticking)
        return is_new

    def record_assigned(self, workers: Iterable[WorkerState]) -> None:
        """Record that these workers belong to the run that has its turn from now on."""
        for worker in workers:
            self._record_worker(EventType.WORKER_JOINED, worker)

    def remove_silent(self, now: float) -> None:
        """Remove workers that were silent for too long, at `now` in monotonic seconds."""
        for worker in self._roster.remove_silent(now):
            self._active_runs.forget_worker(worker)
            _log_silent(worker, now)
            self._record_gone(worker)

    def switch_to(self, run: RunRecord | None) -> str | None:
        """Follow the run that has its turn; returns the previous one if it has come to rest."""
        before, active = self.active, run.run if run and run.is_active else None
        if before is None or before == active:
            self.active = active
            return None
        with contextlib.suppress(UnknownRunError):  # it may have been deleted at once
            self._keep_last_ticks(before)
        self.active = active  # not before: a failed tick is made again
        self._forget(before)
        self._recent_runs.record_tick(None)
        return before

    async def run(self, health: Health) -> None:
        """Make a tick each second, even while the main loop waits for the broker or for delay servers."""
        while True:
            await asyncio.sleep(find_tick_pause_s(self.clock()))
            try:
                self.tick()
            except BreachError as error:
                self._runs.followers.announce_breach(error)
            health.record_success()

    def tick(self) -> None:
        """Make a tick of the run that has its turn, and of each other run with followers."""
        self._metrics.show_workers(len(self._roster), self._roster.clock_bound_s)
        with self._ledger.read() as t:
            run = run_table.fetch_current_run(t)
        for other in self._active_runs.ticking - {self.active, run.run if run and run.is_active else None}:
            self._forget(other)
        if run is None:
            return
        active = self._follow(run)
        has_reports = active.ticks is not None and active.ticks.has_news and not self._assignment.has_suspects
        tick = active.thresholds.judge(run, self._build_tick(run.run, self._find_due(run)))
        self._recent_runs.record_tick(tick)
        self._runs.followers.publish(tick)
        if run.is_active:
            self._recorder.keep_tick(tick, settled_to=active.settled.find_end(tick.sample.at))
        for waiting in self._runs.followers.runs - {run.run}:
            with contextlib.suppress(UnknownRunError):  # its followers learn of it
                self._runs.followers.publish(self._build_tick(waiting, self.clock()))
        active.target.record(run, tick, has_reports=has_reports)

    def _keep_last_ticks(self, run: str) -> None:
        """Store the end of a run that has come to rest, and before it the second whose tick was due."""
        now, ticks = self.clock(), self._find_ticks(run)
        due = float(math.floor(now))
        if ticks is not None and ticks.at is not None and ticks.at < due:
            self._recorder.keep_tick(self._build_tick(run, due))
        self._recorder.keep_tick(self._build_tick(run, now), is_last=True)

    def _find_due(self, run: RunRecord) -> float:
        """The due time of the current tick, however late it is.

        So each tick covers whole seconds, like the series.
        """
        now, ticks = self.clock(), self._find_ticks(run.run)
        due, before = float(math.floor(now)), ticks.at if ticks is not None else None
        return now if due <= max(before or 0.0, run.active_since or 0.0) else due

    def _follow_current(self) -> None:
        with self._ledger.read() as t:
            run = run_table.fetch_current_run(t)
        if run is not None:
            self._follow(run)

    def _follow(self, run: RunRecord) -> ActiveRun:
        """Make ticks of the run that has its turn from now on, if it is active."""
        active = self._active_runs.open(run)
        if run.is_active:
            active.start_ticks()
        return active

    def _find_ticks(self, run: str) -> TickMaker | None:
        active = self._active_runs.find(run)
        return None if active is None else active.ticks

    def _forget(self, run: str) -> None:
        """Stop making ticks of a run."""
        if (active := self._active_runs.find(run)) is not None:
            active.ticks = None
        self._recorder.forget(run)

    def _build_tick(self, run: str, at: float) -> Tick:
        active = self._active_runs.find(run)
        targets_of = TargetTicks() if active is None else active.target_ticks
        ticks = (active and active.ticks) or TickMaker(run)
        targets: list[TargetTick] = []
        inner_requests: list[TargetTick] = []
        with self._ledger.read() as t:
            standing = snapshots.fetch_standing(t, run)
            if spec_targets := standing.record.spec.targets:
                targets = targets_of.build(run, spec_targets, account_table.fetch_account(t, run))
            if standing.record.spec.runs_user_code:
                inner_requests = targets_of.build_inner(run, account_table.fetch_account(t, run))
        tick = ticks.build_tick(
            standing,
            workers=len(self._assignment.find_members(run)),
            now=at,
            notices=self._runs.build_notices(standing.record),
            targets=targets,
            inner_requests=inner_requests,
        )
        printed = self._runs.find_printed(run)
        return tick if printed is None else msgspec.structs.replace(tick, printed=printed)

    def _record_gone(self, worker: WorkerState) -> None:
        self._record_worker(
            EventType.WORKER_LEFT if worker.has_nothing_left else EventType.WORKER_LOST, worker
        )

    def _record_worker(self, what: EventType, worker: WorkerState) -> None:
        is_meant = self.active is not None and self._assignment.owns(worker.incarnation)
        self._recorder.record_worker(what, worker.name, self.clock(), is_active=is_meant)


def find_tick_pause_s(now: float) -> float:
    """The pause until the next tick, at `now` in Unix seconds.

    Ticks are due at whole seconds, so that each covers one second of the series. A late tick skips the next
    second, which would be too short: it might contain no progress, or the progress of a whole second.
    """
    pause_s = math.floor(now) + 1 - now
    return pause_s if pause_s > 1 - _LATE_S else pause_s + 1


def _log_silent(worker: WorkerState, now: float) -> None:
    context = {"worker": worker.name}
    if worker.has_nothing_left:
        _log.info("worker %s has left", worker.name, extra=context)
    else:
        silent_s = now - worker.last_seen_at
        _log.warning("worker %s is dead: silent for %.1f s", worker.name, silent_s, extra=context)
