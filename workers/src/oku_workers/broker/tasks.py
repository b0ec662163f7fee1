"""The Celery task of a lease: claim it, carry it out, report it; acknowledged when all that is done.

A message is a hint: one that is stale or was delivered before is given back unbegun, because its lease may
be in other hands by now, and the coordinator knows.
"""

import logging
import secrets
from collections.abc import Callable
from typing import Any

from celery import Task

from oku_core.messaging.celery_app import LEASE_TASK, App, send_message
from oku_core.messaging.codec import UnreadableLeaseError, decode_lease
from oku_core.messaging.lease import LONGEST_REFUSAL, Claim, Lease
from oku_core.messaging.rejection import RejectedMessageError
from oku_workers.engines.engine_error import EngineError
from oku_workers.health.loop_thread import LoopThread
from oku_workers.leases.lease_runner import LeaseRunner, build_empty_report

_log = logging.getLogger(__name__)

REFUSED_S = 5.0
"""The message of a lease that was refused fills a hand for so long: what comes next is for others."""


def register_lease_task(
    app: App,
    loop_thread: LoopThread,
    runner: LeaseRunner,
    name: str,
    incarnation: str,
    now: Callable[[], float],
) -> None:
    """Give the application its task; `now` is Unix time, by the clock that also stands in progress."""

    @app.task(name=LEASE_TASK, bind=True, shared=False)
    def run_lease(task: Task, document: Any) -> None:
        try:
            lease = decode_lease(app.signer, document)
        except UnreadableLeaseError as error:
            head, facts = error.head, {"run": error.head.run, "lease": error.head.id}
            _log.error("lease %s is refused: %s", head.id, error, extra=facts)
            refusal = str(error)[:LONGEST_REFUSAL]
            send_message(
                app, build_empty_report(head, secrets.token_hex(8), name, incarnation, now(), refusal)
            )
            runner.rest(head.id, REFUSED_S)
            return
        except RejectedMessageError as error:
            app.reject(error)
            return
        execution_id, facts = secrets.token_hex(8), {"run": lease.run, "lease": lease.id}
        if reason := _find_reason_to_decline(task, lease, runner, now()):
            _log.info("lease %s is given back: %s", lease.id, reason, extra=facts)
            send_message(app, build_empty_report(lease, execution_id, name, incarnation, now()))
            return
        send_message(
            app, Claim(lease=lease.id, execution=execution_id, worker=name, incarnation=incarnation, at=now())
        )
        try:
            report = loop_thread.await_result(runner.run(lease, execution_id))
        except EngineError as error:
            _log.error("lease %s cannot be carried out here: %s", lease.id, error, extra=facts)
            refusal = str(error)[:LONGEST_REFUSAL]
            send_message(app, build_empty_report(lease, execution_id, name, incarnation, now(), refusal))
            runner.rest(lease.id, REFUSED_S)
            return
        except Exception as error:
            # Celery logs the traceback, and does not know the lease.
            _log.error("lease %s has failed here: %s: %s", lease.id, type(error).__name__, error, extra=facts)
            raise
        if report is None:
            _log.info("lease %s came twice", lease.id, extra=facts)
            return
        send_message(app, report)
        loop_thread.ask(lambda: runner.let_go(lease.id))


def _find_reason_to_decline(task: Task, lease: Lease, runner: LeaseRunner, now: float) -> str | None:
    if runner.is_stopping:
        return "the worker is about to leave"
    if task.request.delivery_info.get("redelivered"):
        return "its message was delivered before"
    if now > lease.start_by:
        return "its message is stale"
    return None
