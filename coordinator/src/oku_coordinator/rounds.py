"""What the main loop does in a round: end runs, judge who lives, take lost leases back, deal out new ones.

All leases and workers are looked at about once a second. Checkpoints make a round begin at once, but no look:
its cost grows with workers and leases.
"""

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from oku_coordinator.clock.clock_store import ClockStore
from oku_coordinator.leasing.dispatcher import Dispatcher
from oku_coordinator.leasing.pace import Pace
from oku_coordinator.leasing.reaper import Reaper
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import Receipt, RunRecord
from oku_coordinator.runs.circuit_breaker import CircuitBreaker
from oku_coordinator.runs.confinement_watch import ConfinementWatch
from oku_coordinator.runs.end_watch import EndWatch
from oku_coordinator.runs.file_preparation import FilePreparation
from oku_coordinator.runs.queue_watch import QueueWatch
from oku_coordinator.runs.skew_watch import SkewWatch
from oku_coordinator.runs.worker_watch import WorkerWatch
from oku_coordinator.telemetry.publisher import Publisher
from oku_coordinator.telemetry.ticker import Ticker
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.intervals import IntervalAnnouncer
from oku_coordinator.workers.liveness import Roster
from oku_coordinator.workers.renewal import Renewal
from oku_core.accounting.message_verdict import MessageVerdict
from oku_core.accounting.run_state import RunState
from oku_core.messaging.progress import Progress
from oku_core.process.clock import SteadyClock
from oku_core.results.event import Event, EventType

_log = logging.getLogger(__name__)

_LOOK_S = 1.0
_LOOK_SHARE = 0.05
"""Looks take at most this share of the time: with thousands of workers they come less often."""


@dataclass(kw_only=True)
class Rounds:
    """The rounds of one coordinator.

    Args:
        ledger: the truth.
        clock: Unix time that nobody can set.
        clock_store: keeps that clock, and tells it to workers.
        roster: who lives.
        assignment: gives the run that has its turn its workers.
        pace: follows the number of workers.
        ticker: is told what workers say, and which run has its turn.
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
        publisher: takes lines to Loki, if anything does.
        wake: lets the next round begin at once.
        monotonic: monotonic seconds.
        cpu_clock: seconds of processor time of this thread.
    """

    ledger: Ledger
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
    publisher: Publisher | None
    wake: Callable[[], None]
    monotonic: Callable[[], float] = time.monotonic
    cpu_clock: Callable[[], float] = time.thread_time
    _next_look: float = field(default=-math.inf, init=False)

    def note_start(self) -> None:
        """Note in the history of the active run that a coordinator has started."""
        run = self.ledger.runs.fetch_current()
        if run is not None and run.is_active:
            text = "a coordinator has started and finds the run active"
            event = Event(at=self.clock.now(), type=EventType.COORDINATOR_STARTED, text=text)
            self.ledger.history.note(run.run, [event])

    def note_receipts(self, receipts: Sequence[Receipt]) -> None:
        """Checkpoints have been taken in."""
        now = self.monotonic()
        for receipt in receipts:
            batch = receipt.batch
            self.roster.note_taken(batch)
            self.dispatcher.note_news(batch.worker)
            for checkpoint, verdict in zip(batch.checkpoints, receipt.verdicts, strict=True):
                if verdict == MessageVerdict.CLOSED:
                    self.roster.forget_lease(batch.worker, batch.incarnation, checkpoint.lease)
                elif verdict == MessageVerdict.ACCOUNTED:
                    self.reaper.expiry.note_named(checkpoint.lease, now)
        self.ticker.note_receipts(receipts, self.pace.checkpoint_s)
        self.breaker.note_receipts(receipts, now)
        self.wake()

    def note_progress(self, heard: Sequence[Progress]) -> None:
        """Workers have spoken."""
        self.clock_store.note_progress(heard, self.monotonic())
        # Before anything is taken back: they say how far those had come who are gone.
        if self.reaper.records.record(record for progress in heard for record in progress.found):
            self._next_look = -math.inf
            self.wake()
        if any(progress.stopping and not self.roster.is_leaving(progress.worker) for progress in heard):
            self._next_look = -math.inf  # it waits to hear that nothing is on its way to it
            self.wake()
        if self.ticker.record(heard, self.monotonic()):
            self._next_look = -math.inf  # the leases of one that a new one has replaced are lost
            self.interval_announcer.greet()  # it does not know the clock
            for progress in heard:
                self.dispatcher.note_news(progress.worker)
            self.wake()

    def note_connected(self) -> None:
        """What workers say is heard from now on: let those say that they are here who said it unheard."""
        self.interval_announcer.repeat()
        self._next_look = -math.inf
        self.wake()

    def reset_timers(self, now: float) -> None:
        """Begin the time of all workers, leases and turns anew: nobody could have been heard."""
        self.roster.reset_timers(now)
        self.queue_watch.reset_timers(now)
        self.worker_watch.reset_timers(now)
        self.reaper.reset_timers(now)

    async def step(self, now: float) -> None:
        """One round, at `now` in monotonic seconds."""
        if now >= self._next_look:
            self._next_look, began_cpu_s = now + _LOOK_S, self.cpu_clock()
            await self._look(now)
            self._next_look = max(self._next_look, now + (self.cpu_clock() - began_cpu_s) / _LOOK_SHARE)
        run = await self.dispatcher.step(now, self.clock.now())
        if run is not None and run.state is RunState.PENDING:
            self.confinement_watch.look(run)  # it may be over before the next look
        if self.dispatcher.has_more:
            self.wake()
        self.renewal.look(run.run if run else "", now)
        await self.watch_end(run)

    async def watch_end(self, run: RunRecord | None) -> None:
        """End the run that was active before this one, and those that could not be ended yet."""
        if rested := self.ticker.note_turn(run):
            self.end_watch.add(rested)
        await self.end_watch.step()

    async def _look(self, now: float) -> None:
        self._look_at_clock()
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

    def _look_at_clock(self) -> None:
        """Note that the wall clock was set; follow it again when nothing is measured and no line waits."""
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
