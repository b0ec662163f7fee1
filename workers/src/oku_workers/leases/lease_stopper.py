"""Stops leases early, in two steps: they are drained at once, and the rest is cancelled after a grace.

A lease that is drained takes no further index, while its requests in flight may end. When it is cancelled,
those that have not ended are dropped, and their indices given back.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from oku_core.messaging.lease import read_lease_number
from oku_core.messaging.order import Stop
from oku_workers.executions.execution import Execution
from oku_workers.executions.open_lease import OpenLease
from oku_workers.executions.scheduled_execution import ScheduledExecution
from oku_workers.leases.checkpointer import COALESCE_S, Checkpointer
from oku_workers.leases.run_watch import RunWatch
from oku_workers.runs.engine_switch import EngineSwitch


@dataclass
class LeaseStopper:
    """Stops the leases in hand; belongs to the thread of the event loop.

    Args:
        leases: those in hand, by id.
        engines: carry them out.
        watch: judges no window of a run that was stopped.
        checkpointer: sends their checkpoints.
    """

    leases: Mapping[str, OpenLease]
    engines: EngineSwitch
    watch: RunWatch
    checkpointer: Checkpointer

    def stop(self, order: Stop, wait_s: float) -> None:
        """Stop the leases that an order is meant for, after some seconds; until then none is taken anew."""
        if wait_s <= 0:
            self._stop_meant(order)
            return
        for lease in self._find_meant(order):
            if isinstance(execution := lease.execution, ScheduledExecution):
                end = execution.find_end(round((order.at or 0.0) * 1e9))
                self.engines.slot.feed.shorten(execution, end)
        asyncio.get_running_loop().call_later(wait_s, self._stop_meant, order)

    def stop_all(self, grace_s: float) -> None:
        """Stop every lease."""
        self._drain(self.leases.values(), grace_s)

    def end_run(self, run: str) -> None:
        """The time of a run is over."""
        self.watch.stop(run)
        ended = [lease for lease in self.leases.values() if lease.run == run]
        if ended:
            self._drain(ended, ended[0].execution.spec.drain_s)

    def _find_meant(self, order: Stop) -> list[OpenLease]:
        return [
            lease
            for lease in self.leases.values()
            if lease.run == order.run and read_lease_number(lease.id) <= order.up_to
        ]

    def _stop_meant(self, order: Stop) -> None:
        self.watch.stop(order.run)
        self._drain(self._find_meant(order), order.grace_s)

    def _drain(self, leases: Iterable[OpenLease], grace_s: float) -> None:
        loop = asyncio.get_running_loop()
        cancel_at = loop.time() + grace_s
        drained = []
        for lease in leases:
            execution = lease.execution
            if lease.is_open:
                self.engines.drain(execution)
                if cancel_at < execution.cancel_at:
                    execution.cancel_at = cancel_at
                    drained.append(execution)
        if drained:
            self.checkpointer.request(COALESCE_S)
            loop.call_later(grace_s, self._cancel, drained)

    def _cancel(self, executions: list[Execution]) -> None:
        for execution in executions:
            self.engines.cancel(execution)
