"""Deals out the run that has its turn when a worker can take a lease, and calls leases back when it stops.

One call of `step` does what there is to do now; the main loop calls it when something has changed and at
least twice a second.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from oku_coordinator.broker.sender import Broker
from oku_coordinator.leasing.sizing import size_lease
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.workers.liveness import Roster, WorkerState
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.run_state import RunState
from oku_core.messaging.lease import LEASE_SLOTS, Lease, read_lease_number
from oku_core.messaging.server_headers import DELAY_HEADER, RUN_HEADER, SEED_HEADER
from oku_core.spec.spec import Spec
from oku_core.spec.values.header import Header
from oku_core.spec.values.url import Url

_log = logging.getLogger(__name__)

_START_WITHIN_S = 60.0
"""A lease message older than this is stale."""
_STOP_EVERY_S = 1.0
_BATCH = 100
"""Leases cut in one transaction; then others have their turn."""


class Dispatcher:
    """Has runs begun, deals them out and calls their leases back.

    Args:
        ledger: the truth.
        roster: who lives.
        broker: where leases go.
        server_urls: of Oku's own delay servers.
        begin: begins a pending run at monotonic seconds and Unix time, if it can; else it gives None.
    """

    def __init__(
        self,
        ledger: Ledger,
        roster: Roster,
        broker: Broker,
        server_urls: Sequence[str],
        begin: Callable[[RunRecord, float, float], RunRecord | None],
    ) -> None:
        self._ledger = ledger
        self._roster = roster
        self._broker = broker
        self._server_urls = tuple(server_urls)
        self._begin = begin
        self._stopped_at = -math.inf
        self.has_more = False
        """Whether lease slots are still free after the last step."""

    async def step(self, now: float, wall_now: float) -> RunRecord | None:
        """Do what there is to do; returns the run that has its turn.

        Args:
            now: monotonic seconds.
            wall_now: Unix time.
        """
        self.has_more = False
        run = self._ledger.runs.fetch_current()
        if run is None:
            return None
        if run.state == RunState.PENDING:
            begun = self._begin(run, now, wall_now)
            if begun is None:
                return run
            run = begun
        if run.state == RunState.RUNNING:
            await self._deal(run, wall_now)
        else:
            self._call_back(run, now)
        return run

    async def _deal(self, run: RunRecord, now: float) -> None:
        if self._broker.is_away:
            return
        workers = self._roster.workers(run.run)
        slots = find_free_slots(workers, self._ledger.leases.count_held(run.run))
        if not slots or not self._ledger.leases.count_pending(run.run):
            return
        self.has_more = len(slots) > _BATCH
        mean_rps = self._roster.measure_mean_rate()
        choices = [
            partial(size_lease, run.spec, workers=len(workers), rate_rps=worker.rate_rps or mean_rps)
            for worker in slots[:_BATCH]
        ]
        spec = build_sent_spec(run, self._server_urls)
        start_by = now + _START_WITHIN_S + self._roster.measure_clock_ahead_s()
        leases = [
            Lease(id=cut.id, run=run.run, start=cut.start, stop=cut.stop, start_by=start_by, spec=spec)
            for cut in self._ledger.leases.cut(run.run, choices, now)
        ]
        sent = await asyncio.to_thread(self._broker.send_leases, leases)
        if sent < len(leases):
            self.has_more = False  # not before the next round
            self._ledger.leases.expire([lease.id for lease in leases[sent:]], ExpiryReason.NOT_SENT, now)

    def _call_back(self, run: RunRecord, now: float) -> None:
        """Orders may be lost, so they are repeated until nothing is out."""
        if now - self._stopped_at < _STOP_EVERY_S:
            return
        self._stopped_at = now
        out = self._ledger.leases.fetch_active(run.run)
        up_to = max((read_lease_number(lease.id) for lease in out), default=0)
        self._broker.send_stop(run=run.run, up_to=up_to, leases=(), grace_s=run.spec.drain_s)


def find_free_slots(workers: Sequence[WorkerState], held: Mapping[str | None, int]) -> list[WorkerState]:
    """Which workers can take a lease, each once per free lease slot, the emptiest first.

    Args:
        workers: those that live.
        held: how many leases each has; None stands for leases that nobody has claimed yet. Some worker will
            take such a lease, so it fills a slot of one.
    """
    slots: list[WorkerState] = []
    for others in range(LEASE_SLOTS):
        slots += [worker for worker in workers if held.get(worker.name, 0) <= others]
    return slots[held.get(None, 0) :]


def build_sent_spec(run: RunRecord, server_urls: Sequence[str]) -> Spec:
    """The spec as workers get it.

    For our own delay servers it has their addresses and the headers that tell them the run, and the delay and
    the seed that it asks for.
    """
    spec = run.spec
    if not spec.brings_servers:
        return spec
    headers = [Header(f"{RUN_HEADER}: {run.run}")]
    if spec.delay is not None:
        headers.append(Header(f"{DELAY_HEADER}: {spec.delay}"))
    if spec.seed is not None:
        headers.append(Header(f"{SEED_HEADER}: {spec.seed}"))
    urls = tuple(Url(f"{url.rstrip('/')}/{{i}}") for url in server_urls)
    return msgspec.structs.replace(spec, urls=urls, headers=(*spec.headers, *headers))
