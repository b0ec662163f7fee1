"""Builds the parts of a coordinator: what all runs share, and the loops that do the work."""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from oku_coordinator.active_run import ActiveRuns, Installation
from oku_coordinator.api.http_servers import HttpServers
from oku_coordinator.broker.inbound import Inbound
from oku_coordinator.broker.sender import Broker, Link
from oku_coordinator.checkpoint_receiver import CheckpointReceiver
from oku_coordinator.clock.clock_store import ClockStore
from oku_coordinator.files.file_access import FileAccess
from oku_coordinator.files.file_store import FileStore
from oku_coordinator.leasing.delivery import Delivery
from oku_coordinator.leasing.void_work import VoidWork
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.schema import lock_ledger
from oku_coordinator.ledger.storage.storage_health import StorageError, StorageHealth
from oku_coordinator.ledger.tables import run_table
from oku_coordinator.loop_signals import LoopSignals
from oku_coordinator.main_loop import MainLoop
from oku_coordinator.message_handler import MessageHandler
from oku_coordinator.runs.file_keeper import FileKeeper
from oku_coordinator.runs.notices import Troubles
from oku_coordinator.runs.readiness import Readiness
from oku_coordinator.runs.retention import Retention
from oku_coordinator.runs.runs import Runs
from oku_coordinator.servers.served_count import NamedServers, ServedCounter
from oku_coordinator.servers.server_watch import ServerWatch
from oku_coordinator.settings import CoordinatorSettings
from oku_coordinator.telemetry.metrics import Metrics
from oku_coordinator.telemetry.rejections import Rejections
from oku_coordinator.telemetry.telemetry import Telemetry
from oku_coordinator.ticker import Ticker
from oku_coordinator.watches.end_watch import EndWatch
from oku_coordinator.watches.storage_watch import StorageWatch
from oku_coordinator.watches.worker_watch import WorkerWatch
from oku_coordinator.workers.assignment import Assignment, NoWorkerLimits, WorkerLimits
from oku_coordinator.workers.intervals import IntervalAnnouncer
from oku_coordinator.workers.liveness import Roster
from oku_coordinator.workers.renewal import Renewal
from oku_core.broker.celery_app import App, build_app
from oku_core.broker.transport import find_connection_errors
from oku_core.process.clock import SteadyClock
from oku_core.process.supervision import Supervisor

if TYPE_CHECKING:
    from oku_coordinator.kube.facade import KubeFacade

LOCK_WAIT_S = 10.0
"""How long a coordinator waits for the one before it to let go of the ledger."""
_LONGEST_CONNECT_S = 30
_BUSY_TIMEOUT_S = 0.5
"""How long it waits for any other process that locks the file; its event loop stands still meanwhile."""


@dataclass(frozen=True, kw_only=True)
class Platform:
    """What a simulation has of its own.

    Args:
        build_supervisor: of tasks, out of what is fatal, what passes, and how to pause.
        build_broker: of the application and of the connection to the broker.
        build_inbound: of the application and of the supervisor.
        kernel: whose monotonic clock is read; by default that of this machine.
        lock_wait_s: how long to wait for a ledger that another coordinator holds.
    """

    build_supervisor: Callable[..., Supervisor] = Supervisor
    build_broker: Callable[[App, Link], Broker] = Broker
    build_inbound: Callable[[App, Supervisor], Inbound] = Inbound
    kernel: str | None = None
    lock_wait_s: float = LOCK_WAIT_S


REAL = Platform()
"""That of a coordinator in a process of its own."""


class Service(Protocol):
    """Works in the background."""

    def start(self, supervisor: Supervisor) -> None:
        """Begin to work, in the running event loop."""

    async def end(self) -> None:
        """Stop."""


class Assembly:
    """The parts of one coordinator; nothing is started.

    Args:
        settings: of the coordinator.
        platform: what it stands on.
    """

    def __init__(self, settings: CoordinatorSettings, platform: Platform = REAL) -> None:
        self.signals, self.clock, metrics = LoopSignals(), SteadyClock(), Metrics()
        self.rejections = Rejections(metrics)
        app = build_app(settings.broker_url, settings.message_key, self.rejections.record)
        passing = (OSError, sqlite3.OperationalError, *find_connection_errors(app))
        self.supervisor = platform.build_supervisor(is_fatal, passing, self.signals.rest)
        self.inbound = platform.build_inbound(app, self.supervisor)
        self.broker = platform.build_broker(app, self.inbound)
        self.lock = lock_ledger(
            settings.ledger_path, wait_s=platform.lock_wait_s, trusts_folder=settings.trusts_data_dir
        )
        self.ledger = Ledger(
            settings.ledger_path,
            publishes=settings.loki is not None,
            storage=StorageHealth(metrics.count_storage_fault),
            busy_timeout_s=_BUSY_TIMEOUT_S,
        )
        self.telemetry = Telemetry(settings, self.ledger, metrics, self.clock)
        self.clock_store = ClockStore(self.clock, settings.clock_path, platform.kernel)
        with self.ledger.read() as t:
            current = run_table.fetch_current_run(t)
        self.clock_store.begin(is_run_active=current is not None and current.is_active)
        self.file_access = FileAccess(app.signer, self.clock.now)
        self.file_store = FileStore(settings.files_path, settings.file_limits)
        self.roster = Roster(settings.worker_timeout_s)
        self.kube = _enter_cluster(settings, self.ledger, self.signals)
        self.assignment = Assignment(
            ledger=self.ledger, roster=self.roster, limits=self.kube or _choose_limits(settings)
        )
        self.troubles = InstallationTroubles(self)
        self._build_runs(settings)
        self._build_loops(settings)
        self.servers = HttpServers(
            settings=settings,
            ledger=self.ledger,
            runs=self.runs,
            metrics=metrics,
            troubles=self.troubles,
            publisher=self.telemetry.publisher,
            scaling=self.kube,
            file_store=self.file_store,
            file_access=self.file_access,
            clock_store=self.clock_store,
            signer=app.signer,
            supervisor=self.supervisor,
            clock=self.clock.now,
        )

    @property
    def services(self) -> list[Service]:
        """What works in the background, in the order in which it begins."""
        found = (
            self.server_watch,
            self.kube,
            self.telemetry.publisher and self.telemetry.coverage,
            self._retention,
            self._storage_watch,
            self.telemetry.publisher,  # at the end, what the others leave is for it
        )
        return [service for service in found if service is not None]

    async def listen(self, seconds: float) -> None:
        """Hear workers for some seconds, unless the broker is away for long."""
        for _ in range(_LONGEST_CONNECT_S):
            if not self.inbound.is_connected:
                await self.signals.rest(1.0)
        await self.signals.rest(seconds)

    def close(self) -> None:
        """Let go of the ledger."""
        self.ledger.close()
        self.lock.release()

    def _build_runs(self, settings: CoordinatorSettings) -> None:
        servers = (self.kube and self.kube.servers) or NamedServers(settings.server_urls)
        counter = ServedCounter(servers, self.ledger)
        self.server_watch = (
            ServerWatch(counter, self.ledger, self.signals, self.clock.now) if settings.server_urls else None
        )
        keeper = FileKeeper(self.ledger, self.file_store)
        self.readiness = Readiness(
            self.ledger,
            self.roster,
            self.assignment,
            kube=self.kube,
            server_watch=self.server_watch,
            troubles=self.troubles,
            files=settings.files,
            keeper=keeper,
            most_queued=settings.most_queued,
            expected_workers=settings.expected_workers,
            allows_user_code=settings.allows_user_code,
        )
        self.runs = Runs(self.ledger, counter, self.signals, self.broker, self.readiness, self.clock.now)
        self._retention = Retention(
            self.ledger, settings.reports_path, settings.retention, self.clock.now, keeper
        )
        self._storage_watch = StorageWatch(self.ledger)

    def _build_loops(self, settings: CoordinatorSettings) -> None:
        delivery = Delivery(self.broker, self.roster, self.ledger, settings.server_urls, self.file_access)
        self.active_runs = ActiveRuns(
            Installation(
                ledger=self.ledger,
                roster=self.roster,
                assignment=self.assignment,
                broker=self.broker,
                delivery=delivery,
                file_access=self.file_access,
                readiness=self.readiness,
                metrics=self.telemetry.metrics,
                signals=self.signals,
                clock=self.clock.now,
                start_within_s=settings.start_within_s,
            )
        )
        self.ticker = Ticker(
            ledger=self.ledger,
            roster=self.roster,
            assignment=self.assignment,
            runs=self.runs,
            recorder=self.telemetry.recorder,
            metrics=self.telemetry.metrics,
            recent_runs=self.telemetry.recent_runs,
            active_runs=self.active_runs,
            clock=self.clock.now,
        )
        announcer = IntervalAnnouncer(self.broker, self.clock_store, self.file_access)
        self.message_handler = MessageHandler(
            signals=self.signals,
            clock_store=self.clock_store,
            roster=self.roster,
            active_runs=self.active_runs,
            ticker=self.ticker,
            interval_announcer=announcer,
        )
        self.receiver = CheckpointReceiver(
            ledger=self.ledger,
            broker=self.broker,
            active_runs=self.active_runs,
            metrics=self.telemetry.metrics,
            clock=self.clock.now,
        )
        self.main_loop = MainLoop(
            ledger=self.ledger,
            inbound=self.inbound,
            signals=self.signals,
            clock=self.clock,
            clock_store=self.clock_store,
            roster=self.roster,
            assignment=self.assignment,
            active_runs=self.active_runs,
            void_work=VoidWork(ledger=self.ledger, roster=self.roster, broker=self.broker, delivery=delivery),
            ticker=self.ticker,
            worker_watch=WorkerWatch(self.ledger, self.runs, self.readiness),
            end_watch=EndWatch(self.ledger, self.runs),
            interval_announcer=announcer,
            renewal=Renewal(roster=self.roster, broker=self.broker),
            followers=self.runs.followers,
            publisher=self.telemetry.publisher,
        )


class InstallationTroubles(Troubles):
    """What is wrong with the parts of a coordinator.

    Args:
        parts: they may still be built.
    """

    def __init__(self, parts: Assembly) -> None:
        self._parts = parts

    def find_obstacle(self) -> str:
        """Why this coordinator is not ready, in a line; empty if it is."""
        if trouble := self._parts.ledger.storage.trouble:
            return f"the ledger cannot be used: {trouble}"
        return "" if self._parts.inbound.is_connected else "no broker"

    def find_of_broker(self) -> str:
        """What is wrong with the broker; empty if nothing is."""
        if refusal := self._parts.inbound.refusal:
            return f"the broker refuses messages ({refusal})"
        return "the broker does not answer" if self._parts.broker.is_away else ""

    def find_others(self) -> Iterator[str]:
        """What else is wrong, a line each."""
        publisher = self._parts.telemetry.publisher
        if publisher is not None and publisher.trouble:
            yield f"Loki: {publisher.trouble}"
        yield from self._parts.rejections.describe()
        # A fault of the ledger's storage is one notice, not one for each task that it stops.
        yield from self._parts.supervisor.find_troubles(besides=(StorageError,))


def is_fatal(error: Exception) -> bool:
    """Whether an error does not pass by itself: a ledger that is broken, but not a disk that is full."""
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)


def _choose_limits(settings: CoordinatorSettings) -> WorkerLimits:
    """A stack that was started for a run has its workers alone."""
    return NoWorkerLimits() if settings.expected_workers else WorkerLimits()


def _enter_cluster(
    settings: CoordinatorSettings, ledger: Ledger, signals: LoopSignals
) -> "KubeFacade | None":
    if settings.kube is None:
        return None
    from oku_coordinator.kube.facade import KubeFacade  # noqa: PLC0415  # nobody else has the client library

    return KubeFacade(settings.kube, settings.server_urls, ledger, signals)
