"""Schedules the hooks of a scenario, each on one worker: no lease is dealt before `setup` has returned.

The ledger records an attempt before its worker receives the order. The order is repeated until the worker's
heartbeats name the attempt. When the worker dies or announces that it leaves, another one gets a new attempt;
the previous one may have done part of its work by then.
"""

import logging
from dataclasses import dataclass, field

from oku_coordinator.broker.sender import Broker
from oku_coordinator.files.file_access import FileAccess
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import hooks
from oku_coordinator.ledger.storage.records import HookRecord, RunRecord
from oku_coordinator.ledger.tables import hook_table
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.liveness import Roster
from oku_coordinator.workers.worker_state import WorkerState
from oku_core.messaging.hook import HOOK_LIMIT_S, HookAttempt, build_spec_key
from oku_core.messaging.order import CallHook
from oku_core.spec.files import list_files
from oku_core.spec.spec import Hook
from oku_core.summary.summary import HookState

_log = logging.getLogger(__name__)

_ORDER_EVERY_S = 2.0
_START_WITHIN_S = 15.0
"""The time within which an order must reach its worker."""
_AGAIN_AFTER_S = 1.0
"""The delay between a lost attempt and the next one."""
_UNANSWERED_S = 60.0
"""A live worker that has not reported an attempt for this long after its limit has lost it."""
NOBODY_S = 300.0
"""The time that the end of a run waits for a worker that can call its teardown."""
NOBODY = "was not called: no worker was available within 5 min"


@dataclass(kw_only=True)
class HookGate:
    """Schedules the hooks of one run.

    Args:
        ledger: stores attempts and their results.
        roster: the live workers and their attempts.
        assignment: the workers of the run.
        broker: sends orders to workers.
        file_access: lets workers fetch the files of the run.
        limit_s: how long a hook may take.
    """

    ledger: Ledger
    roster: Roster
    assignment: Assignment
    broker: Broker
    file_access: FileAccess
    limit_s: float = HOOK_LIMIT_S
    _ordered: tuple[HookAttempt, float] | None = field(default=None, init=False)
    """The last attempt that was ordered, and when."""
    _alone_since: float | None = field(default=None, init=False)
    """Since when no worker could call the teardown, in monotonic seconds."""

    def is_set_up(self, run: RunRecord, now: float, wall_now: float) -> bool:
        """Whether a running run may be dealt; until then, schedule its setup.

        Args:
            run: the run.
            now: monotonic seconds.
            wall_now: Unix time.
        """
        if Hook.SETUP not in run.spec.hooks:
            return True
        with self.ledger.read() as t:
            record = hook_table.fetch_hook(t, run.run, Hook.SETUP)
        if record is not None and record.state == HookState.DONE:
            if run.spec.runs_user_code:
                self.assignment.require_code(run.run, build_spec_key(run.run, record.attempt))
            return True
        self._advance(run, Hook.SETUP, record, now, wall_now)
        return False

    def tear_down(self, run: RunRecord, now: float, wall_now: float) -> None:
        """Schedule the teardown of a run that has otherwise ended.

        Args:
            run: the run.
            now: monotonic seconds.
            wall_now: Unix time.
        """
        with self.ledger.read() as t:
            record = hook_table.fetch_hook(t, run.run, Hook.TEARDOWN)
        self._advance(run, Hook.TEARDOWN, record, now, wall_now)

    def _advance(
        self, run: RunRecord, hook: Hook, record: HookRecord | None, now: float, wall_now: float
    ) -> None:
        if record is not None and record.state == HookState.BEGUN:
            self._follow(run, record, now, wall_now)
        elif record is None or not record.is_settled:
            self._start_attempt(run, hook, record, now, wall_now)

    def _start_attempt(
        self, run: RunRecord, hook: Hook, before: HookRecord | None, now: float, wall_now: float
    ) -> None:
        if self.broker.is_away:
            return
        if before is not None and wall_now - (before.ended_at or 0.0) < _AGAIN_AFTER_S:
            return
        worker = self._choose_worker(run, hook, before)
        if worker is None:
            if hook == Hook.TEARDOWN:
                self._wait_alone(run, now, wall_now)
            return
        self._alone_since = None
        with self.ledger.change(wall_now) as t:
            record = hooks.start_attempt(t, run.run, hook, worker.name, worker.incarnation, wall_now)
        if record is not None:
            _log.info("run %s: worker %s calls %s", run.run, worker.name, hook, extra={"run": run.run})
            self._send_call(run, record, worker, now, wall_now)

    def _wait_alone(self, run: RunRecord, now: float, wall_now: float) -> None:
        """Give up a teardown that no worker can call: other runs do not wait forever."""
        if self._alone_since is None:
            self._alone_since = now
        if now - self._alone_since >= NOBODY_S:
            _log.warning("run %s: teardown %s", run.run, NOBODY, extra={"run": run.run})
            with self.ledger.change(wall_now) as t:
                hooks.give_up_teardown(t, run.run, NOBODY, wall_now)

    def _choose_worker(self, run: RunRecord, hook: Hook, before: HookRecord | None) -> WorkerState | None:
        """Choose a worker that can take leases of the run, preferably not the previous one.

        A teardown may also go to a worker that has refused the run's leases, if there is no other.
        """
        workers = self.assignment.workers(run.run)
        if not workers and hook == Hook.TEARDOWN:
            workers = [worker for worker in self.roster.workers() if worker.is_fresh_for(run.run)]
        able = [worker for worker in workers if not worker.is_suspect]
        others = [worker for worker in able if before is None or worker.incarnation != before.incarnation]
        return next(iter(others or able), None)

    def _follow(self, run: RunRecord, record: HookRecord, now: float, wall_now: float) -> None:
        """Make sure that the worker has its attempt and is alive."""
        attempt = HookAttempt(run.run, record.hook, record.attempt)
        worker = self.roster.find(record.worker, record.incarnation)
        if worker is None and not self._may_be_alive(record, now):
            self._lose(attempt, f"worker {record.worker} was lost", wall_now)
        elif worker is not None and worker.stopping:
            self._lose(attempt, f"worker {record.worker} is about to leave", wall_now)
        elif wall_now - record.since > self.limit_s + _UNANSWERED_S:
            self._lose(attempt, f"worker {record.worker} has not reported a result", wall_now)
        elif worker is not None and attempt not in worker.hooks and self._is_order_due(attempt, now):
            self._send_call(run, record, worker, now, wall_now)

    def _is_order_due(self, attempt: HookAttempt, now: float) -> bool:
        return (
            self._ordered is None or self._ordered[0] != attempt or now - self._ordered[1] >= _ORDER_EVERY_S
        )

    def _may_be_alive(self, record: HookRecord, now: float) -> bool:
        """Whether a silent worker may be alive: a new coordinator has received no heartbeats yet."""
        if self.roster.is_gone(record.incarnation):
            return False
        self.roster.add_named(record.worker, record.incarnation, now)
        return self.roster.is_current(record.worker, record.incarnation)

    def _lose(self, attempt: HookAttempt, why: str, wall_now: float) -> None:
        _log.warning("%s: %s", attempt, why, extra={"run": attempt.run})
        with self.ledger.change(wall_now) as t:
            hooks.lose_attempt(t, attempt, why, wall_now)

    def _send_call(
        self, run: RunRecord, record: HookRecord, worker: WorkerState, now: float, wall_now: float
    ) -> None:
        attempt = HookAttempt(run.run, record.hook, record.attempt)
        self._ordered = (attempt, now)
        with self.ledger.read() as t:
            setup = hook_table.fetch_setup_data(t, run.run)
        call = CallHook(
            incarnation=record.incarnation,
            attempt=attempt,
            spec=run.spec,
            tickets=self.file_access.build_tickets(file.digest for file in list_files(run.spec)),
            setup_data=setup.value if record.hook == Hook.TEARDOWN else "null",
            limit_s=self.limit_s,
            start_by=wall_now + _START_WITHIN_S + worker.clock_ahead_s,
        )
        self.broker.send([call])
