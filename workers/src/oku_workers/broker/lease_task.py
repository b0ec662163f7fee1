"""The Celery task of a lease: claim it, run it, report it; its message is acknowledged when all that is done.

A message is a hint: a lease whose message is stale or was delivered before is given back unbegun, because
another worker may have it by now, and the coordinator knows.
"""

import logging
import secrets
from collections.abc import Callable
from typing import Any

from celery import Task

from oku_core.messaging.celery_app import LEASE_TASK, App
from oku_core.messaging.codec import LeaseHead, UnreadableLeaseError, decode_lease
from oku_core.messaging.lease import LONGEST_REFUSAL, Lease
from oku_core.messaging.rejection import RejectedMessageError
from oku_core.messaging.sending import send_message
from oku_workers.engines.engine_error import EngineError
from oku_workers.leases.lease_runner import LeaseRunner
from oku_workers.leases.reports import WorkerIdentity, build_claim, build_empty_report
from oku_workers.loop_thread import LoopThread

_log = logging.getLogger(__name__)

REFUSED_S = 5.0
"""The message of a lease that was refused fills a slot for so long: what comes next is for other workers."""


class LeaseTask:
    """Takes leases from the broker; each call runs in a thread of Celery's.

    Args:
        app: what messages are sent with.
        loop_thread: the event loop.
        runner: runs leases, in that loop.
        worker: whom the leases are for.
        now: Unix time, by the clock that also stands in progress.
    """

    def __init__(
        self,
        app: App,
        loop_thread: LoopThread,
        runner: LeaseRunner,
        worker: WorkerIdentity,
        now: Callable[[], float],
    ) -> None:
        self._app = app
        self._loop_thread = loop_thread
        self._runner = runner
        self._worker = worker
        self._now = now

    def register(self) -> None:
        """Have Celery call this for each message of a lease."""

        @self._app.task(name=LEASE_TASK, bind=True, shared=False)
        def run_lease(task: Task, document: Any) -> None:
            self._take(document, is_redelivered=bool(task.request.delivery_info.get("redelivered")))

    def _take(self, document: Any, *, is_redelivered: bool) -> None:
        execution_id = secrets.token_hex(8)
        try:
            lease = decode_lease(self._app.signer, document)
        except UnreadableLeaseError as error:
            _log.error("lease %s is refused: %s", error.head.id, error, extra=_build_context(error.head))
            self._refuse(error.head, execution_id, error)
        except RejectedMessageError as error:
            self._app.reject(error)
        else:
            if reason := self._find_reason_to_decline(lease, is_redelivered=is_redelivered):
                _log.info("lease %s is given back: %s", lease.id, reason, extra=_build_context(lease))
                self._give_back(lease, execution_id)
            else:
                self._run(lease, execution_id)

    def _find_reason_to_decline(self, lease: Lease, *, is_redelivered: bool) -> str | None:
        if self._runner.is_stopping:
            return "the worker is about to leave"
        if is_redelivered:
            return "its message was delivered before"
        if self._now() > lease.start_by:
            return "its message is stale"
        return None

    def _run(self, lease: Lease, execution_id: str) -> None:
        send_message(self._app, build_claim(self._worker, lease, execution_id, self._now()))
        context = _build_context(lease)
        try:
            report = self._loop_thread.await_result(self._runner.run(lease, execution_id))
        except EngineError as error:
            _log.error("lease %s cannot be carried out here: %s", lease.id, error, extra=context)
            self._refuse(lease, execution_id, error)
            return
        except Exception as error:
            # Celery logs the traceback, but does not know the lease.
            _log.error("lease %s failed: %s: %s", lease.id, type(error).__name__, error, extra=context)
            raise
        if report is None:
            _log.info("lease %s arrived twice", lease.id, extra=context)
            return
        send_message(self._app, report)
        self._loop_thread.ask(lambda: self._runner.forget(lease.id))

    def _refuse(self, lease: Lease | LeaseHead, execution_id: str, error: Exception) -> None:
        self._give_back(lease, execution_id, str(error)[:LONGEST_REFUSAL])
        self._runner.fill_slot(lease.id, REFUSED_S)

    def _give_back(self, lease: Lease | LeaseHead, execution_id: str, refusal: str = "") -> None:
        send_message(self._app, build_empty_report(self._worker, lease, execution_id, self._now(), refusal))


def _build_context(lease: Lease | LeaseHead) -> dict[str, str]:
    """What a program can look for in a log."""
    return {"run": lease.run, "lease": lease.id}
