"""Assigns workers to the run that has its turn: a worker belongs to one run at a time.

A run gets its requested number of workers, from its preparation to the end of its teardown. Only they fetch
its files, load its code, call its hooks and get its leases. A worker that dies, leaves or refuses is replaced
by a free one. A worker is free once the ledger has its last checkpoint and the result of its hook.

The assignment is in memory. A coordinator that finds an active run assigns the workers that hold its open
leases or call its hooks. It then waits a moment for workers that worked on the run before it assigns others.
"""

import math
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import hooks
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables import hook_table, lease_table
from oku_coordinator.ledger.tables.accounts import work_table
from oku_coordinator.workers.liveness import Roster
from oku_coordinator.workers.worker_state import WorkerState
from oku_core.accounting.run_state import RunState
from oku_core.messaging.hook import NO_SETUP, SetupData, build_spec_key
from oku_core.process.clock import Clock
from oku_core.spec.files import list_files
from oku_core.spec.spec import Hook


class RunNeeds(NamedTuple):
    """The requirements of a run before a worker can take its leases.

    Args:
        files: the digests of the files of the run.
        code: its user code, by `build_spec_key`; empty if none is to be loaded now.
    """

    files: frozenset[str] = frozenset()
    code: str = ""

    def are_met_by(self, worker: WorkerState) -> bool:
        """Whether a worker has all of it, or has reported that it cannot get the rest."""
        return self.files <= worker.files and self.code in {"", worker.loaded}


def build_needs(run: RunRecord, setup: SetupData | None) -> RunNeeds:
    """The requirements of a run whose user code is loaded with this; None if it is not to be loaded."""
    files = frozenset(file.digest for file in list_files(run.spec))
    return RunNeeds(files, "" if setup is None else build_spec_key(run.run, setup.attempt))


def find_setup(ledger: Ledger, run: RunRecord) -> SetupData | None:
    """The setup result to load the user code of a run with; None if it is not to be loaded now."""
    if not run.spec.runs_user_code or run.state is RunState.TEARING_DOWN:
        return None
    if Hook.SETUP not in run.spec.hooks:
        return NO_SETUP
    with ledger.read() as t:
        setup = hook_table.fetch_setup_data(t, run.run)
    return setup if setup.attempt else None


REPORT_WITHIN_S = 3.0
"""After a start of the coordinator, all live workers report within this time: each does once a second."""
_FILLED = frozenset({RunState.PENDING, RunState.RUNNING, RunState.TEARING_DOWN})
"""In the other states of an active run its leases are recalled: it needs no more workers."""


class WorkerLimits:
    """The number of workers of a run: the requested number, else all free ones."""

    def count_assigned(self, run: RunRecord) -> int | None:
        """The number of workers of a run; None for all free ones."""
        return run.spec.workers


class NoWorkerLimits(WorkerLimits):
    """No limits: all workers were started for the run."""

    def count_assigned(self, _run: RunRecord) -> int | None:
        """None: all workers."""
        return None


@dataclass(kw_only=True)
class Assignment:
    """The workers of the run that has its turn. `settle` changes them; all else only reads."""

    ledger: Ledger
    roster: Roster
    limits: WorkerLimits = field(default_factory=WorkerLimits)
    monotonic: Clock = time.monotonic
    run: str = field(default="", init=False)
    """The run whose workers these are; empty if no run has its turn."""
    _needs: RunNeeds = field(default_factory=RunNeeds, init=False)
    _members: dict[str, str] = field(default_factory=dict, init=False)
    """The names of the run's workers, by incarnation."""
    _waits_until: float = field(default=-math.inf, init=False)
    """Until then, only workers that have worked on the run are assigned."""

    def settle(self, run: RunRecord | None) -> list[WorkerState]:
        """Assign workers to the run that has its turn; returns the new ones."""
        if run is None or run.run != self.run:
            self._switch_to(run)
        if run is None:
            return []
        self._needs = build_needs(run, find_setup(self.ledger, run))
        self._release(run)
        return self._fill(run) if run.state in _FILLED else []

    def require_code(self, run: str, code: str) -> None:
        """Require this user code for the run from now on, by `build_spec_key`."""
        if run == self.run:
            self._needs = self._needs._replace(code=code)

    def count(self, run: str) -> int:
        """The number of workers of a run, including ones that have not reported yet."""
        return len(self._members) if run == self.run else 0

    def list_incarnations(self, run: str) -> Collection[str]:
        """The processes of a run, with those that have not reported yet."""
        return self._members.keys() if run == self.run else ()

    def find_members(self, run: str) -> list[WorkerState]:
        """The live workers of a run, including ones that prepare for it or are leaving."""
        if run != self.run:
            return []
        found = (self.roster.find(name, incarnation) for incarnation, name in self._members.items())
        return [worker for worker in found if worker is not None]

    def workers(self, run: str) -> list[WorkerState]:
        """The workers that can take leases of a run: prepared for it, not leaving, and not barred from it."""
        return [worker for worker in self.find_members(run) if self._can_take(worker)]

    def find_takers(self, run: str, names: Iterable[str]) -> list[WorkerState]:
        """The workers among the named ones that can take leases of a run."""
        if run != self.run:
            return []
        named = (self.roster.find_named(name) for name in names)
        return [
            worker
            for worker in named
            if worker is not None and worker.incarnation in self._members and self._can_take(worker)
        ]

    def find_preparing(self, run: str) -> list[WorkerState]:
        """The workers that can take leases of a run once they have its files and its user code."""
        return [
            worker
            for worker in self.find_members(run)
            if worker.can_take(run) and not self._needs.are_met_by(worker)
        ]

    def has_worker(self, run: str) -> bool:
        """Whether a live worker works on a run, can, or prepares for it."""
        return any(worker.leases or worker.can_take(run) for worker in self.find_members(run))

    def owns(self, incarnation: str) -> bool:
        """Whether a process belongs to the run that has its turn."""
        return incarnation in self._members

    def measure_flight(self, run: str) -> tuple[float, float]:
        """The requests of a run in flight, and its rate of ended requests per second."""
        rates = [worker.rate for worker in self.workers(run) if worker.rate.run == run]
        return sum(rate.mean_in_flight for rate in rates), sum(rate.rate_rps or 0.0 for rate in rates)

    @property
    def has_suspects(self) -> bool:
        """Whether any of its workers is suspect."""
        return any(worker.is_suspect for worker in self.find_members(self.run))

    @property
    def clock_bound_s(self) -> float:
        """The largest error of the workers' clocks, over workers with a clock; in seconds."""
        return max((worker.clock_bound_s or 0.0 for worker in self.find_members(self.run)), default=0.0)

    def _can_take(self, worker: WorkerState) -> bool:
        return worker.can_take(self.run) and self._needs.are_met_by(worker)

    def _switch_to(self, run: RunRecord | None) -> None:
        """Switch to a run and assign the holders of its work: this coordinator may have been restarted."""
        self._members, self._waits_until = {}, -math.inf
        self.run, self._needs = "", RunNeeds()
        if run is None:
            return
        self.run = run.run
        self._members = self._find_holders(run)
        if run.state == RunState.RUNNING:
            self._waits_until = self.monotonic() + REPORT_WITHIN_S

    def _find_holders(self, run: RunRecord) -> dict[str, str]:
        """The processes that hold open leases of a run, or call a hook of it."""
        with self.ledger.read() as t:
            held = lease_table.fetch_fleet(t, run.run)
            calling = hooks.list_holders(t, run.run) if run.spec.hooks else ()
        return {incarnation: leases[0].worker for incarnation, leases in held.items() if leases} | dict(
            calling
        )

    def _release(self, run: RunRecord) -> None:
        """Release workers that died, leave or refuse, once they hold nothing, and surplus ones."""
        leaving = [each for each, name in self._members.items() if not self._can_stay(name, each)]
        if leaving:
            holders = self._find_holders(run)
            for incarnation in leaving:
                if incarnation not in holders:
                    del self._members[incarnation]

    def _can_stay(self, name: str, incarnation: str) -> bool:
        if not self.roster.is_current(name, incarnation):
            return False
        worker = self.roster.find(name, incarnation)
        return worker is None or worker.can_take(self.run)  # a worker without a report yet keeps its place

    def _fill(self, run: RunRecord) -> list[WorkerState]:
        # A teardown without workers gets one.
        limit = (
            self.limits.count_assigned(run)
            if run.state != RunState.TEARING_DOWN
            else max(1, len(self._members))
        )
        # A worker without a request in flight of its own would do nothing.
        room = min(run.spec.most_workers, math.inf if limit is None else limit) - len(self._members)
        if room <= 0:
            return []
        others = [
            worker
            for worker in self.roster.workers()
            if worker.incarnation not in self._members and worker.can_take(run.run)
        ]
        free = self._find_free(others)
        if limit is not None or len(free) > room:
            free = self._choose(run, free)[: int(room)]
        self._members |= {worker.incarnation: worker.name for worker in free}
        return free

    def _find_free(self, workers: Sequence[WorkerState]) -> list[WorkerState]:
        """The workers that hold no work that the ledger waits for."""
        if not workers:
            return []
        named = [lease for worker in workers for lease in worker.leases]
        with self.ledger.read() as t:
            unclosed = lease_table.find_unclosed(t, named) if named else set()
            return [
                worker
                for worker in workers
                if unclosed.isdisjoint(worker.leases)
                and all(hooks.is_returned(t, worker.incarnation, each) for each in worker.hooks)
            ]

    def _choose(self, run: RunRecord, free: Sequence[WorkerState]) -> list[WorkerState]:
        """Sort by preference: workers that have worked on the run, that report, and that are prepared."""
        with self.ledger.read() as t:
            known = work_table.fetch_worker_names(t, run.run)
        if self.monotonic() < self._waits_until:
            free = [worker for worker in free if worker.name in known]

        def rank(worker: WorkerState) -> tuple[bool, ...]:
            return (
                worker.name not in known,
                worker.is_suspect,
                run.spec.is_open and not worker.knows_clock,
                not self._needs.are_met_by(worker),
            )

        return sorted(free, key=rank)
