"""Builds the parts of a coordinator and connects each with those that it needs."""

import logging
import socket
import sqlite3
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from oku_coordinator.broker.sender import Broker
from oku_coordinator.clock.clock_address import find_clock_address
from oku_coordinator.clock.clock_service import ClockService
from oku_coordinator.clock.clock_store import ClockStore
from oku_coordinator.files.file_store import FileStore
from oku_coordinator.files.files_address import find_files_address
from oku_coordinator.inbound import CheckpointReceiver, Inbound, Rejections
from oku_coordinator.leasing.delivery import Delivery
from oku_coordinator.leasing.dispatcher import Dispatcher
from oku_coordinator.leasing.expiry import ExpiryRule
from oku_coordinator.leasing.hook_gate import HookGate
from oku_coordinator.leasing.pace import Pace
from oku_coordinator.leasing.range_dealer import RangeDealer
from oku_coordinator.leasing.reaper import Reaper
from oku_coordinator.leasing.run_clock import RunClock
from oku_coordinator.leasing.shares import Shares
from oku_coordinator.leasing.time_limit import TimeLimit
from oku_coordinator.leasing.waves.wave_dealer import WaveDealer
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.ledger_lock import lock_ledger
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.storage.storage_health import StorageError, StorageHealth
from oku_coordinator.loop_signals import LoopSignals
from oku_coordinator.main_loop import MainLoop
from oku_coordinator.message_handler import MessageHandler
from oku_coordinator.runs.circuit_breaker import CircuitBreaker
from oku_coordinator.runs.confinement_watch import ConfinementWatch
from oku_coordinator.runs.end_watch import EndWatch
from oku_coordinator.runs.file_keeper import FileKeeper
from oku_coordinator.runs.file_preparation import FilePreparation
from oku_coordinator.runs.queue_watch import QueueWatch
from oku_coordinator.runs.readiness import Readiness
from oku_coordinator.runs.retention import Retention
from oku_coordinator.runs.runs import Runs
from oku_coordinator.runs.skew_watch import SkewWatch
from oku_coordinator.runs.storage_watch import StorageWatch
from oku_coordinator.runs.target_watch import TargetWatch
from oku_coordinator.runs.worker_watch import WorkerWatch
from oku_coordinator.servers.served_count import NamedServers, ServedCounter
from oku_coordinator.servers.server_watch import ServerWatch
from oku_coordinator.settings import CoordinatorSettings
from oku_coordinator.telemetry.coverage_recorder import CoverageRecorder
from oku_coordinator.telemetry.history_recorder import HistoryRecorder
from oku_coordinator.telemetry.ledger_metrics import LedgerCollector
from oku_coordinator.telemetry.metrics import Metrics
from oku_coordinator.telemetry.publisher import Publisher
from oku_coordinator.telemetry.recent_runs import RecentRuns
from oku_coordinator.telemetry.ticker import Ticker
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.intervals import IntervalAnnouncer
from oku_coordinator.workers.liveness import Roster
from oku_coordinator.workers.renewal import Renewal
from oku_core.broker.celery_app import App, build_app
from oku_core.broker.transport import find_connection_errors
from oku_core.messaging.credentials import build_ticket
from oku_core.messaging.signing import RejectionLog
from oku_core.process.clock import SteadyClock
from oku_core.process.listener import open_datagram_socket
from oku_core.process.supervision import Supervisor

if TYPE_CHECKING:
    from oku_coordinator.kube.facade import KubeFacade
    from oku_core.messaging.order import FilesAddress

_log = logging.getLogger(__name__)

_LONGEST_CONNECT_S = 30
LOCK_WAIT_S = 10.0
"""How long a coordinator waits for the one before it to let go of the ledger."""
_BUSY_TIMEOUT_S = 0.5
"""How long it waits for any other process that locks the file; its event loop stands still meanwhile."""


class Assembly:
    """The parts of one coordinator; nothing is started.

    Args:
        settings: what it was told.
        build_supervisor: of its tasks, out of what is fatal and how to pause; a test may let them fail.
        lock_wait_s: how long to wait for a ledger that another coordinator holds.
        build_broker: of the application and of whether the broker is within reach; a simulation has its own.
        build_inbound: of what `Inbound` takes; a simulation has its own.
        kernel: whose monotonic clock is read; a simulation has several.
    """

    def __init__(
        self,
        settings: CoordinatorSettings,
        build_supervisor: Callable[..., Supervisor] = Supervisor,
        lock_wait_s: float = LOCK_WAIT_S,
        build_broker: Callable[[App, Callable[[], bool]], Broker] = Broker,
        build_inbound: type[Inbound] | Callable[..., Inbound] = Inbound,
        kernel: str | None = None,
    ) -> None:
        self.signals = LoopSignals()
        self._build_inbound = build_inbound
        self.clock = SteadyClock()
        self.metrics = Metrics()
        self.rejections = Rejections(self.metrics)
        self._app = build_app(settings.broker_url, settings.message_key, self.rejections.record)
        self.signer = self._app.signer
        passing = (OSError, sqlite3.OperationalError, *find_connection_errors(self._app))
        self.supervisor = build_supervisor(is_fatal, passing, self.signals.rest)
        self.lock = lock_ledger(
            settings.ledger_path, wait_s=lock_wait_s, trusts_folder=settings.trusts_data_dir
        )
        self.ledger = Ledger(
            settings.ledger_path,
            publishes=settings.loki is not None,
            storage=StorageHealth(self.metrics.count_storage_fault),
            busy_timeout_s=_BUSY_TIMEOUT_S,
        )
        self.storage_watch = StorageWatch(self.ledger)
        self.metrics.show_ledger(LedgerCollector(self.ledger, settings.ledger_path.parent, self.clock.now))
        self.clock_service: ClockService | None = None
        self.clock_store = ClockStore(self.clock, settings.clock_path, kernel)
        current = self.ledger.runs.fetch_current()
        self.clock_store.begin(is_run_active=current is not None and current.is_active)
        self.publisher = (
            Publisher(self.ledger, settings.loki, settings.most_outbox_bytes, self.metrics, self.clock)
            if settings.loki is not None
            else None
        )
        self.roster = Roster(settings.worker_timeout_s)
        self.pace = Pace()
        self.shares = Shares()
        self.broker = build_broker(self._app, lambda: self.inbound.is_connected)
        self.file_store = FileStore(settings.files_path, settings.file_limits)
        self.files_address: FilesAddress | None = None
        self._build_servers(settings)
        self.assignment = self._build_assignment(settings)
        self._build_runs(settings)
        self._build_main_loop(settings)

    def find_obstacle(self) -> str:
        """Why this coordinator is not ready, in a line; empty if it is."""
        if trouble := self.ledger.storage.trouble:
            return f"the ledger cannot be used: {trouble}"
        return "" if self.inbound.is_connected else "no broker"

    def open_clock(self, settings: CoordinatorSettings, api_socket: socket.socket) -> None:
        """Tell workers elsewhere the clock, at the port of the API; raise `UserError` if it is taken."""
        api_address = api_socket.getsockname()[:2]
        address = find_clock_address(
            api_address, socket.gethostname(), settings.clock_host, settings.clock_port
        )
        if address is None:
            return
        host = settings.host if settings.listen_fd is None else api_address[0]
        self.clock_service = ClockService(
            open_datagram_socket(host, api_address[1]),
            self._app.signer,
            self.clock_store.kernel,
            self.supervisor.enlist("clock"),
            RejectionLog(_log, self.metrics.count_rejected, what="questions for the clock").note,
        )
        self.clock_store.address = address

    def announce_files(self, settings: CoordinatorSettings, files_socket: socket.socket) -> None:
        """Tell workers where they fetch the files of runs."""
        self.files_address = find_files_address(
            files_socket.getsockname()[:2],
            socket.gethostname(),
            settings.files_host or settings.clock_host,
            settings.files_address_port,
        )

    async def settle_clock(self) -> None:
        """Find the clock that a schedule counts by."""
        await self.clock_store.settle(self._listen)

    async def _listen(self, seconds: float) -> None:
        """Hear workers for some seconds, unless the broker is away for long."""
        for _ in range(_LONGEST_CONNECT_S):
            if not self.inbound.is_connected:
                await self.signals.rest(1.0)
        await self.signals.rest(seconds)

    def close(self) -> None:
        """Let go of the ledger."""
        self.ledger.close()
        self.lock.release()

    def _build_servers(self, settings: CoordinatorSettings) -> None:
        self.kube = _enter_cluster(settings, self.ledger, self.signals)
        finder = (self.kube and self.kube.servers) or NamedServers(settings.server_urls)
        self._counter = ServedCounter(finder, self.ledger)
        self.server_watch = (
            ServerWatch(self._counter, self.ledger, self.signals, self.clock.now)
            if settings.server_urls
            else None
        )

    def _build_assignment(self, settings: CoordinatorSettings) -> Assignment:
        def find_limit(run: RunRecord) -> int | None:
            """A cluster counts its pods; a stack that was started for a run has its workers alone."""
            if self.kube is not None:
                return self.kube.count_assigned(run)
            return None if settings.expected_workers else run.spec.workers

        return Assignment(ledger=self.ledger, roster=self.roster, find_limit=find_limit)

    def _build_runs(self, settings: CoordinatorSettings) -> None:
        target_watch = TargetWatch(self.ledger, self.signals)
        keeper = FileKeeper(self.ledger, self.file_store)
        self.readiness = Readiness(
            self.ledger,
            self.roster,
            self.assignment,
            find_broker_trouble=self._find_broker_trouble,
            kube=self.kube,
            server_watch=self.server_watch,
            find_troubles=self._find_troubles,
            find_outages=target_watch.find_notices,
            files=settings.files,
            check_files=keeper.check,
            check_proofs=keeper.check_proofs,
            find_file=lambda file: self.file_store.find(file.digest),
            most_queued=settings.most_queued,
            expected_workers=settings.expected_workers,
            allows_user_code=settings.allows_user_code,
        )
        self.runs = Runs(
            self.ledger,
            self._counter,
            self.signals,
            self.broker,
            self.readiness,
            self.clock.now,
        )
        self.retention = Retention(
            self.ledger, settings.reports_path, settings.retention, self.clock.now, keeper
        )
        self.recorder = HistoryRecorder(self.ledger, publishes=settings.loki is not None)
        self.coverage = CoverageRecorder(self.ledger, self.clock.now)
        recent_runs = RecentRuns(self.ledger, self.clock.now)
        self.metrics.show_runs(recent_runs.read_runs)
        self.metrics.show_targets(recent_runs.read_targets)
        self.metrics.show_inner(recent_runs.read_inner)
        self.ticker = Ticker(
            ledger=self.ledger,
            roster=self.roster,
            assignment=self.assignment,
            runs=self.runs,
            recorder=self.recorder,
            metrics=self.metrics,
            recent_runs=recent_runs,
            target_watch=target_watch,
            clock=self.clock.now,
        )

    def _build_main_loop(self, settings: CoordinatorSettings) -> None:
        queue_watch = QueueWatch(self.ledger, self.readiness, settings.start_within_s, self.clock.now)
        breaker = CircuitBreaker(
            self.ledger, self.roster, self.assignment, self.readiness.expects_workers, self.clock.now
        )
        delivery = Delivery(
            self.broker,
            self.roster,
            self.ledger.schedules,
            self.ledger.hooks,
            settings.server_urls,
            self._build_ticket,
        )
        expiry = ExpiryRule(self.roster)
        reaper = Reaper(
            ledger=self.ledger,
            roster=self.roster,
            expiry=expiry,
            delivery=delivery,
            pace=self.pace,
            metrics=self.metrics,
            clock=self.clock.now,
            note_lost=breaker.note_lost,
        )
        dispatcher = self._build_dispatcher(delivery, expiry, queue_watch)
        interval_announcer = IntervalAnnouncer(
            self.broker, self.clock_store.describe, lambda: self.files_address
        )
        self.message_handler = MessageHandler(
            signals=self.signals,
            clock_store=self.clock_store,
            roster=self.roster,
            dispatcher=dispatcher,
            reaper=reaper,
            pace=self.pace,
            ticker=self.ticker,
            breaker=breaker,
            interval_announcer=interval_announcer,
        )
        receiver = CheckpointReceiver(
            ledger=self.ledger,
            pace=self.pace,
            broker=self.broker,
            shares=self.shares,
            metrics=self.metrics,
            clock=self.clock.now,
        )
        self.inbound = self._build_inbound(self._app, self.supervisor, receiver, self.message_handler)
        self.main_loop = MainLoop(
            ledger=self.ledger,
            inbound=self.inbound,
            signals=self.signals,
            clock=self.clock,
            clock_store=self.clock_store,
            roster=self.roster,
            assignment=self.assignment,
            pace=self.pace,
            ticker=self.ticker,
            dispatcher=dispatcher,
            reaper=reaper,
            breaker=breaker,
            queue_watch=queue_watch,
            worker_watch=WorkerWatch(self.ledger, self.runs, self.readiness),
            file_preparation=FilePreparation(self.ledger, self.assignment, self.broker, self._build_ticket),
            confinement_watch=ConfinementWatch(self.ledger, self.assignment, self.clock.now),
            skew_watch=SkewWatch(self.ledger, self.assignment),
            end_watch=EndWatch(self.ledger, self.runs),
            interval_announcer=interval_announcer,
            renewal=Renewal(roster=self.roster, broker=self.broker),
            followers=self.runs.followers,
            publisher=self.publisher,
        )

    def _build_dispatcher(
        self, delivery: Delivery, expiry: ExpiryRule, queue_watch: QueueWatch
    ) -> Dispatcher:
        clock = RunClock(ledger=self.ledger, count_missing=queue_watch.count_missing)
        ranges = RangeDealer(
            ledger=self.ledger,
            assignment=self.assignment,
            delivery=delivery,
            pace=self.pace,
            expiry=expiry,
            time_limit=TimeLimit(ledger=self.ledger, delivery=delivery, clock=clock),
            shares=self.shares,
        )
        waves = WaveDealer(
            ledger=self.ledger, assignment=self.assignment, delivery=delivery, expiry=expiry, clock=clock
        )
        return Dispatcher(
            ledger=self.ledger,
            assignment=self.assignment,
            delivery=delivery,
            ranges=ranges,
            waves=waves,
            hooks=HookGate(
                ledger=self.ledger,
                roster=self.roster,
                assignment=self.assignment,
                broker=self.broker,
                build_ticket=self._build_ticket,
            ),
            begin=queue_watch.begin,
        )

    def _build_ticket(self, digest: str) -> str:
        return build_ticket(self.signer, digest, self.clock.now())

    def _find_troubles(self) -> Iterator[str]:
        if self.publisher is not None and self.publisher.trouble:
            yield f"Loki: {self.publisher.trouble}"
        yield from self.rejections.describe()
        # A fault of the ledger's storage is one notice, not one for each task that it stops.
        yield from self.supervisor.find_troubles(besides=(StorageError,))

    def _find_broker_trouble(self) -> str:
        if self.inbound.refusal:
            return f"the broker refuses messages ({self.inbound.refusal})"
        return "the broker does not answer" if self.broker.is_away else ""


def is_fatal(error: Exception) -> bool:
    """Whether an error does not pass by itself: a ledger that is broken, but not a disk that is full."""
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)


def _enter_cluster(
    settings: CoordinatorSettings, ledger: Ledger, signals: LoopSignals
) -> "KubeFacade | None":
    if settings.kube is None:
        return None
    from oku_coordinator.kube.facade import KubeFacade  # noqa: PLC0415  # nobody else has the client library

    return KubeFacade(settings.kube, settings.server_urls, ledger, signals)
