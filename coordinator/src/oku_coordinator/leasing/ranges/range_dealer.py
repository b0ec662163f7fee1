"""Deals a closed run to workers whose backlog is not full, and moves work among them.

Each worker is visited about once a second and after its checkpoints; all of them when little is left.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from oku_coordinator.leasing.delivery import Delivery
from oku_coordinator.leasing.expiry import ExpiryRule
from oku_coordinator.leasing.pace import Pace
from oku_coordinator.leasing.ranges.sizing import (
    Backlog,
    build_backlog,
    choose_sizes,
    estimate_room,
    find_excess,
    find_full,
    find_mean_rate,
    find_uneven,
    find_weight,
)
from oku_coordinator.leasing.run_clock import TimeLimit
from oku_coordinator.leasing.shares import Shares
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.lease_records import LeaseOrder
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables import lease_table, slice_table
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.worker_state import WorkerState
from oku_core.process.clock import Clock
from oku_core.spec.spec import Spec

_VISIT_EVERY_S, _VISIT_SHARE = 1.0, 0.05
"""Interval of visits to all workers, and the most time that these may take."""
_SPARE_S, _SPARE_WINDOWS = 2.0, 2
"""Spare work of each worker, in seconds and in windows, so that none runs dry before the end of a run."""
_BATCH = 100
"""Leases dealt in one transaction; then the loop yields."""
_DUE_AT_ONCE = 2 * _BATCH
"""Workers visited early in one step: no more than fill its leases."""
_VISITED_AT_ONCE = 500
"""Workers visited before the loop yields; it takes a few milliseconds."""


@dataclass(kw_only=True)
class RangeDealer:
    """Cuts ranges of one run for its workers.

    Args:
        ledger: the truth.
        assignment: the workers of the run.
        delivery: sends leases to workers, and orders to shorten them.
        pace: the allowances of workers.
        expiry: follows the leases that are sent.
        time_limit: ends a run that lasts for a time.
        shares: of the workers; one without a share gets no lease.
        cpu_clock: seconds of processor time of this thread.

    Attributes:
        has_more: whether a visit left work to deal; the caller resets it.
    """

    ledger: Ledger
    assignment: Assignment
    delivery: Delivery
    pace: Pace
    expiry: ExpiryRule
    time_limit: TimeLimit
    shares: Shares
    cpu_clock: Clock = time.thread_time
    has_more: bool = field(default=False, init=False)
    _next_visit: float = field(default=-math.inf, init=False)
    """The time of the next visit to all."""
    _due: dict[str, None] = field(default_factory=dict, init=False)
    """Workers to visit before the next visit of all."""
    _weight: float = field(default=0.0, init=False)
    """The weight of all workers together at the last visit to all."""
    _is_guess: bool = field(default=True, init=False)
    """Whether no rate was known then."""

    def schedule_visit(self, worker: str) -> None:
        """Visit a worker in the next step: it is new, or its checkpoints have come."""
        self._due[worker] = None

    def schedule_visits(self) -> None:
        """Visit all workers in the next step."""
        self._next_visit = -math.inf

    async def visit(self, run: RunRecord, now: float, wall_now: float) -> None:
        """Deal a running run to the workers that are due.

        Args:
            run: the run.
            now: monotonic seconds.
            wall_now: Unix time.
        """
        left_s = self._find_left_s(run, now, wall_now)
        if self.delivery.is_away or left_s <= 0:
            return
        visits_all, began_cpu_s = now >= self._next_visit, self.cpu_clock()
        sees_all = visits_all or self._is_running_out(run)
        backlogs = await self._fetch_backlogs(run, self._find_due(run, sees_all=sees_all))
        if not visits_all and self._is_guess and find_mean_rate(backlogs) is not None:
            # One known rate among guesses would be nearly all of the weight.
            visits_all = True
            backlogs = await self._fetch_backlogs(run, self._find_due(run, sees_all=True))
        with self.ledger.read() as t:
            pending = slice_table.count_pending(t, run.run)
        if visits_all:
            mean_rps = find_mean_rate(backlogs)
            self._is_guess = mean_rps is None
            self._weight = sum(find_weight(each, mean_rps) for each in backlogs)
            self._move(run, backlogs, is_dealt_out=pending == 0)
            took_s = self.cpu_clock() - began_cpu_s
            self._next_visit = now + max(_VISIT_EVERY_S, took_s / _VISIT_SHARE)
        if pending := _bound_pending(pending, backlogs, left_s):
            self._deal(run, backlogs, pending, now, wall_now)
            self.has_more = bool(self._due)

    def _find_left_s(self, run: RunRecord, now: float, wall_now: float) -> float:
        """For how many seconds the run is still dealt."""
        if not run.spec.has_clock:
            return math.inf
        return self.time_limit.find_left_s(run, len(self.assignment.workers(run.run)), now, wall_now)

    def _is_running_out(self, run: RunRecord) -> bool:
        """Whether less is left than the backlogs of all workers hold: then a slow worker could ask first."""
        room = estimate_room(
            self.assignment.count(run.run),
            self._weight,
            window=self._find_window(run),
            range_size=run.spec.range_size,
        )
        with self.ledger.read() as t:
            pending = slice_table.count_pending(t, run.run)
        return 0 < pending <= room

    def _find_due(self, run: RunRecord, *, sees_all: bool) -> list[WorkerState]:
        """Find the workers to visit now, among those that can take leases."""
        if sees_all:
            self._due.clear()
            workers = self.assignment.workers(run.run)
        else:
            due = list(islice(self._due, _DUE_AT_ONCE))
            for name in due:
                del self._due[name]
            workers = self.assignment.find_takers(run.run, due)
        return [worker for worker in self.shares.find_takers(workers) if not worker.is_suspect]

    async def _fetch_backlogs(self, run: RunRecord, workers: Sequence[WorkerState]) -> list[Backlog]:
        with self.ledger.read() as t:
            held = lease_table.fetch_held(t, run.run, [worker.incarnation for worker in workers])
        backlogs, window = [], self._find_window(run)
        for number, worker in enumerate(workers):
            backlogs.append(build_backlog(worker, held[worker.incarnation], run.run, window))
            if number % _VISITED_AT_ONCE == _VISITED_AT_ONCE - 1:
                await asyncio.sleep(0)
        return backlogs

    def _find_window(self, run: RunRecord) -> int:
        """The requests that each worker may have in flight."""
        return run.spec.find_window(max(1, self.assignment.count(run.run)))

    def _move(self, run: RunRecord, backlogs: Sequence[Backlog], *, is_dealt_out: bool) -> None:
        """Shorten the leases of workers with too much work while others have too little.

        Leases of a size that the spec fixes stay as they are.
        """
        asked = {} if run.spec.range_size else find_excess(backlogs)
        if is_dealt_out:
            asked = find_uneven(backlogs) | asked
        self.delivery.shorten(asked)

    def _deal(
        self, run: RunRecord, backlogs: Sequence[Backlog], pending: int, now: float, wall_now: float
    ) -> None:
        chosen = choose_sizes(
            backlogs, pending, weight=self._weight, range_size=run.spec.range_size, most=_BATCH
        )
        if not chosen:
            return
        if len(chosen) == _BATCH:
            given = Counter[str]()
            for each, size in chosen:
                given[each.worker] += size
            for each in backlogs:
                if each.untaken + given[each.worker] < find_full(each):
                    self._due[each.worker] = None
        orders = self._build_orders(run.spec, chosen)
        with self.ledger.change(wall_now) as t:
            leases = lease_table.deal_leases(t, run.run, orders, wall_now)
        for lease in leases:
            self.expiry.record_sent(lease.id, now)
        self.delivery.send(run, leases, self.shares)

    def _build_orders(self, spec: Spec, chosen: Iterable[tuple[Backlog, int]]) -> list[LeaseOrder]:
        orders = []
        for backlog, size in chosen:
            allowance = self.pace.choose_allowance(
                spec, backlog.window, rate_rps=backlog.rate_rps or 0.0, taken=backlog.taken
            )
            left = max(0, allowance - backlog.ahead)
            orders.append(LeaseOrder(backlog.worker, backlog.incarnation, size, left))
        return orders


def _bound_pending(pending: int, backlogs: Sequence[Backlog], left_s: float) -> int:
    """The pending requests, or enough of them to keep these workers busy until the end of the run.

    A worker without work before the end would make the target look slow. What is too much comes back.
    """
    if left_s == math.inf:
        return pending
    # The surplus of one worker does not help another that has none.
    rest = sum(
        max(0.0, each.most_rps * (left_s + _SPARE_S) + _SPARE_WINDOWS * each.window - each.untaken)
        for each in backlogs
    )
    return pending if rest >= pending else math.ceil(rest)
