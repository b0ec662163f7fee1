"""The worker as a process: a Celery worker with a pool of threads, beside them the event loop and the beat.

SIGTERM and SIGINT drain: no further lease, no further index, what is in flight may finish within the grace
time, every lease is reported and acknowledged, and only then does Celery shut down. Celery's own warm
shutdown closes its connection first, and a lease whose acknowledgement is lost comes again. A worker that
cannot drain, for its event loop or its broker does not answer, ends some seconds after that time.
"""

import gc
import logging
import os
import secrets
import signal
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

from celery import signals
from celery.exceptions import CPendingDeprecationWarning, SecurityWarning
from celery.worker import state

from oku_core.messaging.celery_app import (
    LEASES_QUEUE,
    App,
    build_worker_app,
    find_connection_errors,
    find_last_call_s,
)
from oku_core.process.clock import SteadyClock
from oku_core.process.open_files import raise_open_files
from oku_core.process.private_files import open_private
from oku_core.process.supervision import Supervisor
from oku_workers.broker.consumer import TASKS, SteadyConsumer, is_worth_a_line
from oku_workers.broker.orders import Orders, listen_to_orders
from oku_workers.broker.tasks import register_lease_task
from oku_workers.health.heartbeat import EXIT_STUCK, LONGEST_PAUSE_S, Heartbeat
from oku_workers.health.loop_thread import LoopThread
from oku_workers.health.loop_watch import LoopWatch
from oku_workers.leases.lease_runner import LeaseRunner
from oku_workers.settings import WorkerSettings

_log = logging.getLogger(__name__)

_DRAIN_POLL_S = 0.02
_REPORTING_S = 20.0
"""So long after the grace time may reporting take; a pod is killed 25 s after it."""


class Worker:
    """One worker; `run` returns its exit code when it has drained.

    Args:
        settings: what it was told.
        build_supervisor: of its tasks; a test may let them fail.
    """

    def __init__(
        self, settings: WorkerSettings, build_supervisor: Callable[..., Supervisor] = Supervisor
    ) -> None:
        self._settings = settings
        incarnation, clock = secrets.token_hex(8), SteadyClock()
        self._app = build_worker_app(settings.broker_url, settings.message_key)
        self._loop_thread = LoopThread()
        supervisor = build_supervisor(passing=(OSError, *find_connection_errors(self._app)))
        self._runner = LeaseRunner(
            settings.name, incarnation, supervisor, settings.local_address, clock, settings.sources
        )
        # Nobody hears of the beat's own trouble: its silence is the notice.
        health = supervisor.build_health("beat", LONGEST_PAUSE_S)
        self._heartbeat = Heartbeat(self._app, health, self._loop_thread, self._runner, settings.idle_limit_s)
        watching = supervisor.enlist("loop watch", LONGEST_PAUSE_S)
        self._loop_watch = LoopWatch(watching, self._loop_thread, settings.loop_limit_s, settings.alive_file)
        self._consumer: Any = None
        self._has_signal = False
        register_lease_task(self._app, self._loop_thread, self._runner, settings.name, incarnation, clock.now)
        orders = Orders(self._loop_thread, self._runner, self._heartbeat)
        listen_to_orders(self._app, f"{settings.name}.{incarnation}", orders.obey)

    def run(self) -> int:
        """Startup, main loop (Celery's), shutdown."""
        raise_open_files()
        self._say_ready(is_ready=False)
        # Objects of the start-up live as long as the process; what requests leave behind is freed by
        # counting references, so that cycles are rare.
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        self._loop_thread.start()
        self._loop_thread.ask(self._runner.start)
        self._loop_watch.start()
        self._heartbeat.start()
        signals.worker_ready.connect(self._on_ready)
        celery_worker = _build_celery_worker(self._app, self._settings.name)
        celery_worker.start()
        self._heartbeat.end()
        self._loop_thread.await_result(self._runner.close())
        self._loop_watch.end()
        self._loop_thread.end()
        return int(celery_worker.exitcode or 0)

    def _on_ready(self, sender: Any, **_: object) -> None:
        self._consumer = sender
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        self._say_ready(is_ready=True)

    def _on_signal(self, *_: object) -> None:
        if self._has_signal:
            return
        self._has_signal = True
        threading.Thread(target=self._drain, name="drain", daemon=True).start()
        deadline = threading.Timer(self._settings.grace_s + _REPORTING_S, self._give_up_draining)
        deadline.daemon = True
        deadline.start()

    def _give_up_draining(self) -> None:
        _log.error("what is in hand could not be reported %.0f s after the grace time: ending", _REPORTING_S)
        os._exit(EXIT_STUCK)

    def _drain(self) -> None:
        _log.info("draining")
        try:
            self._await_reports()
        finally:
            state.should_stop = 0

    def _await_reports(self) -> None:
        self._say_ready(is_ready=False)
        self._loop_thread.ask(lambda: self._runner.stop_all(self._settings.grace_s))
        self._consumer.call_soon(self._consumer.cancel_task_queue, LEASES_QUEUE)
        # What comes by a call that is still out goes back into the queue as long as there is a loop.
        call_ends_at = time.monotonic() + find_last_call_s(self._app)
        while state.reserved_requests or state.active_requests or time.monotonic() < call_ends_at:
            time.sleep(_DRAIN_POLL_S)

    def _say_ready(self, *, is_ready: bool) -> None:
        if (file := self._settings.ready_file) is None:
            return
        if is_ready:
            os.close(open_private(file, os.O_WRONLY | os.O_CREAT))
        else:
            file.unlink(missing_ok=True)


def serve(settings: WorkerSettings) -> int:
    """Run a worker until SIGTERM or SIGINT; its exit code."""
    return Worker(settings).run()


def _build_celery_worker(app: App, name: str) -> Any:
    # Celery warns a superuser of messages that run code; ours are JSON and checked.
    warnings.simplefilter("ignore", SecurityWarning)
    # Celery would otherwise set up logging of its own.
    signals.setup_logging.connect(lambda **_: None, weak=False)
    worker = app.Worker(
        hostname=f"{name}@oku",
        pool="threads",
        concurrency=TASKS,
        consumer_cls=SteadyConsumer,
        queues=[LEASES_QUEUE],
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        task_events=False,
        quiet=True,
    )
    # Each loss of a connection would bring a warning of what is set in `oku_core.messaging.celery_app`.
    warnings.simplefilter("ignore", CPendingDeprecationWarning)
    logging.getLogger("celery.worker.request").addFilter(is_worth_a_line)
    return worker
