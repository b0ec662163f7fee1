"""The parts that all others build on: clock, ledger, broker, supervised tasks, telemetry."""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from oku_coordinator.broker.coordinator_transport import (
    CoordinatorTransport,
    build_coordinator_transport,
)
from oku_coordinator.clock.clock_store import LISTEN_S, ClockStore
from oku_coordinator.event_loop import LoopSignals
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.schema import lock_ledger
from oku_coordinator.ledger.storage.storage_health import StorageError, StorageHealth
from oku_coordinator.ledger.tables import run_table
from oku_coordinator.runs.notices import Troubles
from oku_coordinator.settings import CoordinatorSettings
from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_coordinator.telemetry.rejections import Rejections
from oku_coordinator.telemetry.telemetry import Telemetry
from oku_coordinator.watches.storage_watch import StorageWatch
from oku_core.messaging.signing import Reject, Signer
from oku_core.process.clock import SteadyClock
from oku_core.process.supervision import Supervisor

LOCK_WAIT_S = 10.0
"""How long a coordinator waits for its predecessor to release the ledger."""
_LONGEST_CONNECT_S = 30
_BUSY_TIMEOUT_S = 0.5
"""How long it waits for any other process that locks the file; the event loop is blocked meanwhile."""


@dataclass(frozen=True, kw_only=True)
class Platform:
    """The parts of the platform that a simulation replaces.

    Args:
        build_supervisor: builds the supervisor of tasks, from the rules for fatal errors and for pauses.
        build_transport: builds the way to the workers and back.
        kernel: the id of the kernel whose monotonic clock is read; by default this machine's.
        lock_wait_s: how long to wait for a ledger that another coordinator holds.
    """

    build_supervisor: Callable[..., Supervisor] = Supervisor
    build_transport: Callable[[CoordinatorSettings, Signer, Reject], CoordinatorTransport] = (
        build_coordinator_transport
    )
    kernel: str | None = None
    lock_wait_s: float = LOCK_WAIT_S


REAL = Platform()
"""The platform of a coordinator in its own process."""


class Foundation:
    """The ledger, open and locked, and the running clock; no task is started."""

    def __init__(self, settings: CoordinatorSettings, platform: Platform = REAL) -> None:
        self.signals, self.clock, metrics = LoopSignals(), SteadyClock(), Metrics()
        rejections = Rejections(metrics)
        self.signer = Signer(settings.message_key)
        transport = platform.build_transport(settings, self.signer, rejections.record)
        passing = (OSError, sqlite3.OperationalError, *transport.passing)
        self.supervisor = platform.build_supervisor(is_fatal, passing, self.signals.rest)
        self.inbound = transport.build_inbound(self.supervisor)
        self.broker = transport.build_broker(self.inbound)
        self.lock = lock_ledger(
            settings.ledger_path, wait_s=platform.lock_wait_s, trusts_folder=settings.trusts_data_dir
        )
        self.ledger = Ledger(
            settings.ledger_path,
            publishes=settings.loki is not None,
            storage=StorageHealth(metrics.count_storage_fault),
            busy_timeout_s=_BUSY_TIMEOUT_S,
        )
        self.storage_watch = StorageWatch(self.ledger)
        self.telemetry = Telemetry(settings, self.ledger, metrics, self.clock)
        self.clock_store = ClockStore(self.clock, settings.clock_path, platform.kernel)
        with self.ledger.read() as t:
            current = run_table.fetch_current_run(t)
        self.clock_store.restore(is_run_active=current is not None and current.is_active)
        self.troubles = FoundationTroubles(self, rejections)

    async def settle_clock(self) -> None:
        """Continue the clock of the active run, if necessary from the workers; the broker may be down."""
        if self.clock_store.is_settled:
            return
        for _ in range(_LONGEST_CONNECT_S):
            if not self.inbound.is_connected:
                await self.signals.rest(1.0)
        await self.signals.rest(LISTEN_S)
        self.clock_store.settle()

    def close(self) -> None:
        """Release the ledger."""
        self.ledger.close()
        self.lock.release()


class FoundationTroubles(Troubles):
    """Reports problems with the foundation of a coordinator."""

    def __init__(self, foundation: Foundation, rejections: Rejections) -> None:
        self._foundation = foundation
        self._rejections = rejections

    def find_obstacle(self) -> str:
        """Why this coordinator is not ready, in a line; empty if it is ready."""
        if trouble := self._foundation.ledger.storage.trouble:
            return f"the ledger cannot be used: {trouble}"
        return "" if self._foundation.inbound.is_connected else "no broker"

    def find_broker_trouble(self) -> str:
        """The problem with the broker; empty if there is none."""
        if refusal := self._foundation.inbound.refusal:
            return f"the broker refuses messages ({refusal})"
        return "the broker does not answer" if self._foundation.broker.is_away else ""

    def list_other_troubles(self) -> Iterator[str]:
        """Yield all other problems, a line each."""
        publisher = self._foundation.telemetry.publisher
        if publisher is not None and publisher.trouble:
            yield f"Loki: {publisher.trouble}"
        yield from self._rejections.describe()
        # A fault of the ledger's storage is one notice, not one for each task that it stops.
        yield from self._foundation.supervisor.find_troubles(besides=(StorageError,))


def is_fatal(error: Exception) -> bool:
    """Whether an error is permanent: a broken ledger is, a full disk is not."""
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
