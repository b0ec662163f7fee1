"""Wires the parts of a coordinator: the foundation, what all runs share, and the loops that do the work."""

from typing import TYPE_CHECKING

from oku_coordinator.active_run import ActiveRuns, Installation
from oku_coordinator.api.http_servers import HttpServers
from oku_coordinator.files.file_access import FileAccess
from oku_coordinator.files.file_store import FileStore
from oku_coordinator.foundation import REAL, Foundation, Platform
from oku_coordinator.leasing.delivery import Delivery
from oku_coordinator.loops.main_loop import MainLoop
from oku_coordinator.loops.message_handler import CheckpointReceiver, MessageHandler
from oku_coordinator.loops.ticker import Ticker
from oku_coordinator.runs.file_keeper import FileKeeper
from oku_coordinator.runs.readiness import Readiness
from oku_coordinator.runs.retention import Retention
from oku_coordinator.runs.runs import Runs
from oku_coordinator.servers.served_count import NamedServers, ServedCounter
from oku_coordinator.servers.server_watch import ServerWatch
from oku_coordinator.settings import CoordinatorSettings
from oku_coordinator.workers.assignment import Assignment, NoWorkerLimits, WorkerLimits
from oku_coordinator.workers.liveness import Roster
from oku_coordinator.workers.repeated_orders import IntervalAnnouncer

if TYPE_CHECKING:
    from oku_coordinator.event_loop import BackgroundService
    from oku_coordinator.kube.facade import KubeFacade


class Assembly:
    """The parts of one coordinator, not started."""

    def __init__(self, settings: CoordinatorSettings, platform: Platform = REAL) -> None:
        self._settings = settings
        self.base = base = Foundation(settings, platform)
        self.kube = _enter_cluster(settings, base)
        file_store = FileStore(settings.files_path, settings.file_limits)
        keeper = FileKeeper(base.ledger, file_store)
        self._retention = Retention(
            base.ledger, settings.reports_path, settings.retention, base.clock.now, keeper
        )
        counter = ServedCounter(
            (self.kube and self.kube.servers) or NamedServers(settings.server_urls), base.ledger
        )
        self.server_watch = (
            ServerWatch(counter, base.ledger, base.signals, base.clock.now) if settings.server_urls else None
        )
        self.installation = self._build_installation(keeper)
        self.active_runs = ActiveRuns(self.installation)
        self.runs = Runs(
            base.ledger, counter, base.signals, base.broker, self.installation.readiness, base.clock.now
        )
        self._build_loops()
        self.servers = HttpServers(
            settings, base, self.runs, self.kube, file_store, self.installation.file_access
        )

    def _build_installation(self, keeper: FileKeeper) -> Installation:
        settings, base = self._settings, self.base
        roster = Roster(settings.worker_timeout_s)
        limits = self.kube or (NoWorkerLimits() if settings.expected_workers else WorkerLimits())
        assignment = Assignment(ledger=base.ledger, roster=roster, limits=limits)
        file_access = FileAccess(base.signer, base.clock.now)
        return Installation(
            ledger=base.ledger,
            roster=roster,
            assignment=assignment,
            broker=base.broker,
            delivery=Delivery(base.broker, roster, base.ledger, settings.server_urls, file_access),
            file_access=file_access,
            readiness=Readiness(
                base.ledger,
                roster,
                assignment,
                kube=self.kube,
                server_watch=self.server_watch,
                troubles=base.troubles,
                files=settings.files,
                keeper=keeper,
                most_queued=settings.most_queued,
                expected_workers=settings.expected_workers,
                allows_user_code=settings.allows_user_code,
            ),
            metrics=base.telemetry.metrics,
            signals=base.signals,
            clock=base.clock.now,
            start_within_s=settings.start_within_s,
        )

    def _build_loops(self) -> None:
        """Build the handler of worker messages and the periodic loops."""
        base, installation, active_runs = self.base, self.installation, self.active_runs
        announcer = IntervalAnnouncer(base.broker, base.clock_store, installation.file_access)
        self.ticker = Ticker(installation, active_runs, self.runs, base.telemetry)
        self.receiver = CheckpointReceiver(
            ledger=base.ledger,
            broker=base.broker,
            active_runs=active_runs,
            metrics=base.telemetry.metrics,
            printed=installation.readiness.printed,
            clock=base.clock.now,
        )
        self.message_handler = MessageHandler(
            installation, active_runs, self.ticker, base.clock_store, announcer
        )
        self.main_loop = MainLoop(installation, active_runs, self.ticker, announcer, self.runs, base)

    @property
    def services(self) -> "list[BackgroundService | KubeFacade]":
        """Background services, in the order in which they start."""
        telemetry = self.base.telemetry
        found = (
            self.server_watch,
            self.kube,
            telemetry.publisher and telemetry.coverage,
            self._retention,
            self.base.storage_watch,
            telemetry.publisher,  # last, because it sends the lines that the others leave
        )
        return [service for service in found if service is not None]


def _enter_cluster(settings: CoordinatorSettings, foundation: Foundation) -> "KubeFacade | None":
    if settings.kube is None:
        return None
    from oku_coordinator.kube.facade import KubeFacade  # noqa: PLC0415  # nobody else has the client library

    return KubeFacade(settings.kube, settings.server_urls, foundation.ledger, foundation.signals)
