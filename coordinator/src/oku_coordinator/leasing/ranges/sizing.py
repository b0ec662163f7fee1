"""How much work a worker is given: pure rules.

A worker's hands are full when it has about ten seconds of untaken work. A lease is meant to last about as
long; while the rate is unknown it is a window or what doubles the work done so far, but no more than ten
seconds of what can be at most, when answers are long in coming. Near the end of the space
leases shrink, so that all workers end together (guided self-scheduling: Polychronopoulos and Kuck, IEEE
Transactions on Computers C-36, 1987; here weighted by rate).
"""

import math
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.workers.worker_state import WorkerState
from oku_core.messaging.lease import MOST_LEASES


class HeldLease(NamedTuple):
    """An open lease with what is known of its worker's place in it.

    Attributes:
        id: the id of the lease.
        taken: the first position that was not taken when its worker was last heard.
        end: the first position that will not be taken.
    """

    id: str
    taken: int
    end: int


class Hands(NamedTuple):
    """The open leases of one process of one worker.

    Attributes:
        worker: its name.
        incarnation: its process.
        window: the requests that it may have in flight.
        leases: in the order in which it works on them.
        rate_rps: what it does in a second; None while that is unknown.
        most_rps: what it does in a second at most, as far as is known.
        taken: what it has taken of the run so far.
        ahead: how many positions its limits let it take beyond those that the ledger knows it has taken.
        silence_s: how old what is known of it may be.
    """

    worker: str
    incarnation: str
    window: int
    leases: tuple[HeldLease, ...]
    rate_rps: float | None
    most_rps: float
    taken: int
    ahead: int
    silence_s: float = 0.0

    @property
    def untaken(self) -> int:
        """How many indices it has yet to take; leases that only wait for their last answers have none."""
        return sum(lease.end - lease.taken for lease in self.leases)


def build_hands(worker: WorkerState, leases: Iterable[LeaseRecord], run: str, window: int) -> Hands:
    """Put together what ledger and heartbeats know of a worker in a run, with its window there."""
    told = worker.leases
    held, ahead = [], 0
    for lease in leases:
        progress = told.get(lease.id)
        taken = lease.done if progress is None else max(lease.done, progress.taken)
        ahead += max(0, min(lease.limit, lease.end) - lease.done)
        held.append(HeldLease(lease.id, min(taken, lease.end), lease.end))
    rate = worker.find_rate(run)
    return Hands(
        worker=worker.name,
        incarnation=worker.incarnation,
        window=window,
        leases=tuple(held),
        rate_rps=rate.rate_rps,
        most_rps=rate.bound(window),
        taken=rate.taken,
        ahead=ahead,
        silence_s=worker.heartbeat_interval_s,
    )


LEASE_S = 10.0
"""What a lease is meant to last, and the work that fills the hands of a worker."""
_USUAL_SILENCE_S, _LONGEST_UNHEARD_S = 1.0, 10.0
"""Where many workers speak less often than usual, hands hold what may be done unheard as well."""
MAX_SIZE = 2_000_000
"""No lease is larger, whatever the rate."""
_USUALLY_HELD = 300
"""Leases that one worker is given at a time, however small they are, as long as they fill its window."""
_HELD_WINDOWS = 3
"""Leases that a spec makes small may be more: one window of them is in flight, and two can be taken."""
_FEWEST_WINDOWS = 2
"""Untaken work that keeps the window full until more has come."""
_FIRST_WINDOWS = 4
_SMALLEST_WINDOWS = 0.1
_SMALLEST_S = 0.5
"""Near the end of the space leases are not smaller than this, or messages would outweigh requests."""


def find_full(hands: Hands) -> int:
    """How much untaken work fills the hands of a worker."""
    goal = _bound_goal(hands, _FIRST_WINDOWS * hands.window, hands.taken)
    unheard_s = min(max(0.0, hands.silence_s - _USUAL_SILENCE_S), _LONGEST_UNHEARD_S)
    return max(_FEWEST_WINDOWS * hands.window, goal) + math.ceil(unheard_s * (hands.rate_rps or 0.0))


def size_lease(hands: Hands, share: int) -> int:
    """How many requests the next lease of a worker should have, out of its share of what is left."""
    goal = max(hands.window, _bound_goal(hands, hands.window, hands.taken // 2))
    if hands.rate_rps is None:
        smallest = math.ceil(_SMALLEST_WINDOWS * hands.window)
    else:
        smallest = math.ceil(_SMALLEST_S * hands.rate_rps)
    return min(MAX_SIZE, max(smallest, min(goal, share)))


def find_most_held(window: int, range_size: int | None) -> int:
    """How many leases a worker may have at a time."""
    needed = math.ceil(_HELD_WINDOWS * window / range_size) if range_size else 0
    return min(MOST_LEASES, max(_USUALLY_HELD, needed))


def choose_sizes(
    hands: Sequence[Hands], pending: int, *, weight: float, range_size: int | None, most: int
) -> list[tuple[Hands, int]]:
    """Who gets leases of which size, those first who would be done soonest.

    Args:
        hands: of workers that can take leases.
        pending: requests that are in no lease.
        weight: the sum of the weights of all workers of the run, as `find_weight` gives them.
        range_size: the size of each lease, if the spec fixes it.
        most: how many leases at most.
    """
    mean_rps = find_mean_rate(hands)
    most_held = find_most_held(max((each.window for each in hands), default=1), range_size)
    heap = []
    for number, each in enumerate(hands):
        untaken, full = each.untaken, find_full(each)
        if untaken < full and len(each.leases) < most_held:
            rate_rps = find_weight(each, mean_rps)
            heap.append((untaken / rate_rps, number, rate_rps, untaken, full, len(each.leases)))
    heapify(heap)
    chosen: list[tuple[Hands, int]] = []
    while heap and pending > 0 and len(chosen) < most:
        busy_s, number, rate_rps, untaken, full, held = heap[0]
        share = math.ceil(pending * rate_rps / (2 * weight)) if weight else pending
        size = min(pending, range_size or size_lease(hands[number], share))
        chosen.append((hands[number], size))
        pending -= size
        if untaken + size < full and held + 1 < most_held:
            busy_s += size / rate_rps
            heapreplace(heap, (busy_s, number, rate_rps, untaken + size, full, held + 1))
        else:
            heappop(heap)
    return chosen


def estimate_room(workers: int, weight: float, *, window: int, range_size: int | None) -> int:
    """How much untaken work about fills the hands of all workers together, and a lease more for each.

    Args:
        workers: how many there are.
        weight: the sum of their weights, as `find_weight` gives them.
        window: the requests that each may have in flight.
        range_size: the size of each lease, if the spec fixes it.
    """
    smallest = max((_FEWEST_WINDOWS + 1) * window, 2 * (range_size or 0))
    return max(math.ceil(2 * LEASE_S * weight), workers * smallest)


def find_mean_rate(hands: Sequence[Hands]) -> float | None:
    """The mean rate of those whose rate is known, in requests per second."""
    rates = [each.rate_rps for each in hands if each.rate_rps is not None]
    return sum(rates) / len(rates) if rates else None


def find_weight(hands: Hands, mean_rps: float | None) -> float:
    """The rate of a worker for comparing it with others: the mean where its own is unknown, else a guess."""
    if hands.rate_rps is not None:
        return hands.rate_rps
    return float(hands.window) if mean_rps is None else mean_rps


def _bound_goal(hands: Hands, *guesses: int) -> int:
    """Ten seconds of work, or the largest guess while the rate is unknown, if it can be done in that time."""
    if hands.rate_rps is not None:
        return math.ceil(LEASE_S * hands.rate_rps)
    guess, most = max(guesses), LEASE_S * hands.most_rps
    return guess if most >= guess else math.ceil(most)
