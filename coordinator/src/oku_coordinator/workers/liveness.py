"""The roster of live workers, judged by their progress events alone.

Pure state with the clock passed in (monotonic seconds). A worker's timer starts when it is first named, by an
event or a lease in the ledger; after a silence longer than the worker timeout it is dead. A worker that has
announced its end and had no lease then has left after a few missed heartbeats. Rounds in which the
coordinator itself stalled, or had no connection to the broker, do not count. Long before it is dead, a silent
worker is suspect, and gets no more work until it reports.

Many workers report less often than once a second, and the timeout is longer: at least two and a half
heartbeat intervals, the last or the intended one of the worker.
"""

import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import TypeVar

from oku_coordinator.workers.worker_state import WorkerState
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.hook import HookAttempt
from oku_core.messaging.process_ends import HostEnd
from oku_core.messaging.progress import Progress

EVENTS_PER_S = 1000
"""Progress events of all workers together, with coarse latencies."""
_FINE_EVENTS_PER_S = 500
"""The same while workers report each second: these latencies are not coarse."""
LONGEST_INTERVAL_S = 30.0
_TIMEOUT_INTERVALS = 2.5
"""The timeout is never shorter than this many heartbeat intervals."""
_LEFT_AFTER_INTERVALS = 3
"""A worker without work has left after this many intervals of silence."""
_SUSPECT_S = 2.0
_SUSPECT_INTERVALS = 2.0
_GONE_KEPT = 10_000
_T = TypeVar("_T")
_PROCESSES_KEPT = 20_000
_FOLLOWED_AFTER_S = 60.0
"""After this long, a silent process may be followed by one with a slower clock."""


class Roster:
    """The live workers, by name.

    Args:
        worker_timeout_s: the longest silence of a worker, unless there are very many.
    """

    def __init__(self, worker_timeout_s: float) -> None:
        self._worker_timeout_s = worker_timeout_s
        self._workers: dict[str, WorkerState] = {}
        self._gone: dict[str, None] = {}

    def __len__(self) -> int:
        """The number of live workers, leaving ones included."""
        return sum(worker.has_reported for worker in self._workers.values())

    @property
    def heartbeat_interval_s(self) -> float:
        """The intended heartbeat interval, in whole seconds; workers without a report count as well."""
        return choose_heartbeat_interval_s(len(self._workers))

    @property
    def clock_bound_s(self) -> float:
        """The largest error of the workers' clocks, over workers with a clock."""
        return max((worker.clock_bound_s or 0.0 for worker in self._workers.values()), default=0.0)

    @property
    def worker_timeout_s(self) -> float:
        """The longest silence before a worker is dead."""
        return max(self._worker_timeout_s, _TIMEOUT_INTERVALS * self.heartbeat_interval_s)

    def workers(self) -> list[WorkerState]:
        """The workers that can take leases: reporting, alive, and not leaving."""
        return [worker for worker in self._workers.values() if worker.can_take()]

    def find_available(self, run: str) -> list[WorkerState]:
        """The workers that can take leases, and are not barred from a run."""
        return [worker for worker in self._workers.values() if worker.can_take(run)]

    def find_named(self, name: str) -> WorkerState | None:
        """A worker by its name, if it is alive or was named."""
        return self._workers.get(name)

    def is_leaving(self, name: str) -> bool:
        """Whether a worker has announced that it leaves."""
        worker = self._workers.get(name)
        return worker is not None and worker.stopping

    def find_leaving(self) -> list[WorkerState]:
        """The workers that have announced that they leave."""
        return [worker for worker in self._workers.values() if worker.stopping]

    def find_used(self, run: str) -> list[WorkerState]:
        """The workers that have run user code of another run than this one, and are not leaving."""
        return [
            worker for worker in self._workers.values() if worker.can_take() and not worker.is_fresh_for(run)
        ]

    def find_renewing(self, run: str) -> list[WorkerState]:
        """The workers that a fresh process is about to replace, before a run starts."""
        return [
            worker
            for worker in self._workers.values()
            if worker.has_reported and not worker.is_suspect and not worker.is_fresh_for(run)
        ]

    def list_leases(self) -> Iterator[tuple[str, str]]:
        """Every lease in the last report of a worker, with its process."""
        for worker in self._workers.values():
            for lease in worker.leases:
                yield worker.incarnation, lease

    def list_hooks(self) -> Iterator[tuple[WorkerState, HookAttempt]]:
        """Every hook in the last report of a worker, with that worker."""
        for worker in self._workers.values():
            for attempt in worker.hooks:
                yield worker, attempt

    def find_barred(self, run: str) -> list[WorkerState]:
        """The live workers that cannot start a run."""
        return [worker for worker in self.workers() if worker.refused_run == run]

    def record_refusal(self, name: str, incarnation: str, refused: tuple[str, str], now: float) -> bool:
        """Record that a worker cannot start a run; False if that is known, or the worker is gone.

        It holds for this process of the worker, until the run is resumed or it refuses another.
        """
        worker = self._workers.get(name)
        if worker is None or worker.incarnation != incarnation or worker.refused_run == refused[0]:
            return False
        (worker.refused_run, worker.refusal), worker.refused_at = refused, now
        return True

    def forget_refusals(self, run: str) -> None:
        """Let every worker try a run again."""
        for worker in self._workers.values():
            if worker.refused_run == run:
                worker.refused_run = None

    def find_troubles(self) -> list[str]:
        """The failures that live workers report, a line each, with how many report the same."""
        return _join_same(
            (trouble, worker.name) for worker in self._workers.values() for trouble in worker.troubles
        )

    def find_host_ends(self, run: str) -> list[str]:
        """Why user code processes of a run ended lately: a line for each reason, with its count."""
        return _join_same(
            (f"the process of the user code has ended: {end.text}", worker.name)
            for worker in self._workers.values()
            for end in worker.host_ends
            if end.run == run
        )

    def list_new_host_ends(self, progress: Progress) -> list[HostEnd]:
        """The process ends in a report that are new; call this before `record`."""
        known = self.find(progress.worker, progress.incarnation)
        newest = known.host_ends[-1].number if known is not None and known.host_ends else 0
        return [end for end in progress.host_ends if end.number > newest]

    def add_named(self, name: str, incarnation: str, now: float) -> None:
        """Start the timer of a worker that was named by anything but its own event."""
        if name not in self._workers:
            self._workers[name] = WorkerState(name, incarnation, now)

    def record(self, progress: Progress, now: float, wall_now: float) -> None:
        """Record an event. Another incarnation of a name means a restart: the old one is gone."""
        known = self._workers.get(progress.worker)
        replaced = known.incarnation if known and known.incarnation != progress.incarnation else None
        if known is None or replaced:
            known = self._workers[progress.worker] = WorkerState(progress.worker, progress.incarnation, now)
        if replaced:
            self._record_gone(replaced)
        self._gone.pop(progress.incarnation, None)
        known.last_seen_at = now
        known.has_reported = True
        known.heartbeat_interval_s = progress.seconds
        known.stopping = progress.stopping
        known.troubles = progress.troubles
        known.host_ends = progress.host_ends
        known.is_unconfinable = progress.is_unconfinable
        known.clock_ahead_s = progress.at - wall_now
        known.clock_bound_s = progress.clock_bound_s
        known.is_suspect = False
        known.leases = dict(progress.leases)
        known.specs = frozenset(progress.specs)
        known.hooks = frozenset(progress.hooks)
        known.settled = progress.settled
        known.files = frozenset(progress.files)
        known.loaded = progress.loaded
        known.code_run = progress.code_run
        known.memory_bytes = progress.memory_bytes
        known.record_rate(progress)

    def is_gone(self, incarnation: str) -> bool:
        """Whether this process was declared dead or replaced, and has not reported since."""
        return incarnation in self._gone

    def find_replaced(self, name: str, incarnation: str) -> WorkerState | None:
        """The previous process of a worker, if it was not known to be gone."""
        worker = self._workers.get(name)
        return worker if worker is not None and worker.incarnation != incarnation else None

    def is_current(self, name: str, incarnation: str) -> bool:
        """Whether this process of a worker is alive, as far as known."""
        worker = self._workers.get(name)
        return worker is not None and worker.incarnation == incarnation

    def find(self, name: str, incarnation: str) -> WorkerState | None:
        """This process of a worker, if it has reported and is alive."""
        worker = self._workers.get(name)
        is_here = worker is not None and worker.has_reported and worker.incarnation == incarnation
        return worker if is_here else None

    def find_timeout_s(self, worker: WorkerState) -> float:
        """The longest silence of a live worker."""
        return _find_timeout_s(worker, self.worker_timeout_s)

    def mark_suspects(self, now: float) -> list[WorkerState]:
        """Mark and return the new suspects: workers that are silent while others report.

        If all are silent, our own connection is more likely to be at fault.
        """
        last_seen_at = max((worker.last_seen_at for worker in self._workers.values()), default=-math.inf)
        if now - last_seen_at > _SUSPECT_S:
            return []
        interval_s = self.heartbeat_interval_s
        suspects = []
        for worker in self._workers.values():
            longest_s = max(interval_s, min(worker.heartbeat_interval_s, LONGEST_INTERVAL_S))
            limit_s = max(_SUSPECT_S, _SUSPECT_INTERVALS * longest_s)
            if worker.has_reported and not worker.is_suspect and now - worker.last_seen_at > limit_s:
                worker.is_suspect = True
                suspects.append(worker)
        return suspects

    def remove_silent(self, now: float) -> list[WorkerState]:
        """Remove and return the workers that were silent for too long: they are dead, or have left.

        A worker that has left is not marked as gone: a checkpoint of it may still wait in the broker.
        """
        timeout_s, left_after_s = self.worker_timeout_s, _LEFT_AFTER_INTERVALS * self.heartbeat_interval_s
        silent = []
        for worker in self._workers.values():
            limit_s = _find_timeout_s(worker, timeout_s)
            if now - worker.last_seen_at > (
                min(limit_s, left_after_s) if worker.has_nothing_left else limit_s
            ):
                silent.append(worker)
        for worker in silent:
            del self._workers[worker.name]
            if not worker.has_nothing_left:
                self._record_gone(worker.incarnation)
        return silent

    def reset_timers(self, now: float) -> None:
        """Restart the timers of all workers: no report could arrive."""
        for worker in self._workers.values():
            worker.last_seen_at = now
            worker.is_suspect = False

    def record_taken(self, batch: CheckpointBatch) -> None:
        """Record how much of a run a worker has taken, from its checkpoints."""
        if worker := self.find(batch.worker, batch.incarnation):
            worker.record_taken(batch.run, batch.taken, batch.rate_rps)

    def forget_lease(self, name: str, incarnation: str, lease: str) -> None:
        """Forget a closed lease in the last report of its worker."""
        if worker := self.find(name, incarnation):
            worker.leases.pop(lease, None)

    def _record_gone(self, incarnation: str) -> None:
        self._gone[incarnation] = None
        if len(self._gone) > _GONE_KEPT:
            del self._gone[next(iter(self._gone))]


def _join_same(texts: Iterable[tuple[str, str]]) -> list[str]:
    """A line per text, with the first worker that reports it and the number of others."""
    workers: dict[str, list[str]] = {}
    for text, worker in texts:
        workers.setdefault(text, []).append(worker)
    return [
        f"worker {names[0]}: {text}" + (f" (and {len(names) - 1:,} more)" if len(names) > 1 else "")
        for text, names in workers.items()
    ]


def choose_heartbeat_interval_s(workers: int) -> float:
    """The heartbeat interval for this many workers: whole seconds, at least one."""
    if workers <= _FINE_EVENTS_PER_S:
        return 1.0
    return float(min(max(2, math.ceil(workers / EVENTS_PER_S)), LONGEST_INTERVAL_S))


def _find_timeout_s(worker: WorkerState, timeout_s: float) -> float:
    """The longest silence of a live worker: it may not have received its current interval yet."""
    return max(timeout_s, _TIMEOUT_INTERVALS * min(worker.heartbeat_interval_s, LONGEST_INTERVAL_S))


class ReplayGuard:
    """Admits each progress message once, and none of a replaced process."""

    def __init__(self) -> None:
        self._sequences: OrderedDict[str, int] = OrderedDict()
        """The last sequence number of each process, by incarnation."""
        self._current: OrderedDict[str, tuple[str, float, float]] = OrderedDict()
        """By worker: its incarnation, the last reading of its clock, and when that arrived (monotonic)."""

    def admits(self, progress: Progress, now: float) -> bool:
        """Whether a message is new, at `now` in monotonic seconds; recorded if it is."""
        last = self._sequences.get(progress.incarnation)
        if last is not None and progress.sequence <= last:
            return False
        incarnation, at, last_seen_at = self._current.get(progress.worker, (progress.incarnation, 0.0, now))
        if incarnation != progress.incarnation and (
            last is not None or (progress.at <= at and now - last_seen_at < _FOLLOWED_AFTER_S)
        ):
            return False
        _put(self._sequences, progress.incarnation, progress.sequence)
        _put(self._current, progress.worker, (progress.incarnation, progress.at, now))
        return True


def _put(kept: OrderedDict[str, _T], key: str, value: _T) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > _PROCESSES_KEPT:
        kept.popitem(last=False)
