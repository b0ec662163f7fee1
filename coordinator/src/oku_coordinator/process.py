"""The coordinator as a process: startup, main loop, shutdown.

The main loop wakes when a report came in or a run was changed, and at least twice a second: it judges who
lives, takes lost leases back and deals out new ones. Ticks are made beside it, in `pulse`.
"""

import asyncio
import contextlib
import logging
import math
import signal
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from oku_coordinator.api.routes import build_api
from oku_coordinator.api.server import ApiServer
from oku_coordinator.broker.listeners import LONGEST_PAUSE_S, ProgressListener, ReportListener
from oku_coordinator.broker.sender import Broker
from oku_coordinator.leasing.dispatcher import Dispatcher
from oku_coordinator.leasing.reaper import Reaper
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.file_lock import lock_ledger
from oku_coordinator.ledger.records import BreachError, RunRecord, UnknownRunError
from oku_coordinator.runs.circuit_breaker import CircuitBreaker
from oku_coordinator.runs.queue_watch import QueueWatch
from oku_coordinator.runs.readiness import Readiness
from oku_coordinator.runs.retention import Retention
from oku_coordinator.runs.runs import Runs
from oku_coordinator.servers.served_count import NamedServers, ServedCounter
from oku_coordinator.servers.server_watch import ServerWatch
from oku_coordinator.settings import CoordinatorSettings
from oku_coordinator.telemetry.history_recorder import HistoryRecorder
from oku_coordinator.telemetry.metrics import Metrics
from oku_coordinator.telemetry.publisher import Publisher
from oku_coordinator.telemetry.ticker import Ticker
from oku_coordinator.workers.heartbeat_interval import IntervalAnnouncer
from oku_coordinator.workers.liveness import Roster
from oku_coordinator.workers.version_skew import VersionSkew
from oku_core.accounting.message_verdict import MessageVerdict
from oku_core.accounting.run_state import ACTIVE_STATES
from oku_core.messaging.celery_app import build_app, find_connection_errors
from oku_core.messaging.codec import OtherProtocolError
from oku_core.messaging.lease import Message, Report
from oku_core.messaging.progress import Progress
from oku_core.messaging.rejection import RejectedMessageError, RejectionLog
from oku_core.process.clock import SteadyClock
from oku_core.process.listener import adopt_sockets, format_address, open_sockets
from oku_core.process.ready_file import write_ready_file
from oku_core.process.supervision import Health, Supervisor, cancel
from oku_core.results.event import Event, EventType

if TYPE_CHECKING:
    from oku_coordinator.kube.facade import KubeFacade

_log = logging.getLogger(__name__)

_ROUND_S = 0.5
_LOOK_S = 1.0
"""So often are all leases and workers looked at, beside what reports and claims change at once."""
_LOOK_SHARE = 0.05
_ROUND_SHARE = 0.2
"""Looks and rounds take at most this share of the time: with thousands of workers they come less often."""
_LONGEST_REST_S = 0.5
_SWITCH_S = 0.0002
_STALL_S = 2.0
_LOCK_WAIT_S = 10.0
_LISTENER_ENDS_S = 5.0
_SERVERS_COME_BACK_S = 10.0
"""So long is a run's end held back while a delay server does not answer: the local stack starts one again
within 5 s, a kubelet its container at once."""
_LAST_LINES_S = 2.0
"""So long is Loki given at the end to take what waits for it."""


class Coordinator:
    """One coordinator; `run` returns when it was told to end.

    Args:
        settings: what it was told.
        build_supervisor: of its tasks, out of what is fatal and how to pause; a test may let them fail.
    """

    def __init__(
        self, settings: CoordinatorSettings, build_supervisor: Callable[..., Supervisor] = Supervisor
    ) -> None:
        self._settings = settings
        self._ending = asyncio.Event()
        self._metrics = Metrics()
        self._rejections = RejectionLog(_log, self._metrics.count_rejected)
        self._strangers = VersionSkew()
        app = build_app(settings.broker_url, settings.message_key, self._reject)
        passing = (OSError, sqlite3.OperationalError, *find_connection_errors(app))
        self._supervisor = build_supervisor(is_fatal, passing, self._rest)
        self._lock = lock_ledger(
            settings.ledger_path, wait_s=_LOCK_WAIT_S, trusts_folder=settings.trusts_data_dir
        )
        self._ledger = Ledger(settings.ledger_path, publishes=settings.loki is not None)
        self._clock = SteadyClock()
        self._publisher = (
            Publisher(self._ledger, settings.loki, settings.most_outbox_bytes, self._metrics, self._clock)
            if settings.loki is not None
            else None
        )
        self._roster = Roster(settings.worker_timeout_s)
        self._broker = Broker(app, self._is_ready)
        may_decode = threading.Event()
        may_decode.set()
        self._reports = ReportListener(
            app, self._supervisor.enlist("reports", LONGEST_PAUSE_S), self._take_in, may_decode
        )
        self._progress = ProgressListener(
            app, self._supervisor.enlist("progress", LONGEST_PAUSE_S), self._hear_from_thread, may_decode
        )
        self._kube = _enter_cluster(settings, self._ledger, self._wake)
        named = NamedServers(settings.server_urls)
        counter = ServedCounter((self._kube and self._kube.servers) or named, self._ledger)
        self._server_watch = (
            ServerWatch(counter, self._ledger, self._wake, self._clock.now) if settings.server_urls else None
        )
        self._conditions = Readiness(
            self._ledger,
            self._roster,
            lambda: not self._broker.is_away,
            self._kube,
            self._server_watch,
            self._find_troubles,
        )
        self._conditions.files = settings.files
        self._conditions.most_queued = settings.most_queued
        self._queue_watch = QueueWatch(
            self._ledger, settings.start_within_s, self._conditions.find_obstacle, self._clock.now
        )
        self._dispatcher = Dispatcher(
            self._ledger, self._roster, self._broker, settings.server_urls, self._conditions.may_begin
        )  # fmt: skip
        self._breaker = CircuitBreaker(
            self._ledger, self._roster, self._conditions.expects_workers, self._clock.now
        )
        self._lease_watch = Reaper(
            self._ledger, self._roster, self._broker, self._metrics, self._clock.now, self._breaker.note_lost
        )
        self._interval_announcer = IntervalAnnouncer(self._broker)
        self._runs = Runs(
            self._ledger, counter, self._wake, self._broker.fetch_peak_mb, self._conditions, self._clock.now
        )
        self._retention = Retention(self._ledger, settings.reports_path, settings.retention, self._clock.now)
        chronicle = HistoryRecorder(self._ledger, publishes=settings.loki is not None)
        self._pulse = Ticker(
            self._ledger, self._roster, self._runs, chronicle, self._metrics, self._clock.now
        )
        self._resting: dict[str, float] = {}
        """Runs at rest whose last figures have not been kept, and until when a server may come back first."""
        self._has_noted_start = False
        self._next_look = -math.inf
        self._round_at = time.monotonic()
        self._woken = asyncio.Event()

    async def run(self) -> None:
        """Startup, main loop, shutdown."""
        await self._startup()
        ticking = self._supervisor.start("ticks", self._pulse.beat)
        working = self._supervisor.start("dispatcher", self._main_loop)
        try:
            await self._supervisor.wait(working)
        finally:
            await cancel([ticking, working])
            await self._shutdown()

    def end(self) -> None:
        """Let `run` return soon; to be called in its event loop."""
        self._ending.set()

    async def _startup(self) -> None:
        self._loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self.end)
        if self._server_watch is not None:
            self._server_watch.start(self._supervisor)
        self._reports.start()
        self._progress.start()
        if self._kube is not None:
            self._kube.start(self._supervisor)
        if self._publisher is not None:
            self._publisher.start(self._supervisor)
        self._retention.start(self._supervisor)
        scaling = self._kube.describe if self._kube is not None else lambda: None
        api = build_api(
            self._runs, self._metrics, self._settings.token, self._is_ready, self._publisher, scaling
        )
        self._api_server = ApiServer(api)
        [listening] = self._open_sockets()
        await self._api_server.start(listening)
        address = format_address(listening)
        _log.info("listening on http://%s", address)
        if ready_file := self._settings.ready_file:
            write_ready_file(ready_file, address)

    def _open_sockets(self) -> list[socket.socket]:
        if self._settings.listen_fd is not None:
            return adopt_sockets([self._settings.listen_fd])
        return open_sockets(self._settings.host, self._settings.port, 1)

    async def _main_loop(self, health: Health) -> None:
        if not self._has_noted_start:
            self._note_start()
            self._has_noted_start = True
        while not self._ending.is_set():
            now = time.monotonic()
            self._woken.clear()  # what comes from here on is for the next round
            if now - self._round_at > _STALL_S or self._is_deaf(now):
                self._roster.forgive(now)
                self._queue_watch.forgive(now)
                self._lease_watch.forgive(now)
            self._round_at, began_cpu_s = now, time.thread_time()
            try:
                await self._round(now)
            except BreachError as error:
                self._runs.announce_breach(error)
            health.note_well()
            round_cpu_s = time.thread_time() - began_cpu_s
            await asyncio.sleep(min(round_cpu_s / _ROUND_SHARE - round_cpu_s, _LONGEST_REST_S))
            await self._sleep(now + _ROUND_S - time.monotonic())

    def _is_deaf(self, now: float) -> bool:
        """Whether what workers say may not have come: there is no broker, or more waits than we can take."""
        heard_at = min(self._progress.caught_up_at, self._reports.caught_up_at)
        return not self._progress.is_connected or now - heard_at > _STALL_S

    async def _shutdown(self) -> None:
        self._reports.end()
        self._progress.end()
        await self._api_server.stop()
        await asyncio.to_thread(self._reports.join, _LISTENER_ENDS_S)
        if self._server_watch is not None:
            await self._server_watch.end()
        if self._kube is not None:
            await self._kube.end()
        await self._retention.end()
        if self._publisher is not None:
            await self._publisher.end(_LAST_LINES_S)
        self._ledger.close()
        self._lock.release()

    async def _round(self, now: float) -> None:
        if now >= self._next_look:
            self._next_look, began_cpu_s = now + _LOOK_S, time.thread_time()
            self._look_at_clock()
            self._pulse.remove_silent(now)
            await self._lease_watch.look(now)
            self._breaker.look(now)
            self._queue_watch.look(now)
            self._interval_announcer.step(self._roster.heartbeat_interval_s, now)
            for owing in self._ledger.outbox.find_owing():
                self._resting.setdefault(owing, now + _SERVERS_COME_BACK_S)
            if self._publisher is not None:
                await self._publisher.bound()
            self._next_look = max(self._next_look, now + (time.thread_time() - began_cpu_s) / _LOOK_SHARE)
        run = await self._dispatcher.step(now, self._clock.now())
        if self._dispatcher.has_more:
            self._wake()
        await self._watch_end(run)

    def _look_at_clock(self) -> None:
        """Note that the wall clock was set; follow it again when nothing is measured and no line waits."""
        step_s = self._clock.find_step()
        if not step_s and not self._clock.wall_ahead_s:
            return
        run = self._ledger.runs.fetch_current()
        if step_s:
            _log.warning("the clock of this machine was set by %+.1f s", step_s)
            if run is not None and run.state in ACTIVE_STATES:
                self._ledger.history.note_clock_step(run.run, step_s, self._clock.now())
        if self._clock.wall_ahead_s and run is None and not self._ledger.outbox.measure().lines:
            self._clock.anchor()

    async def _watch_end(self, run: RunRecord | None) -> None:
        """Ask the delay servers for their counts when the active run comes to rest, until they say."""
        if rested := self._pulse.note_turn(run):
            self._resting.setdefault(rested, time.monotonic() + _SERVERS_COME_BACK_S)
        for resting, until in tuple(self._resting.items()):
            has_ended = True
            try:
                has_ended = await self._runs.end(resting, waits=time.monotonic() < until)
            except UnknownRunError:
                pass  # it was deleted meanwhile
            finally:
                if has_ended:
                    self._runs.announce_rest()
            if has_ended:
                del self._resting[resting]

    def _note_start(self) -> None:
        run = self._ledger.runs.fetch_current()
        if run is not None and run.state in ACTIVE_STATES:
            text = "a coordinator has started and finds the run active"
            event = Event(at=self._clock.now(), type=EventType.COORDINATOR_STARTED, text=text)
            self._ledger.history.note(run.run, [event])

    def _take_in(self, messages: Sequence[Message]) -> None:
        begun = time.monotonic()
        verdicts = take_in(self._ledger, messages, self._clock.now())
        self._metrics.count_messages(verdicts, time.monotonic() - begun)
        reports = [
            message
            for message, verdict in zip(messages, verdicts, strict=True)
            if isinstance(message, Report) and verdict == MessageVerdict.ACCOUNTED
        ]
        self._loop.call_soon_threadsafe(self._hear_reports, reports)

    def _hear_reports(self, reports: Sequence[Report]) -> None:
        self._breaker.note_reports(reports, time.monotonic())
        self._wake()

    def _reject(self, error: RejectedMessageError) -> None:
        if isinstance(error, OtherProtocolError):
            self._metrics.count_rejected(error.rejection)
            self._strangers.note(error)
        else:
            self._rejections.note(error)

    def _hear_from_thread(self, heard: Sequence[Progress]) -> None:
        self._loop.call_soon_threadsafe(self._hear, heard)

    def _hear(self, heard: Sequence[Progress]) -> None:
        if self._pulse.hear(heard):
            self._next_look = -math.inf  # the leases of one that a new one has replaced are lost
            self._wake()

    def _is_ready(self) -> bool:
        return self._reports.is_connected and self._progress.is_connected

    def _wake(self) -> None:
        self._woken.set()

    def _find_troubles(self) -> Iterator[str]:
        if self._publisher is not None and self._publisher.trouble:
            yield f"Loki: {self._publisher.trouble}"
        yield from filter(None, (self._strangers.describe(), self._rejections.describe()))
        yield from self._supervisor.troubles

    async def _rest(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ending.wait()

    async def _sleep(self, seconds: float) -> None:
        ending = asyncio.ensure_future(self._ending.wait())
        woken = asyncio.ensure_future(self._woken.wait())
        await asyncio.wait({ending, woken}, timeout=max(0.0, seconds), return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        woken.cancel()


def take_in(ledger: Ledger, messages: Sequence[Message], now: float) -> list[MessageVerdict]:
    """Apply messages. A run that does not balance fails and gets no more; the others get what is theirs."""
    while True:
        try:
            return ledger.leases.apply(messages, now)
        except BreachError as error:
            _log.exception("a run has failed", extra={"run": error.run})


def is_fatal(error: Exception) -> bool:
    """Whether an error does not pass by itself: a ledger that is broken, but not a disk that is full."""
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)


def _enter_cluster(
    settings: CoordinatorSettings, ledger: Ledger, wake: Callable[[], None]
) -> "KubeFacade | None":
    if settings.kube is None:
        return None
    from oku_coordinator.kube.facade import KubeFacade  # noqa: PLC0415  # nobody else has the client library

    return KubeFacade(settings.kube, settings.server_urls, ledger, wake)


def serve(settings: CoordinatorSettings) -> None:
    """Run a coordinator until SIGTERM or SIGINT."""
    # Threads that ask the broker release the interpreter at each call; with the default of 5 ms they would
    # wait so long at each for the one that is decoding.
    sys.setswitchinterval(_SWITCH_S)

    async def run() -> None:
        await Coordinator(settings).run()

    asyncio.run(run())
