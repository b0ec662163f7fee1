"""Who lives: the roster of workers, judged from their progress events alone.

Pure state with the clock passed in (monotonic seconds). A worker's time begins when it is first named, by an
event or a lease of the ledger; it is dead when it was silent for longer than the worker timeout. One
that has said that it is about to leave, and had no lease then, has left after a few missed heartbeats. Rounds
in which the coordinator itself stalled, or had no connection to the broker, do not count. Long before it is
dead a silent worker is suspect, and gets nothing more until it speaks.

Where there are many workers they speak less often than once a second, and the timeout is longer: at least two
and a half times the heartbeat interval, that which a worker had last and that which it should have.
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
"""The same while workers speak each second: their latencies are not coarse."""
LONGEST_INTERVAL_S = 30.0
_TIMEOUT_INTERVALS = 2.5
"""The timeout is never shorter than this many heartbeat intervals."""
_LEFT_AFTER_INTERVALS = 3
"""A worker that has nothing left to do has left after this many intervals of silence."""
_SUSPECT_S = 2.0
_SUSPECT_INTERVALS = 2.0
_GONE_KEPT = 10_000
_T = TypeVar("_T")
_PROCESSES_KEPT = 20_000
_FOLLOWED_AFTER_S = 60.0
"""After this long a silent process may be followed by one whose clock is behind its own."""


class Roster:
    """The workers that live, by name.

    Args:
        worker_timeout_s: how long a worker may be silent, as long as there are not too many.
    """

    def __init__(self, worker_timeout_s: float) -> None:
        self._worker_timeout_s = worker_timeout_s
        self._workers: dict[str, WorkerState] = {}
        self._gone: dict[str, None] = {}

    def __len__(self) -> int:
        """How many live, those about to leave included."""
        return sum(worker.has_spoken for worker in self._workers.values())

    @property
    def heartbeat_interval_s(self) -> float:
        """How often each worker should speak, in whole seconds; those count as well that were only named."""
        return choose_heartbeat_interval_s(len(self._workers))

    @property
    def clock_bound_s(self) -> float:
        """How well each worker knows our clock at least, of those that know it."""
        return max((worker.clock_bound_s or 0.0 for worker in self._workers.values()), default=0.0)

    @property
    def worker_timeout_s(self) -> float:
        """How long a worker may be silent before it is dead."""
        return max(self._worker_timeout_s, _TIMEOUT_INTERVALS * self.heartbeat_interval_s)

    def workers(self) -> list[WorkerState]:
        """Those that can take leases: heard, alive, and not about to leave."""
        return [worker for worker in self._workers.values() if worker.can_take()]

    def find_able(self, run: str) -> list[WorkerState]:
        """Those that can take leases, and are not barred from a run."""
        return [worker for worker in self._workers.values() if worker.can_take(run)]

    def find_named(self, name: str) -> WorkerState | None:
        """What is known of a worker by its name, if it lives or was named."""
        return self._workers.get(name)

    def is_leaving(self, name: str) -> bool:
        """Whether a worker has said that it is about to leave."""
        worker = self._workers.get(name)
        return worker is not None and worker.stopping

    def find_leaving(self) -> list[WorkerState]:
        """Those that have said that they are about to leave."""
        return [worker for worker in self._workers.values() if worker.stopping]

    def find_used(self, run: str) -> list[WorkerState]:
        """Those that have run user code of another run than this one, and do not leave yet."""
        return [
            worker for worker in self._workers.values() if worker.can_take() and not worker.is_fresh_for(run)
        ]

    def find_renewing(self, run: str) -> list[WorkerState]:
        """Those in whose place a fresh process is about to come, before a run begins."""
        return [
            worker
            for worker in self._workers.values()
            if worker.has_spoken and not worker.is_suspect and not worker.is_fresh_for(run)
        ]

    def list_leases(self) -> Iterator[tuple[str, str]]:
        """Every lease that a worker named when it was last heard, with the process that has it."""
        for worker in self._workers.values():
            for lease in worker.leases:
                yield worker.incarnation, lease

    def list_hooks(self) -> Iterator[tuple[WorkerState, HookAttempt]]:
        """Every hook that a worker had in hand when it was last heard, with that worker."""
        for worker in self._workers.values():
            for attempt in worker.hooks:
                yield worker, attempt

    def find_barred(self, run: str) -> list[WorkerState]:
        """Those that live and cannot begin with a run."""
        return [worker for worker in self.workers() if worker.refused_run == run]

    def record_refusal(self, name: str, incarnation: str, refused: tuple[str, str], now: float) -> bool:
        """A worker cannot begin with a run, for a reason; False when that is known, or it is gone.

        It holds for this process of the worker, until the run is resumed or it refuses another.
        """
        worker = self._workers.get(name)
        if worker is None or worker.incarnation != incarnation or worker.refused_run == refused[0]:
            return False
        (worker.refused_run, worker.refusal), worker.refused_at = refused, now
        return True

    def forget_refusals(self, run: str) -> None:
        """Every worker may try a run again."""
        for worker in self._workers.values():
            if worker.refused_run == run:
                worker.refused_run = None

    def find_troubles(self) -> list[str]:
        """What workers that live say has failed, a line each, with how many more say the same."""
        return _join_same(
            (trouble, worker.name) for worker in self._workers.values() for trouble in worker.troubles
        )

    def find_host_ends(self, run: str) -> list[str]:
        """Why processes of a run's user code ended lately: a line for each reason, with its count."""
        return _join_same(
            (f"the process of the user code has ended: {end.text}", worker.name)
            for worker in self._workers.values()
            for end in worker.host_ends
            if end.run == run
        )

    def list_new_host_ends(self, progress: Progress) -> list[HostEnd]:
        """The ends that a worker reports for the first time; call this before `record`."""
        known = self.find(progress.worker, progress.incarnation)
        newest = known.host_ends[-1].number if known is not None and known.host_ends else 0
        return [end for end in progress.host_ends if end.number > newest]

    def enlist(self, name: str, incarnation: str, now: float) -> None:
        """Begin the time of a worker that was named by something else than its own event."""
        if name not in self._workers:
            self._workers[name] = WorkerState(name, incarnation, now)

    def record(self, progress: Progress, now: float, wall_now: float) -> None:
        """Take in an event. Another incarnation of a name was started anew: its old one is gone."""
        known = self._workers.get(progress.worker)
        replaced = known.incarnation if known and known.incarnation != progress.incarnation else None
        if known is None or replaced:
            known = self._workers[progress.worker] = WorkerState(progress.worker, progress.incarnation, now)
        if replaced:
            self._record_gone(replaced)
        self._gone.pop(progress.incarnation, None)
        known.heard_at = now
        known.has_spoken = True
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
        known.files = frozenset(progress.files)
        known.loaded = progress.loaded
        known.code_run = progress.code_run
        known.memory_bytes = progress.memory_bytes
        known.record_rate(progress)

    def is_gone(self, incarnation: str) -> bool:
        """Whether this process was declared dead or replaced, and has not spoken since."""
        return incarnation in self._gone

    def find_replaced(self, name: str, incarnation: str) -> WorkerState | None:
        """The process that had the name of a worker before this one, if it was not known to be gone."""
        worker = self._workers.get(name)
        return worker if worker is not None and worker.incarnation != incarnation else None

    def is_current(self, name: str, incarnation: str) -> bool:
        """Whether this process of a worker lives, as far as is known."""
        worker = self._workers.get(name)
        return worker is not None and worker.incarnation == incarnation

    def find(self, name: str, incarnation: str) -> WorkerState | None:
        """This process of a worker, if it has spoken and lives."""
        worker = self._workers.get(name)
        is_here = worker is not None and worker.has_spoken and worker.incarnation == incarnation
        return worker if is_here else None

    def find_timeout_s(self, worker: WorkerState) -> float:
        """The longest silence of a worker that lives."""
        return _find_timeout_s(worker, self.worker_timeout_s)

    def mark_suspects(self, now: float) -> list[WorkerState]:
        """Mark and return the workers that have become suspect: silent, while others were heard.

        When nobody is heard it is more likely our own hearing that fails.
        """
        heard_at = max((worker.heard_at for worker in self._workers.values()), default=-math.inf)
        if now - heard_at > _SUSPECT_S:
            return []
        interval_s = self.heartbeat_interval_s
        suspects = []
        for worker in self._workers.values():
            longest_s = max(interval_s, min(worker.heartbeat_interval_s, LONGEST_INTERVAL_S))
            limit_s = max(_SUSPECT_S, _SUSPECT_INTERVALS * longest_s)
            if worker.has_spoken and not worker.is_suspect and now - worker.heard_at > limit_s:
                worker.is_suspect = True
                suspects.append(worker)
        return suspects

    def remove_silent(self, now: float) -> list[WorkerState]:
        """Take out and return the workers that were silent for too long: they are dead, or have left.

        One that has left is not gone like a dead one: a checkpoint of its may still wait in the broker.
        """
        timeout_s, left_after_s = self.worker_timeout_s, _LEFT_AFTER_INTERVALS * self.heartbeat_interval_s
        silent = []
        for worker in self._workers.values():
            limit_s = _find_timeout_s(worker, timeout_s)
            if now - worker.heard_at > (min(limit_s, left_after_s) if worker.has_nothing_left else limit_s):
                silent.append(worker)
        for worker in silent:
            del self._workers[worker.name]
            if not worker.has_nothing_left:
                self._record_gone(worker.incarnation)
        return silent

    def reset_timers(self, now: float) -> None:
        """Begin everybody's time anew: we could not have heard them."""
        for worker in self._workers.values():
            worker.heard_at = now
            worker.is_suspect = False

    def record_taken(self, batch: CheckpointBatch) -> None:
        """Take in how much of a run a worker has taken, as it says with its checkpoints."""
        if worker := self.find(batch.worker, batch.incarnation):
            worker.record_taken(batch.run, batch.taken)

    def forget_lease(self, name: str, incarnation: str, lease: str) -> None:
        """The ledger has closed a lease; what its worker said of it last is outdated."""
        if worker := self.find(name, incarnation):
            worker.leases.pop(lease, None)

    def _record_gone(self, incarnation: str) -> None:
        self._gone[incarnation] = None
        if len(self._gone) > _GONE_KEPT:
            del self._gone[next(iter(self._gone))]


def _join_same(said: Iterable[tuple[str, str]]) -> list[str]:
    """A line for each text, with the first worker that says it and how many more times it is said."""
    workers: dict[str, list[str]] = {}
    for text, worker in said:
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
    """The longest silence of a worker that lives: it may not have heard of its present interval yet."""
    return max(timeout_s, _TIMEOUT_INTERVALS * min(worker.heartbeat_interval_s, LONGEST_INTERVAL_S))


class ReplayGuard:
    """Admits each progress once, and none of a process that another one has followed."""

    def __init__(self) -> None:
        self._sequences: OrderedDict[str, int] = OrderedDict()
        """The last that was heard of each process, by its incarnation."""
        self._current: OrderedDict[str, tuple[str, float, float]] = OrderedDict()
        """By worker: its incarnation, what its clock said last, and when that was, in monotonic seconds."""

    def admits(self, progress: Progress, now: float) -> bool:
        """Whether it is new, at `now` in monotonic seconds; noted if it is."""
        last = self._sequences.get(progress.incarnation)
        if last is not None and progress.sequence <= last:
            return False
        incarnation, at, heard_at = self._current.get(progress.worker, (progress.incarnation, 0.0, now))
        if incarnation != progress.incarnation and (
            last is not None or (progress.at <= at and now - heard_at < _FOLLOWED_AFTER_S)
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
