"""What is heard of the workers, and the ticks that are made of it, one a second."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.records import BreachError, RunRecord
from oku_coordinator.runs.runs import Runs
from oku_coordinator.telemetry.history_recorder import HistoryRecorder
from oku_coordinator.telemetry.metrics import Metrics
from oku_coordinator.telemetry.tick_maker import TickMaker
from oku_coordinator.workers.liveness import Roster, WorkerState
from oku_coordinator.workers.replay_guard import ReplayGuard
from oku_core.accounting.run_state import ACTIVE_STATES
from oku_core.messaging.progress import Progress
from oku_core.process.supervision import Health
from oku_core.results.event import EventType
from oku_core.results.tick import Tick

_log = logging.getLogger(__name__)

_LATE_S = 0.25
"""A tick may be so late, and the one after it keeps its time."""


class Ticker:
    """See the module.

    Args:
        ledger: how far runs are.
        roster: who lives.
        runs: those who follow them get the ticks; say what a run waits for.
        chronicle: keeps ticks and what became of workers.
        metrics: show the last tick.
        clock: Unix time.
    """

    def __init__(
        self,
        ledger: Ledger,
        roster: Roster,
        runs: Runs,
        chronicle: HistoryRecorder,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._roster = roster
        self._runs = runs
        self._chronicle = chronicle
        self._metrics = metrics
        self._clock = clock
        self._ticks = TickMaker()
        self._replays = ReplayGuard()
        self._active: str | None = None

    def hear(self, heard: Sequence[Progress]) -> bool:
        """Take in what workers said; whether one of them is new."""
        return sum(map(self._hear, heard)) > 0

    def _hear(self, progress: Progress) -> bool:
        if not self._replays.admits(progress, time.monotonic()):
            return False
        self._metrics.count_progress()
        is_new = not self._roster.is_current(progress.worker, progress.incarnation)
        replaced = self._roster.find_replaced(progress.worker, progress.incarnation)
        self._roster.record(progress, time.monotonic(), self._clock())
        if replaced is not None:
            self._note_gone(replaced)
        if is_new:
            _log.info("worker %s is here", progress.worker, extra={"worker": progress.worker})
            self._note_worker(EventType.WORKER_JOINED, progress.worker)
        self._ticks.add(progress)
        self._chronicle.hear(progress)
        return is_new

    def remove_silent(self, now: float) -> None:
        """Take the workers out that were silent for too long, at `now` in monotonic seconds."""
        for worker in self._roster.remove_silent(now):
            self._ticks.forget_worker(worker.name)
            _log_silent(worker, now)
            self._note_gone(worker)

    def note_turn(self, run: RunRecord | None) -> str | None:
        """Note which run has its turn; the one that was active before, if it is so no more."""
        before, active = self._active, run.run if run and run.state in ACTIVE_STATES else None
        if before is None or before == active:
            self._active = active
            return None
        self._chronicle.keep_tick(self._build_tick(before), is_last=True)
        self._active = active  # not before: a tick that could not be kept is made anew
        self._ticks = TickMaker()
        self._metrics.clear_run()
        return before

    async def beat(self, health: Health) -> None:
        """Make a tick each second, also while others wait for the broker or for delay servers."""
        due = time.monotonic()
        while True:
            await asyncio.sleep(due - time.monotonic())
            due = find_next_due(due, time.monotonic())
            try:
                self.tick()
            except BreachError as error:
                self._runs.announce_breach(error)
            health.note_well()

    def tick(self) -> None:
        """Make one."""
        self._metrics.show_workers(len(self._roster))
        run = self._ledger.runs.fetch_current()
        if run is None or run.state not in ACTIVE_STATES:
            self._ticks = TickMaker()  # what workers say now belongs to no run
        if run is None:
            return
        tick = self._build_tick(run.run)
        self._metrics.show_tick(tick)
        self._runs.publish(tick)
        if run.state in ACTIVE_STATES:
            self._chronicle.keep_tick(tick)
        for waiting in self._runs.followed - {run.run}:
            self._runs.publish(self._build_tick(waiting, TickMaker()))

    def _build_tick(self, run: str, ticks: TickMaker | None = None) -> Tick:
        standing = self._ledger.runs.fetch_standing(run)
        notices = self._runs.build_notices(standing.record)
        return (ticks or self._ticks).build_tick(
            standing, workers=len(self._roster), now=self._clock(), notices=notices
        )

    def _note_gone(self, worker: WorkerState) -> None:
        self._note_worker(
            EventType.WORKER_LEFT if worker.has_nothing_left else EventType.WORKER_LOST, worker.name
        )

    def _note_worker(self, what: EventType, worker: str) -> None:
        self._chronicle.note_worker(what, worker, self._clock(), is_active=self._active is not None)


def find_next_due(due: float, now: float) -> float:
    """When the tick after one that was due at `due` and begins now is due, in the same seconds.

    Each second; after one that came late in a second, too, for one that is short may have nothing to tell, or
    what a worker did in a whole second.
    """
    return due + 1.0 if now - due < _LATE_S else now + 1.0


def _log_silent(worker: WorkerState, now: float) -> None:
    facts = {"worker": worker.name}
    if worker.has_nothing_left:
        _log.info("worker %s has left", worker.name, extra=facts)
    else:
        silent_s = now - worker.heard_at
        _log.warning("worker %s is dead: not heard for %.1f s", worker.name, silent_s, extra=facts)
