"""Divides what a run may use among its workers: requests in flight, connections, its highest rate.

`oku_core.messaging.share` has the protocol. A share grows only after all others have confirmed theirs, so the
total is never exceeded. Nothing here is durable: a coordinator that was restarted makes a new division, which
counts beside what the workers have until all of them have confirmed it.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from oku_coordinator.workers.worker_state import WorkerState
from oku_core.messaging.order import Control
from oku_core.messaging.share import Share

_REPEAT_S = 3.0
_PER_SECOND = 500
"""The number of shares sent in a second."""


@dataclass(frozen=True)
class Division:
    """How a run is divided.

    Attributes:
        number: rises with each division of a run, also after a restart of the coordinator.
        ranks: the ranks of the workers, by incarnation.
        is_alone: whether all workers have confirmed it, so that only it counts.
    """

    number: int
    ranks: Mapping[str, int]
    is_alone: bool = False

    def build_share(self, run: str, incarnation: str) -> Share | None:
        """Build the share of a worker; None if it has none."""
        rank = self.ranks.get(incarnation)
        if rank is None:
            return None
        return Share(run=run, number=self.number, rank=rank, of=len(self.ranks), is_alone=self.is_alone)


@dataclass(frozen=True)
class Fleet:
    """The workers of a run.

    Attributes:
        ranks: those that can take leases, by incarnation, with the ranks that they should have.
        holders: the processes with open leases, alive or not known to be dead.
        confirmed: by incarnation, the newest division that a worker has confirmed.
    """

    ranks: Mapping[str, int]
    holders: Collection[str]
    confirmed: Mapping[str, int]


def choose_division(current: Division | None, fleet: Fleet, number: int) -> Division:
    """The division that counts now.

    Args:
        current: the one until now; None for the first one of this coordinator.
        fleet: the workers.
        number: for a new division; higher than any before.

    Returns:
        The current division, the same one alone once everyone has confirmed it, or a new one. A new division
        only begins while no other waits for confirmations, unless one of these can never come.
    """
    if current is None or not (current.ranks or fleet.holders):
        # Without open leases nothing is in flight.
        return Division(number, fleet.ranks, is_alone=not fleet.holders)
    newest = max(fleet.confirmed.values(), default=0)
    if current.is_alone:
        is_due = current.ranks != fleet.ranks or newest > current.number
        return Division(number, fleet.ranks) if is_due else current
    awaited = (current.ranks.keys() & fleet.ranks.keys()) | set(fleet.holders)
    missing = {each for each in awaited if fleet.confirmed.get(each) != current.number}
    if not missing:
        return Division(current.number, current.ranks, is_alone=True)
    is_stuck = any(each in fleet.ranks and each not in current.ranks for each in missing)
    return Division(number, fleet.ranks) if is_stuck or newest > current.number else current


class Shares:
    """The shares of one run; the event loop changes them, and any thread may read them.

    Args:
        run: the run.
    """

    def __init__(self, run: str) -> None:
        self._run = run
        self._division: Division | None = None
        self._takers: Collection[str] = ()
        self._due_at = -math.inf
        self._next_change = -math.inf

    @property
    def is_awaited(self) -> bool:
        """Whether a division waits for the confirmations of workers."""
        return self._division is not None and not self._division.is_alone

    def find(self, incarnation: str) -> Share | None:
        """The share of a worker process; None if it has none."""
        division = self._division
        return None if division is None else division.build_share(self._run, incarnation)

    def find_takers(self, workers: Sequence[WorkerState]) -> list[WorkerState]:
        """The workers among these that may have requests in flight, and so may get leases."""
        return [worker for worker in workers if worker.incarnation in self._takers]

    def divide(
        self, workers: Sequence[WorkerState], holders: Collection[str], now: float, wall_now: float
    ) -> list[Control]:
        """Divide the run among workers; returns the messages to send.

        Args:
            workers: those that can take leases of it.
            holders: the processes with open leases of it.
            now: monotonic seconds.
            wall_now: Unix time.
        """
        ordered = sorted(workers, key=lambda worker: worker.name)
        ranks = {worker.incarnation: rank for rank, worker in enumerate(ordered)}
        confirmed = {worker.incarnation: worker.find_settled(self._run) for worker in workers}
        before = self._division
        last = max([0 if before is None else before.number, *confirmed.values()])
        number = max(last + 1, int(wall_now * 1000))
        division = choose_division(before, Fleet(ranks, holders, confirmed), number)
        is_new = before is None or division.number != before.number
        if is_new and now < self._next_change:
            return []
        if division == before and now < self._due_at:
            return []
        took_s = len(division.ranks) / _PER_SECOND
        self._due_at = now + max(_REPEAT_S, took_s)
        if is_new:
            self._next_change = now + took_s
        self._division = division
        if division.is_alone:
            self._takers = division.ranks.keys()
        shares = ((to, division.build_share(self._run, to)) for to in division.ranks)
        return [Control(incarnation=to, share=share) for to, share in shares]
