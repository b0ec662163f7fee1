"""The worker as a process: a transport in the main thread, an event loop, and a heartbeat.

SIGTERM and SIGINT drain: the worker takes no further lease and no further index, requests in flight may
finish within the grace time, the final checkpoint of every lease is confirmed, and no lease is on its way
here: the coordinator confirms that, or it is gone with the connection to it. Only then does the transport
shut down, because confirmations come by it. Without confirmations, the worker ends some seconds after the
grace time, and successfully if its last checkpoints are sent.

A worker that has run user code drains in the same way once that run is over, and a fresh process takes its
place (`oku_workers.zygote`).
"""

import gc
import logging
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from oku_core.messaging.signing import RejectedMessageError, RejectionLog, Signer
from oku_core.process.clock import SteadyClock, fetch_boot_id
from oku_core.process.landlock import Confinement, find_version
from oku_core.process.listener import open_sockets
from oku_core.process.prctl import adopt_orphans
from oku_core.process.private_files import open_private, restore_private_folder
from oku_core.process.resources import find_memory_limit, raise_open_files
from oku_core.process.supervision import Supervisor
from oku_workers.broker.coordinator_link import CheckpointSender, CoordinatorLink, ReadLeases, ReadOrder
from oku_workers.broker.orders import LeaseReceiver, Orders
from oku_workers.broker.worker_transport import build_worker_transport
from oku_workers.engines.contract.user_code_host import Isolation, choose_environment
from oku_workers.files.file_cache import FileCache
from oku_workers.files.file_fetcher import FileFetcher
from oku_workers.files.run_files import RunFiles
from oku_workers.flight.flight_recorder import FileRecorder
from oku_workers.health.health_port import HealthPort
from oku_workers.health.heartbeat import LONGEST_PAUSE_S, Heartbeat
from oku_workers.health.watchdogs import EXIT_STUCK, IdleWatchdog, LoopWatchdog
from oku_workers.leases.lease_runner import LeaseRunner
from oku_workers.leases.worker_parts import WorkerParts
from oku_workers.loop_thread import LoopThread
from oku_workers.meters.saturation import SaturationMeter
from oku_workers.meters.worker_meter import ProcessGauges, WorkerMeter
from oku_workers.runs.engine_slot import EngineSettings
from oku_workers.runs.engine_switch import EngineSwitch
from oku_workers.runs.run_sources import RunSources
from oku_workers.settings import WorkerIdentity, WorkerSettings
from oku_workers.timing.clock_client import ClockClient
from oku_workers.timing.coordinator_clock import CoordinatorClock
from oku_workers.timing.timing import Timing
from oku_workers.zygote import EXIT_RENEW, fork_workers

_log = logging.getLogger(__name__)

_DRAIN_ROUND_S = 0.5
"""How often a draining worker looks at the time, if nothing happens."""
_CONFIRMING_S = 17.0
"""How long confirming may take after the grace time."""
_ENDING_S = 23.0
"""A worker that has not ended this long after the grace time is stuck; a pod is killed after 25 s."""
_UNANSWERED_S = 6.0
"""How long a draining worker without a lease waits for the permission to leave.

Until then leases may arrive that were on their way to it: it gives them back.
"""


class Worker:
    """One worker; `run` returns its exit code when it has drained.

    Args:
        build_supervisor: makes the supervisor of its tasks; a test may let them fail.
        adopts: whether this process adopts the orphans among its children.
        health_socket: listens at the health port; None without one.
        is_renewal: whether it takes the place of one that has run user code; its pod stays ready then.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        build_supervisor: Callable[..., Supervisor] = Supervisor,
        *,
        adopts: bool = False,
        health_socket: socket.socket | None = None,
        is_renewal: bool = False,
    ) -> None:
        self._settings = settings
        worker, clock = WorkerIdentity(settings.name, secrets.token_hex(8)), SteadyClock()
        self._reject = reject = RejectionLog(_log).record
        self._transport = build_worker_transport(settings.broker_url, settings.message_key, worker, reject)
        self._loop_thread = LoopThread()
        supervisor = build_supervisor(passing=(OSError, *self._transport.passing))
        timing = Timing(coordinator_clock=CoordinatorClock(settings.kernel))
        cache = FileCache(settings.files_cache, settings.most_cache_bytes)
        sources = RunSources(settings.sources, RunFiles(FileFetcher(cache, supervisor), cache))
        engines = EngineSwitch(
            supervisor,
            sources,
            timing,
            EngineSettings(
                local_address=settings.local_address,
                isolation=_build_isolation(settings, adopts=adopts),
                memory_bytes=find_memory_limit(),
                printed=settings.printed,
            ),
        )
        slot = engines.slot
        meter = WorkerMeter(
            clock,
            ProcessGauges(cpu_s=lambda: slot.cpu_s),
            SaturationMeter(slot.measure_busy_s),
            engine=slot,
        )
        self._sender = CheckpointSender(self._transport.send_checkpoints)
        self._recorder = FileRecorder(settings.records, worker.incarnation, fetch_boot_id())
        parts = WorkerParts(
            worker=worker, supervisor=supervisor, sink=self._sender, process=self, recorder=self._recorder
        )
        self._runner = LeaseRunner(parts, engines, meter)
        self._clock_client = ClockClient(Signer(settings.message_key), timing.coordinator_clock, self._runner)
        self._supervisor = supervisor
        idle_watchdog = IdleWatchdog(settings.idle_limit_s)
        self._leases = LeaseReceiver(reject, self._loop_thread, self._runner, idle_watchdog)
        # A notice of the heartbeat's own trouble could not be sent: its silence is the notice.
        health = supervisor.build_health("heartbeat", LONGEST_PAUSE_S)
        self._heartbeat = Heartbeat(
            self._transport.open_progress_channel, health, self._loop_thread, self._runner, idle_watchdog
        )
        link = CoordinatorLink(settings.broker_url)
        self._orders = Orders(self._loop_thread, self._runner, self._heartbeat, link, idle_watchdog)
        health = supervisor.enlist("loop watchdog", LONGEST_PAUSE_S)
        self._loop_watchdog = LoopWatchdog(health, self._loop_thread, settings.loop_limit_s)
        self._health_port = (
            None if health_socket is None else HealthPort(health_socket, lambda: is_renewal or link.is_made)
        )
        self._leaving = threading.Lock()
        """Held from when this process begins to leave, by a signal or from the event loop."""
        self._stirred = threading.Event()
        """Something has happened that a draining worker may wait for."""
        self._is_used = False

    def run(self) -> int:
        """Startup, main loop (the transport's), shutdown."""
        raise_open_files()
        self._set_ready(is_ready=False)
        # Objects of the start-up live as long as the process; what requests leave behind is freed by
        # counting references, so that cycles are rare.
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        self._loop_thread.start()
        self._loop_thread.ask(self._runner.start)
        self._loop_thread.ask(lambda: self._clock_client.start(self._supervisor))
        self._loop_watchdog.start()
        if self._health_port is not None:
            self._loop_thread.await_result(self._health_port.open())
        code = self._transport.run(self, self._handle_signals, self._begin_to_speak)
        self._heartbeat.end()
        self._loop_thread.await_result(self._clock_client.end())
        self._loop_thread.await_result(self._runner.close())
        self._sender.end()
        self._loop_watchdog.end()
        if self._health_port is not None:
            self._loop_thread.await_result(self._health_port.close())
        self._loop_thread.end()
        if self._is_used:
            for folder in (self._settings.files_cache, self._settings.records):
                restore_private_folder(folder)
        self._recorder.close()
        return EXIT_RENEW if self._is_used else code

    def _handle_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def on_connected(self) -> None:
        """There is a new connection."""
        self._orders.link.on_connected()

    def on_lost(self) -> None:
        """A connection without a broker is lost."""
        self._stirred.set()

    def take_leases(self, read: ReadLeases) -> None:
        """Take leases."""
        self._leases.take(read)

    def take_order(self, read: ReadOrder) -> None:
        """Obey an order."""
        try:
            order = read()
        except RejectedMessageError as error:
            self._reject(error)
            return
        self._orders.handle(order)
        self._loop_thread.post(self._stirred.set)

    def _begin_to_speak(self) -> None:
        # A worker gets leases after its first heartbeat: not before it can take them, and it gives them back
        # after a signal. A coordinator that misses the first heartbeat subscribes after it, and its first
        # order makes the worker send another.
        self._set_ready(is_ready=not self._leaving.locked())
        self._heartbeat.start()

    def _on_signal(self, *_: object) -> None:
        self._leave()

    def renew(self) -> None:
        """Leave, for a fresh process: the run is over whose user code this one has run."""
        self._is_used = True
        self._leave()

    def send_progress(self) -> None:
        """Send progress at once."""
        self._heartbeat.send_now()

    def _leave(self) -> None:
        if not self._leaving.acquire(blocking=False):
            return
        threading.Thread(target=self._drain, name="drain", daemon=True).start()
        deadline = threading.Timer(self._settings.grace_s + _ENDING_S, self._give_up_draining)
        deadline.daemon = True
        deadline.start()

    def _give_up_draining(self) -> None:
        _log.error("the worker could not end within %.0f s after the grace time: ending", _ENDING_S)
        os._exit(EXIT_STUCK)

    def _drain(self) -> None:
        _log.info("draining")
        try:
            self._await_confirmations()
        finally:
            self._transport.end()

    def _await_confirmations(self) -> None:
        """Wait until all leases are confirmed, or no confirmation can come."""
        self._set_ready(is_ready=False)
        grace_s = self._settings.grace_s
        began_at = time.monotonic()
        self._loop_thread.ask(lambda: self._runner.stop_all(grace_s))
        self._heartbeat.send_now()  # the coordinator sends no more leases then
        while True:
            self._stirred.clear()
            waited_s = time.monotonic() - began_at
            is_answered = self._runner.may_leave or self._transport.is_cut or waited_s >= _UNANSWERED_S
            if is_answered and not self._loop_thread.ask(lambda: self._runner.lease_ids):
                return
            if waited_s >= grace_s + _CONFIRMING_S and self._loop_thread.ask(
                lambda: self._runner.has_sent_all
            ):
                _log.warning("nobody has confirmed the last checkpoints, but they are sent")
                return
            self._stirred.wait(_DRAIN_ROUND_S)

    def _set_ready(self, *, is_ready: bool) -> None:
        if (file := self._settings.ready_file) is None:
            return
        if is_ready:
            os.close(open_private(file, os.O_WRONLY | os.O_CREAT))
        else:
            file.unlink(missing_ok=True)


def serve(settings: WorkerSettings) -> NoReturn:
    """Run a worker until SIGTERM or SIGINT, and end the process.

    This process becomes the zygote. It listens at the health port all the time: a probe waits for the next
    worker, and no other program can take the port meanwhile.
    """
    health_socket = None
    if settings.health_port is not None:
        [health_socket] = open_sockets(settings.health_host, settings.health_port, 1, "--health-port")
    adopt_orphans()
    forked = fork_workers()
    if forked.exit_code is not None:
        _exit(forked.exit_code)
    worker = Worker(
        settings, adopts=adopt_orphans(), health_socket=health_socket, is_renewal=forked.is_renewal
    )
    code = worker.run()
    if code == EXIT_RENEW:
        os.kill(os.getppid(), signal.SIGCONT)  # user code may have stopped the zygote
    _exit(code)


def _exit(code: int) -> NoReturn:
    """End at once: the end of the interpreter takes 0.1 s, and a command or the next run may wait."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _build_isolation(settings: WorkerSettings, *, adopts: bool) -> Isolation:
    is_wanted, is_possible = settings.confinement is not Confinement.OFF, find_version() > 0
    if is_wanted and not is_possible:
        _log.warning("user code is not confined: the kernel has no Landlock")
    return Isolation(
        environment=choose_environment(os.environ, settings.inherited_variables),
        memory_bytes=settings.user_code_memory,
        niceness=settings.user_code_niceness,
        adopts=adopts,
        is_confined=is_wanted and is_possible,
        is_unconfinable=is_wanted and not is_possible,
    )
