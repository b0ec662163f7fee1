"""What one worker has in its hands: the untaken rest of its leases, beside how fast it works."""

from collections.abc import Iterable
from typing import NamedTuple

from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.workers.worker_state import WorkerState


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
