"""The chronicle of runs: each second of an active run, its workers and its coverage, kept and told to Loki.

Nothing here is exact: it is made of progress, which may be lost. What must be exact, ranges and statuses, the
ledger puts into the outbox itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from oku_coordinator.ledger import Ledger
from oku_core.accounting.histogram import coarsen
from oku_core.messaging.progress import Progress
from oku_core.results.event import Event, EventType
from oku_core.results.lines import (
    Fields,
    LineKind,
    build_coverage_lines,
    build_latency_lines,
    build_tick_line,
    build_worker_line,
)
from oku_core.results.tick import Tick

WORKER_LINES_PER_S = 100
COVERAGE_S = 5.0
MOST_ALIKE = 20
"""So many workers may come or go in one second and be named, each in an event of its own."""


@dataclass
class _Account:
    """What a worker has said since its last line."""

    latest: Progress
    seconds: float
    requests: int
    cpu_s: float
    lag_s: float


class HistoryRecorder:
    """See the module; `publishes` says whether lines are wanted."""

    def __init__(self, ledger: Ledger, *, publishes: bool) -> None:
        self._ledger = ledger
        self._publishes = publishes
        self._workers: dict[str, _Account] = {}
        """In the order in which their lines are due."""
        self._coverage_at = 0.0
        self._events: list[Event] = []

    def hear(self, progress: Progress) -> None:
        """Take in what a worker says of its last second."""
        if not self._publishes:
            return
        account = self._workers.get(progress.worker)
        if account is None:
            account = self._workers[progress.worker] = _Account(progress, 0.0, 0, 0.0, 0.0)
        account.latest = progress
        account.seconds += progress.seconds
        account.requests += sum(progress.outcomes)
        account.cpu_s += progress.cpu_share * progress.seconds
        account.lag_s = max(account.lag_s, progress.lag_s)

    def keep_tick(self, tick: Tick, *, is_last: bool = False) -> None:
        """Keep a second of a run, with its lines.

        Args:
            tick: the second.
            is_last: whether the run has come to rest with it.
        """
        # All is read before the transaction that keeps it begins.
        lines = list(self._build_lines(tick, is_last=is_last)) if self._publishes else []
        kept = msgspec.structs.replace(tick.sample, latency=coarsen(tick.sample.latency))
        self._ledger.history.keep_sample(tick.run, kept, lines, merge_events(self._events))
        self._events.clear()
        if is_last:
            self._coverage_at = 0.0

    def note_worker(self, type_: EventType, worker: str, now: float, *, is_active: bool) -> None:
        """A worker has come or gone; kept with the next second if a run is active."""
        if type_ != EventType.WORKER_JOINED:
            self._workers.pop(worker, None)
        if is_active:
            text = f"worker {worker} {_SAID_OF_WORKERS[type_].format('is', 'has', 'it was')}"
            self._events.append(Event(at=now, type=type_, text=text, worker=worker))

    def _build_lines(self, tick: Tick, *, is_last: bool) -> Iterator[tuple[LineKind, Iterable[Fields]]]:
        sample = tick.sample
        yield LineKind.TICK, [build_tick_line(tick)]
        yield LineKind.LATENCY, build_latency_lines(sample.latency)
        yield LineKind.WORKER, self._take_worker_lines(sample.seconds, is_last=is_last)
        if is_last or sample.at - self._coverage_at >= COVERAGE_S:
            self._coverage_at = sample.at
            leases = self._ledger.leases
            slices, again = leases.fetch_slices(tick.run), leases.fetch_taken_back(tick.run)
            yield LineKind.COVERAGE, build_coverage_lines(slices, again, sample.requests_total)

    def _take_worker_lines(self, seconds: float, *, is_last: bool) -> Sequence[Fields]:
        most = len(self._workers) if is_last else max(1, round(WORKER_LINES_PER_S * seconds))
        due = [name for name, account in self._workers.items() if account.seconds][:most]
        lines = []
        for name in due:
            account = self._workers.pop(name)
            self._workers[name] = _Account(account.latest, 0.0, 0, 0.0, 0.0)
            share = account.cpu_s / account.seconds
            lines.append(
                build_worker_line(account.latest, account.seconds, account.requests, share, account.lag_s)
            )
        return lines


def merge_events(events: Sequence[Event]) -> list[Event]:
    """Events of workers of one second, in one event for all of a type where they are many."""
    merged: list[Event] = []
    for type_, said in _SAID_OF_WORKERS.items():
        alike = [event for event in events if event.type == type_]
        if len(alike) > MOST_ALIKE:
            text = f"{len(alike):,} workers {said.format('are', 'have', 'they were')}"
            alike = [Event(at=alike[-1].at, type=type_, text=text)]
        merged += alike
    return merged


_SAID_OF_WORKERS = {
    EventType.WORKER_JOINED: "{0} here",
    EventType.WORKER_LEFT: "{1} left",
    EventType.WORKER_LOST: "{0} dead: {2} not heard for too long, or started anew",
}
