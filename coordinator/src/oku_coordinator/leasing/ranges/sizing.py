"""How much work a worker gets, and which worker returns some: pure rules.

A full backlog is about ten seconds of untaken work, and a lease should last about as long. While the rate is
unknown, a lease is a window, or doubles the work done so far, limited to ten seconds at the highest possible
rate. Near the end of the space leases shrink, so that all workers end together (guided self-scheduling:
Polychronopoulos and Kuck, IEEE Transactions on Computers C-36, 1987; here weighted by rate). A worker that is
asked to shorten leases answers with the ends that it can still keep. Only that answer frees the rest.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from oku_coordinator.leasing.delivery import AskedEnds
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.workers.worker_state import WorkerState
from oku_core.accounting.index_ranges import Range
from oku_core.messaging.lease import MOST_LEASES


class Backlog(NamedTuple):
    """The remaining work of one worker process in a run.

    Attributes:
        worker: its name.
        incarnation: its process.
        window: the requests that it may have in flight.
        leases: the untaken positions of each open lease as of its last message, by the id of the lease, in
            the order of work.
        rate_rps: its requests per second; None while unknown.
        most_rps: its highest rate, as far as known.
        early_rps: its rate as its last checkpoint reported it, from the first moments on; 0 while unknown.
        taken: the indices that it has taken of the run so far.
        ahead: how many positions its limits allow beyond those that the ledger knows.
        silence_s: the longest age of its last message.
    """

    worker: str
    incarnation: str
    window: int
    leases: Mapping[str, Range]
    rate_rps: float | None
    most_rps: float
    taken: int
    ahead: int
    silence_s: float = 0.0
    early_rps: float = 0.0

    @property
    def untaken(self) -> int:
        """How many indices it has not taken yet; a lease that only waits for its last responses has none."""
        return sum(end - taken for taken, end in self.leases.values())


def build_backlog(worker: WorkerState, leases: Iterable[LeaseRecord], run: str, window: int) -> Backlog:
    """Build the backlog of a worker in a run from the ledger and its heartbeats."""
    known = worker.leases
    untaken: dict[str, Range] = {}
    ahead = 0
    for lease in leases:
        progress = known.get(lease.id)
        taken = lease.done if progress is None else max(lease.done, progress.taken)
        ahead += max(0, lease.bound - lease.done)
        untaken[lease.id] = min(taken, lease.end), lease.end
    rate = worker.find_rate(run)
    return Backlog(
        worker=worker.name,
        incarnation=worker.incarnation,
        window=window,
        leases=untaken,
        rate_rps=rate.rate_rps,
        most_rps=rate.bound(window),
        taken=rate.taken,
        early_rps=rate.early_rps,
        ahead=ahead,
        silence_s=worker.heartbeat_interval_s,
    )


LEASE_S = 10.0
"""The intended length of a lease, and the work of a full backlog."""
_USUAL_SILENCE_S, _LONGEST_SILENCE_S = 1.0, 10.0
"""Where many workers report less often than usual, a backlog also covers the time between reports."""
MAX_SIZE = 2_000_000
"""The largest lease, at any rate."""
_USUALLY_HELD = 300
"""Leases that one worker holds at a time, however small, as long as they fill its window."""
_HELD_WINDOWS = 3
"""Small leases may be more than that: one window of them is in flight, and two can be taken."""
_FEWEST_WINDOWS = 2
"""Untaken work that keeps the window full until the next lease arrives."""
_FIRST_WINDOWS, _FIRST_LEASES = 10, 4
"""The backlog of a worker whose rate is unknown, and its leases."""
_EARLY_S = 1.0
"""Its backlog once its first checkpoint has reported a rate."""
_SMALLEST_WINDOWS = 0.1
_SMALLEST_S = 0.5
"""The smallest lease near the end of the space, or messages would cost more than requests."""
_MOST_KEPT_S = 30.0
"""No worker keeps more work than this; it was dealt on a wrong guess of the rate."""
_KEPT_S = 15.0
_MOST_WINDOWS = 3
"""A backlog that was not quite full with two windows may get a lease of one more."""
_KEPT_WINDOWS = 2
_MARGIN_S = 1.0
"""Work too small to move."""


def find_full(backlog: Backlog) -> int:
    """How much untaken work fills the backlog of a worker."""
    early = math.ceil(_EARLY_S * backlog.early_rps)
    goal = _bound_goal(backlog, _FIRST_WINDOWS * backlog.window, backlog.taken, early)
    silent_s = min(max(0.0, backlog.silence_s - _USUAL_SILENCE_S), _LONGEST_SILENCE_S)
    return max(_FEWEST_WINDOWS * backlog.window, goal) + math.ceil(silent_s * (backlog.rate_rps or 0.0))


def size_lease(backlog: Backlog, share: int) -> int:
    """The size of a worker's next lease, from its share of the remaining requests."""
    first = math.ceil(_FIRST_WINDOWS * backlog.window / _FIRST_LEASES)
    early = math.ceil(_EARLY_S * backlog.early_rps / 2)
    goal = max(backlog.window, _bound_goal(backlog, first, backlog.taken // 2, early))
    if backlog.rate_rps is None:
        smallest = math.ceil(_SMALLEST_WINDOWS * backlog.window)
    else:
        smallest = math.ceil(_SMALLEST_S * backlog.rate_rps)
    return min(MAX_SIZE, max(smallest, min(goal, share)))


def find_most_held(window: int, range_size: int | None) -> int:
    """The most leases of a worker at a time."""
    needed = math.ceil(_HELD_WINDOWS * window / range_size) if range_size else 0
    return min(MOST_LEASES, max(_USUALLY_HELD, needed))


def choose_sizes(
    backlogs: Sequence[Backlog], pending: int, *, weight: float, range_size: int | None, most: int
) -> list[tuple[Backlog, int]]:
    """Choose the recipients and sizes of new leases, the workers that would run dry first in front.

    Args:
        backlogs: the workers that can take leases.
        pending: unleased requests.
        weight: the sum of the weights of all workers of the run, from `find_weight`.
        range_size: the size of each lease, if the spec fixes it.
        most: how many leases at most.
    """
    mean_rps = find_mean_rate(backlogs)
    most_held = find_most_held(max((each.window for each in backlogs), default=1), range_size)
    heap = []
    for number, each in enumerate(backlogs):
        untaken, full = each.untaken, find_full(each)
        if untaken < full and len(each.leases) < most_held:
            rate_rps = find_weight(each, mean_rps)
            heap.append((untaken / rate_rps, number, rate_rps, untaken, full, len(each.leases)))
    heapify(heap)
    chosen: list[tuple[Backlog, int]] = []
    while heap and pending > 0 and len(chosen) < most:
        busy_s, number, rate_rps, untaken, full, held = heap[0]
        share = math.ceil(pending * rate_rps / (2 * weight)) if weight else pending
        size = min(pending, range_size or size_lease(backlogs[number], share))
        chosen.append((backlogs[number], size))
        pending -= size
        if untaken + size < full and held + 1 < most_held:
            busy_s += size / rate_rps
            heapreplace(heap, (busy_s, number, rate_rps, untaken + size, full, held + 1))
        else:
            heappop(heap)
    return chosen


def estimate_room(workers: int, weight: float, *, window: int, range_size: int | None) -> int:
    """About how much untaken work fills the backlogs of all workers, plus a lease for each.

    Args:
        workers: how many there are.
        weight: the sum of their weights, from `find_weight`.
        window: the requests that each may have in flight.
        range_size: the size of each lease, if the spec fixes it.
    """
    smallest = max((_FEWEST_WINDOWS + 1) * window, 2 * (range_size or 0))
    return max(math.ceil(2 * LEASE_S * weight), workers * smallest)


def find_mean_rate(backlogs: Sequence[Backlog]) -> float | None:
    """The mean of the known rates, in requests per second."""
    rates = [each.rate_rps for each in backlogs if each.rate_rps is not None]
    return sum(rates) / len(rates) if rates else None


def find_weight(backlog: Backlog, mean_rps: float | None) -> float:
    """The rate of a worker in comparisons: the mean if its own is unknown, else a guess."""
    if backlog.rate_rps is not None:
        return backlog.rate_rps
    return float(backlog.window) if mean_rps is None else mean_rps


def _bound_goal(backlog: Backlog, *guesses: int) -> int:
    """Ten seconds of work; while the rate is unknown, the largest guess within that time."""
    if backlog.rate_rps is not None:
        return math.ceil(LEASE_S * backlog.rate_rps)
    guess, most = max(guesses), LEASE_S * backlog.most_rps
    return guess if most >= guess else math.ceil(most)


def find_excess(backlogs: Sequence[Backlog]) -> AskedEnds:
    """Shorten the leases of workers with far more work than intended; they keep a full backlog."""
    asked: AskedEnds = {}
    for each in backlogs:
        if each.untaken > max(_MOST_WINDOWS * each.window, _MOST_KEPT_S * each.most_rps):
            asked |= trim_backlog(each, max(_KEPT_WINDOWS * each.window, math.ceil(_KEPT_S * each.most_rps)))
    return asked


def find_uneven(backlogs: Sequence[Backlog]) -> AskedEnds:
    """Shorten the leases of workers that would end later than average, when nothing is left to deal."""
    mean_rps = find_mean_rate(backlogs)
    weights = [find_weight(each, mean_rps) for each in backlogs]
    if not (total := sum(weights)):
        return {}
    even_s = sum(each.untaken for each in backlogs) / total
    asked: AskedEnds = {}
    for each, weight in zip(backlogs, weights, strict=True):
        if each.untaken > (even_s + _MARGIN_S) * weight:
            asked |= trim_backlog(each, math.ceil(even_s * weight))
    return asked


def trim_backlog(backlog: Backlog, keep: int) -> AskedEnds:
    """Shorten the leases of a worker to this much untaken work, beginning with the last one."""
    ends: dict[str, int] = {}
    for lease, (taken, end) in backlog.leases.items():
        kept = min(end - taken, keep)
        keep -= kept
        if taken + kept < end:
            ends[lease] = taken + kept
    return {backlog.incarnation: ends} if ends else {}
