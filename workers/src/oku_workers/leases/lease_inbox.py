"""Decides about leases that arrive: each is taken once, in time, and with a spec that is known.

A message may be lost, doubled, late or for another process. What this worker can't begin any more it gives
back, so that its coordinator need not wait for it.
"""

from enum import StrEnum
from typing import NamedTuple

from oku_core.messaging.hook import NO_SETUP, SetupData
from oku_core.messaging.lease import Lease, LeaseBatch, read_lease_number
from oku_core.messaging.order import Stop
from oku_core.process.clock import SteadyClock
from oku_core.spec.spec import Spec

MOST_SPECS = 4
"""How many runs a worker remembers the specs of."""
REMEMBERED_S = 3600.0
"""How long a worker refuses a lease that was ended before it arrived, and stays silent about a lost one."""
LATEST_S = 60.0
"""A lease that is sent again may be in time for so much longer: its sender only estimates this clock."""


class Objection(StrEnum):
    """Why a lease is given back unbegun."""

    STALE = "its message is stale"
    ENDED = "it was ended before it came"
    STOPPED = "its run was stopped"
    LEAVING = "the worker is about to leave"
    OVER = "the time of its run is over"
    USED = "the worker has run user code of another run"


class Arrival(NamedTuple):
    """A lease that has arrived, with what there is against it."""

    lease: Lease
    spec: Spec
    objection: Objection | None
    setup: SetupData = NO_SETUP


class LeaseInbox:
    """Remembers which leases have arrived.

    Args:
        incarnation: the id of this process.
        clock: Unix time, as in progress.
    """

    def __init__(self, incarnation: str, clock: SteadyClock) -> None:
        self._incarnation = incarnation
        self._clock = clock
        self._known: dict[str, float] = {}
        """Leases that have come, each with the time until which it is remembered; that roughly rises."""
        self._ended: dict[str, float] = {}
        """Leases that were ended before they came, each with such a time."""
        self._lost: dict[str, float] = {}
        """Leases with unknown counts, each with the Unix time until which it is remembered."""
        self._specs: dict[str, tuple[Spec, SetupData]] = {}
        self._stopped: dict[str, int] = {}
        self.is_leaving = False

    @property
    def specs(self) -> list[str]:
        """The runs whose spec is known, by `build_spec_key`, the newest last."""
        return list(self._specs)

    def accept(self, batch: LeaseBatch) -> list[Arrival]:
        """The leases of a message that were not there before; none if it can't be understood here."""
        if batch.incarnation != self._incarnation:
            return []
        known = self._find_spec(batch)
        if known is None:
            return []
        spec, setup = known
        self._forget_old()
        arrivals = []
        for lease in batch.leases:
            is_new = lease.id not in self._known and lease.id not in self._lost
            self._known[lease.id] = max(self._known.get(lease.id, 0.0), batch.start_by + LATEST_S)
            if is_new:
                arrivals.append(Arrival(lease, spec, self._find_objection(lease, batch), setup))
        return arrivals

    def refuse_unknown(self, lease: str) -> bool:
        """Refuse a lease from now on; False if it is known, and needs no report."""
        if lease in self._known or lease in self._ended or lease in self._lost:
            return False
        self._ended[lease] = self._clock.now() + REMEMBERED_S
        return True

    def record_loss(self, lease: str) -> None:
        """Report nothing of this lease from now on: its counts are unknown."""
        self._lost[lease] = self._clock.now() + REMEMBERED_S

    def record_end(self, lease: str) -> None:
        """Report nothing of a confirmed lease to a coordinator that still asks for it.

        Another coordinator confirmed it, or this one rejected it. A report that nothing was taken would be
        wrong.
        """
        until = max(self._known.pop(lease, 0.0), self._clock.now() + LATEST_S)
        self._known[lease] = until

    def stop(self, order: Stop) -> None:
        """Refuse the leases that are meant, should they still arrive."""
        up_to = max(order.up_to, self._stopped.pop(order.run, -1))
        self._stopped[order.run] = up_to
        _keep_newest(self._stopped)

    def _find_spec(self, batch: LeaseBatch) -> tuple[Spec, SetupData] | None:
        known = self._specs.pop(batch.spec_key, None)
        if batch.spec is not None:
            known = batch.spec, SetupData(batch.setup, batch.setup_data)
        if known is not None:
            self._specs[batch.spec_key] = known
            _keep_newest(self._specs)
        return known

    def _find_objection(self, lease: Lease, batch: LeaseBatch) -> Objection | None:
        if self.is_leaving:
            return Objection.LEAVING
        if lease.id in self._ended:
            return Objection.ENDED
        if read_lease_number(lease.id) <= self._stopped.get(lease.run, -1):
            return Objection.STOPPED
        if self._clock.now() > batch.start_by:
            return Objection.STALE
        return None

    def _forget_old(self) -> None:
        now = self._clock.now()
        for remembered in (self._known, self._ended, self._lost):
            while remembered and remembered[lease := next(iter(remembered))] < now:
                del remembered[lease]


def _keep_newest(by_run: dict[str, tuple[Spec, SetupData]] | dict[str, int]) -> None:
    while len(by_run) > MOST_SPECS:
        del by_run[next(iter(by_run))]
