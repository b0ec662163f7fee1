"""Drains void leases that workers hold, drops void attempts at hooks, and lets leaving workers go.

It covers the workers of all runs. A worker that was declared dead may still work on leases that others have
by now, or on a run that has failed.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oku_coordinator.broker.sender import Broker
from oku_coordinator.leasing.delivery import Delivery
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import hooks
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.tables import lease_table
from oku_coordinator.workers.liveness import Roster
from oku_core.messaging.order import Control, DropHooks

Held = Mapping[str, Sequence[LeaseRecord]]
"""The open leases of runs, by the incarnations that hold them."""


@dataclass(kw_only=True)
class VoidWork:
    """Compares the leases and attempts that workers report with the ledger.

    Args:
        ledger: the truth.
        roster: the reports of workers.
        broker: sends orders about hooks.
        delivery: drains leases.
    """

    ledger: Ledger
    roster: Roster
    broker: Broker
    delivery: Delivery

    def sweep(self, held: Held) -> None:
        """Sweep all workers, beside the open leases of the active runs."""
        self._release_leaving(held)
        self._drain_void(held)
        self._drop_hooks()

    def _release_leaving(self, held: Held) -> None:
        """Release a leaving worker once no lease is on its way to it."""
        leaving = (worker.incarnation for worker in self.roster.find_leaving())
        self.broker.send(Control(incarnation=each, may_leave=True) for each in leaving if each not in held)

    def _drain_void(self, held: Held) -> None:
        is_open = {lease.id for leases in held.values() for lease in leases}
        others = {lease: process for process, lease in self.roster.list_leases() if lease not in is_open}
        if others:
            with self.ledger.read() as t:
                void = lease_table.find_void_leases(t, others)
            self.delivery.drain((others[lease], lease) for lease in void)

    def _drop_hooks(self) -> None:
        held = [(worker.incarnation, attempt) for worker, attempt in self.roster.list_hooks()]
        if not held:
            return
        void = defaultdict(list)
        with self.ledger.read() as t:
            found = hooks.find_void_attempts(t, held)
        for incarnation, attempt in found:
            void[incarnation].append(attempt)
        self.broker.send(DropHooks(incarnation=to, attempts=attempts) for to, attempts in void.items())
