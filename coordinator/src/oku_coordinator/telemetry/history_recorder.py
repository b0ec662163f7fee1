"""Records each second of an active run and its workers, for reports and for Loki.

These records are approximate, because they are built from progress, which may be lost. For exact data, such
as ranges, statuses and the outcomes of each second, the ledger uses checkpoints and fills the outbox.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import history
from oku_coordinator.ledger.tables import outbox_table
from oku_coordinator.telemetry.coverage_recorder import build_coverage
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import count_sent
from oku_core.messaging.process_ends import HostEnd
from oku_core.messaging.progress import Progress, RunProgress
from oku_core.results.event import Event, EventType
from oku_core.results.lines import (
    Fields,
    LineKind,
    build_latency_lines,
    build_worker_line,
)
from oku_core.results.series import leave_to_series
from oku_core.summary.tick import Tick

WORKER_LINES_PER_S = 100
_NOTHING = RunProgress()
MOST_ALIKE = 20
"""Up to this many workers that join or leave in one second have an event each."""


@dataclass
class _WorkerActivity:
    """The activity of a worker in one run since its last line."""

    latest: Progress
    seconds: float
    requests: int
    cpu_s: float
    lag_s: float


class HistoryRecorder:
    """Stores samples and events in the ledger.

    Args:
        ledger: stores them.
        publishes: whether to write lines for Loki.
    """

    def __init__(self, ledger: Ledger, *, publishes: bool) -> None:
        self._ledger = ledger
        self._publishes = publishes
        self._workers: dict[str, dict[str, _WorkerActivity]] = {}
        """By run and worker, in the order of their due lines."""
        self._events: list[Event] = []

    def record(self, progress: Progress, runs: Iterable[str]) -> None:
        """Record the progress of a worker, for each run that has lines now."""
        if not self._publishes:
            return
        for run in runs:
            done = progress.runs.get(run, _NOTHING)
            workers = self._workers.setdefault(run, {})
            activity = workers.get(progress.worker)
            if activity is None:
                activity = workers[progress.worker] = _WorkerActivity(progress, 0.0, 0, 0.0, 0.0)
            activity.latest = progress
            activity.seconds += progress.seconds
            activity.requests += count_sent(done.outcomes)
            activity.cpu_s += progress.cpu_share * progress.seconds
            activity.lag_s = max(activity.lag_s, done.lag_s)

    def keep_tick(self, tick: Tick, *, settled_to: float = -math.inf, is_last: bool = False) -> None:
        """Store the sample of a tick, and write its lines.

        The line of the tick itself waits until its second is settled.

        Args:
            tick: a tick of an active run, or of one that has just come to rest.
            settled_to: the time up to which the checkpoints of all workers are in the ledger.
            is_last: whether the run has come to rest, so that everything is settled.
        """
        # All is read before the writing transaction starts.
        lines = list(self._build_lines(tick, is_last=is_last)) if self._publishes else []
        kept = leave_to_series(tick.sample)
        with self._ledger.change() as t:
            history.keep_second(t, tick.run, kept, tick.state, math.inf if is_last else settled_to)
            for kind, fields in lines:
                outbox_table.put(t, tick.run, kind, kept.at, fields)
            history.keep_events(t, tick.run, merge_events(self._events))
        self._events.clear()

    def forget(self, run: str) -> None:
        """Forget a run that has no more lines."""
        self._workers.pop(run, None)

    def record_worker(self, type_: EventType, worker: str, now: float, *, is_active: bool) -> None:
        """Record that a worker joined or is gone; stored with the next sample if a run is active."""
        if type_ != EventType.WORKER_JOINED:
            for workers in self._workers.values():
                workers.pop(worker, None)
        if is_active:
            text = f"worker {worker} {_WORKER_TEXTS[type_][0]}"
            self._events.append(Event(at=now, type=type_, text=text, worker=worker))

    def record_host_end(self, worker: str, end: HostEnd, now: float) -> None:
        """Record an unexpected end of a user code process of the active run; stored with the next sample."""
        what = _WORKER_TEXTS[EventType.HOST_ENDED][0]
        text = f"worker {worker} {what}: {end.text}; running iterations: {end.requests:,}"
        self._events.append(
            Event(
                at=now,
                type=EventType.HOST_ENDED,
                text=text,
                worker=worker,
                requests=end.requests,
                reason=end.reason,
            )
        )

    def _build_lines(self, tick: Tick, *, is_last: bool) -> Iterator[tuple[LineKind, Iterable[Fields]]]:
        sample = tick.sample
        yield LineKind.LATENCY, build_latency_lines(sample.histogram(Time.LATENCY))
        yield LineKind.WORKER, self._pop_worker_lines(tick.run, sample.seconds, is_last=is_last)
        if is_last:
            yield LineKind.COVERAGE, build_coverage(self._ledger, tick.run)

    def _pop_worker_lines(self, run: str, seconds: float, *, is_last: bool) -> Sequence[Fields]:
        workers = self._workers.get(run, {})
        most = len(workers) if is_last else max(1, round(WORKER_LINES_PER_S * seconds))
        due = [name for name, activity in workers.items() if activity.seconds][:most]
        lines = []
        for name in due:
            done = workers.pop(name)
            workers[name] = _WorkerActivity(done.latest, 0.0, 0, 0.0, 0.0)
            share = done.cpu_s / done.seconds
            lines.append(build_worker_line(run, done.latest, done.seconds, done.requests, share, done.lag_s))
        return lines


def merge_events(events: Sequence[Event]) -> list[Event]:
    """Merge the events of one second; many of one type become one event."""
    merged: list[Event] = []
    for type_, (_, text_of_many) in _WORKER_TEXTS.items():
        alike = [event for event in events if event.type == type_]
        if len(alike) > MOST_ALIKE:
            text = f"{len(alike):,} workers {text_of_many}"
            reasons = {event.reason for event in alike}
            reason = reasons.pop() if len(reasons) == 1 else None
            alike = [Event(at=alike[-1].at, type=type_, text=text, reason=reason)]
        merged += alike
    return merged


_WORKER_TEXTS = {
    EventType.WORKER_JOINED: ("joined", "joined"),
    EventType.WORKER_LEFT: ("left", "left"),
    EventType.WORKER_LOST: (
        "is dead: it was silent for too long, or was restarted",
        "are dead: they were silent for too long, or were restarted",
    ),
    EventType.HOST_ENDED: (
        "lost its process of user code",
        "lost their processes of user code",
    ),
}
"""The verbs for one worker, and for many."""
