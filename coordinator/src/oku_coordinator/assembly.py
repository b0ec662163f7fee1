"""Wires the parts of a coordinator: the foundation, what all runs share, and the loops that do the work."""

from typing import TYPE_CHECKING, Protocol

from oku_coordinator.active_run import ActiveRuns
from oku_coordinator.api.http_servers import HttpServers
from oku_coordinator.files.file_access import FileAccess
from oku_coordinator.files.file_store import FileStore
from oku_coordinator.foundation import REAL, Foundation, Platform
from oku_coordinator.installation import Installation
from oku_coordinator.leasing.delivery import Delivery
from oku_coordinator.loops.checkpoint_receiver import CheckpointReceiver
from oku_coordinator.loops.main_loop import MainLoop
from oku_coordinator.loops.message_handler import MessageHandler
from oku_coordinator.loops.ticker import Ticker
from oku_coordinator.run_services import RunServices
from oku_coordinator.settings import CoordinatorSettings
from oku_coordinator.workers.assignment import Assignment, NoWorkerLimits, WorkerLimits
from oku_coordinator.workers.intervals import IntervalAnnouncer
from oku_coordinator.workers.liveness import Roster
from oku_core.process.supervision import Supervisor

if TYPE_CHECKING:
    from oku_coordinator.kube.facade import KubeFacade


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
        self.base = base = Foundation(settings, platform)
        self.kube = _enter_cluster(settings, base)
        roster = Roster(settings.worker_timeout_s)
        limits = self.kube or (NoWorkerLimits() if settings.expected_workers else WorkerLimits())
        assignment = Assignment(ledger=base.ledger, roster=roster, limits=limits)
        file_store = FileStore(settings.files_path, settings.file_limits)
        file_access = FileAccess(base.signer, base.clock.now)
        self.run_services = RunServices(settings, base, assignment, self.kube, file_store)
        self.installation = Installation(
            ledger=base.ledger,
            roster=roster,
            assignment=assignment,
            broker=base.broker,
            delivery=Delivery(base.broker, roster, base.ledger, settings.server_urls, file_access),
            file_access=file_access,
            readiness=self.run_services.readiness,
            metrics=base.telemetry.metrics,
            signals=base.signals,
            clock=base.clock.now,
            start_within_s=settings.start_within_s,
        )
        self.active_runs = ActiveRuns(self.installation)
        self._build_loops(IntervalAnnouncer(base.broker, base.clock_store, file_access))
        self.servers = HttpServers(settings, base, self.run_services.runs, self.kube, file_store, file_access)

    def _build_loops(self, announcer: IntervalAnnouncer) -> None:
        """Build what receives and handles the messages of workers, and what is done again and again."""
        base, installation, active_runs = self.base, self.installation, self.active_runs
        runs = self.run_services.runs
        self.ticker = Ticker(installation, active_runs, runs, base.telemetry)
        self.receiver = CheckpointReceiver(
            ledger=base.ledger,
            broker=base.broker,
            active_runs=active_runs,
            metrics=base.telemetry.metrics,
            clock=base.clock.now,
        )
        self.message_handler = MessageHandler(
            installation, active_runs, self.ticker, base.clock_store, announcer
        )
        self.main_loop = MainLoop(installation, active_runs, self.ticker, announcer, runs, base)

    @property
    def services(self) -> list[Service]:
        """What works in the background, in the order in which it begins."""
        telemetry = self.base.telemetry
        found = (
            self.run_services.server_watch,
            self.kube,
            telemetry.publisher and telemetry.coverage,
            self.run_services.retention,
            self.base.storage_watch,
            telemetry.publisher,  # at the end, what the others leave is for it
        )
        return [service for service in found if service is not None]


def _enter_cluster(settings: CoordinatorSettings, foundation: Foundation) -> "KubeFacade | None":
    if settings.kube is None:
        return None
    from oku_coordinator.kube.facade import KubeFacade  # noqa: PLC0415  # nobody else has the client library

    return KubeFacade(settings.kube, settings.server_urls, foundation.ledger, foundation.signals)
