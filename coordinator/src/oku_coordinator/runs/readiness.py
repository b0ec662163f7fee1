"""The requirements of runs: rejected specs, permission to start, and reasons to wait.

The state of workers, pods, Kubernetes and Loki becomes notices: lines for users who watch a run.
"""

import asyncio
import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from oku_coordinator.kube.pods import SERVERS_WITHIN_S
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables import hook_table, run_table
from oku_coordinator.runs.file_keeper import FileKeeper
from oku_coordinator.runs.notices import (
    TargetNotices,
    Troubles,
    describe_unconfined,
    fetch_unconfined_notice,
    list_unconfined,
)
from oku_coordinator.runs.printed_lines import PrintedLines
from oku_coordinator.servers.server_watch import ServerWatch
from oku_coordinator.settings import MOST_QUEUED
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError
from oku_core.spec.description import describe_shortage
from oku_core.spec.files import NOWHERE, SpecFiles, list_files
from oku_core.spec.request_rules import find_memory_fault
from oku_core.spec.spec import Hook, Spec
from oku_core.summary.summary import HookState

if TYPE_CHECKING:
    from oku_coordinator.kube.facade import KubeFacade

NOBODY = "waiting for a worker to connect"
LONGEST_NOTICE = 300
"""Characters; foreign messages may be long."""
_NEARLY_FULL = 0.9
"""With fewer of the allowed requests in flight, a rate is held."""
_ALMOST = 0.99
_STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


class QueueFullError(Exception):
    """Too many runs are pending or active."""

    def __init__(self, queued: int, most: int) -> None:
        super().__init__(
            f"{queued} runs are pending or active, and at most {most} may be:"
            " wait for one to end, or cancel one"
        )


class UserCodeRefusedError(Exception):
    """Runs of user code are not allowed here."""

    def __init__(self) -> None:
        super().__init__(
            "user code is not allowed here: the operator can allow it, by allowUserCode: true in the chart's"
            " values, or by --allow-user-code of oku coordinator"
        )


class WorkerReadiness(NamedTuple):
    """The workers of a run at one moment.

    Args:
        there: how many are connected and can start the run.
        wanted: how many the run requests.
        obstacle: why others are missing, or their names, if known; else empty.
    """

    there: int
    wanted: int
    obstacle: str

    @property
    def missing(self) -> int:
        """The number of workers that the run waits for."""
        return max(0, self.wanted - self.there)

    def describe(self) -> str:
        """The number of connected workers, and why the others are missing."""
        return f"{self.there:,} of {self.wanted:,} workers{_add(self.obstacle)}"


@dataclass(frozen=True)
class Readiness:
    """The state of everything that runs need.

    Args:
        ledger: has the run with its turn.
        roster: the live workers.
        assignment: the workers of the run that has its turn.
        kube: scales for runs, in a cluster.
        server_watch: watches the delay servers, if there are any.
        troubles: the other problems.
        target_notices: the notices about targets.
        printed: what the user code of runs has printed.
        files: the files that specs may name.
        keeper: stores the files of runs, if enabled.
        most_queued: how many runs may be pending or active.
        expected_workers: the names of the workers that a run waits for unless its spec sets a number.
        allows_user_code: whether runs may contain user code.
    """

    ledger: Ledger
    roster: Roster
    assignment: Assignment
    kube: "KubeFacade | None" = field(default=None, kw_only=True)
    server_watch: ServerWatch | None = field(default=None, kw_only=True)
    troubles: Troubles = field(default_factory=Troubles, kw_only=True)
    target_notices: TargetNotices = field(default_factory=TargetNotices, kw_only=True)
    printed: PrintedLines = field(default_factory=PrintedLines, kw_only=True)
    files: SpecFiles = field(default=NOWHERE, kw_only=True)
    keeper: FileKeeper | None = field(default=None, kw_only=True)
    most_queued: int = field(default=MOST_QUEUED, kw_only=True)
    expected_workers: Sequence[str] = field(default=(), kw_only=True)
    allows_user_code: bool = field(default=False, kw_only=True)

    def check(self, spec: Spec) -> None:
        """Reject a spec that cannot be executed here, or is not allowed, with a `UserError`."""
        self.check_user_code(spec)
        self.files.check(spec)
        if self.keeper is not None:
            self.keeper.check(spec)
        if self.kube is not None:
            self.kube.check(spec)

    async def check_memory(self, spec: Spec) -> None:
        """Reject a spec whose bodies do not fit into a live worker; later workers check for themselves.

        Runs in a thread, because a long body is read and searched for placeholders.
        """
        known = [worker.memory_bytes for worker in self.roster.workers() if worker.memory_bytes]
        if not known:
            return
        workers = min(spec.workers or len(self.expected_workers) or len(known), spec.most_workers)
        in_flight = min(spec.find_window(workers), spec.requests)
        self.check(spec)  # so its files are here
        fault = await asyncio.to_thread(find_memory_fault, spec, in_flight, min(known), self._find_file)
        if fault:
            raise UserError(fault)

    def check_proofs(self, spec: Spec, proofs: Mapping[str, str]) -> None:
        """Reject a spec whose caller does not prove to have its files, with a `UserError`."""
        if self.keeper is not None:
            self.keeper.check_proofs(spec, proofs)
            return
        for file in list_files(spec):
            raise UserError(f"{file.name}: this coordinator keeps no files of runs")

    def _find_file(self, digest: str) -> Path:
        return Path(digest) if self.keeper is None else self.keeper.find(digest)

    def check_user_code(self, spec: Spec) -> None:
        """Reject a spec with user code with a `UserCodeRefusedError`, unless user code is allowed."""
        if spec.runs_user_code and not self.allows_user_code:
            raise UserCodeRefusedError

    def check_queue(self) -> None:
        """Reject another run with a `QueueFullError` when too many are waiting."""
        if (queued := self.count_queued()) >= self.most_queued:
            raise QueueFullError(queued, self.most_queued)

    def count_queued(self) -> int:
        """The number of pending or active runs."""
        with self.ledger.read() as t:
            return run_table.count_queued(t)

    def may_start(self, run: RunRecord) -> bool:
        """Whether delay servers are ready, resolvable and recorded, if a run needs them."""
        is_scaled = self.kube is None or self.kube.may_start(run)
        return is_scaled and (self.server_watch is None or self.server_watch.may_start(run))

    def find_servers_within_s(self, run: RunRecord) -> float:
        """The longest time to wait for delay servers."""
        return SERVERS_WITHIN_S if self.kube is not None and run.spec.brings_servers else 0.0

    def count_workers(self, run: RunRecord) -> WorkerReadiness:
        """The workers that can start a run, of those that it requests, at least one.

        A run without a requested number gets the present workers, and waits for replacements of dead ones.
        """
        there = self.assignment.workers(run.run)
        if run.spec.is_open:  # a worker without the clock does not know what is due
            there = [worker for worker in there if worker.knows_clock]
        if self.kube is not None:
            wanted, obstacle = self.kube.count_workers(run.spec), self.kube.workers.obstacle
        else:
            renewing = self.roster.find_renewing(run.run) if run.state == RunState.PENDING else []
            wanted = run.spec.workers or len(self.expected_workers) or max(1, len(there) + len(renewing))
            wanted = min(wanted, run.spec.most_workers)
            names = {worker.name for worker in there}
            absent = [name for name in self.expected_workers if name not in names]
            obstacle = describe_absent(absent) if len(self.expected_workers) == wanted else ""
        if preparing := self.assignment.find_preparing(run.run):
            obstacle = _describe_preparing(run.spec, len(preparing))
        return WorkerReadiness(len(there), wanted, obstacle if len(there) < wanted else "")

    def expects_workers(self) -> bool:
        """Whether more worker pods are starting."""
        return self.kube is not None and not self.kube.workers.is_complete

    def forget_refusals(self, run: str) -> None:
        """Let every worker try a resumed run again."""
        self.roster.forget_refusals(run)

    def build_notices(self, run: RunRecord) -> list[str]:
        """Build the notices of a run: reasons to wait and problems; at rest, lasting facts."""
        if run.is_at_rest:
            return fetch_unconfined_notice(self.ledger, run)
        if (turn := self._find_turn(run)) is not None:
            return [turn]
        return [_shorten(notice) for notice in self._find_all(run)]

    def _find_turn(self, run: RunRecord) -> str | None:
        """What keeps a run from its turn; None if it has its turn."""
        with self.ledger.read() as t:
            current = run_table.fetch_current_run(t)
        if current is None or current.run == run.run:
            return None
        obstacle = _add(self.find_obstacle(current))
        return _shorten(f"waiting for its turn: run {current.run} is {current.state}{obstacle}")

    def has_worker(self, run: str) -> bool:
        """Whether a worker is there for a run; none is while the run waits for its turn."""
        return self.assignment.has_worker(run)

    def find_worker_obstacle(self, run: RunRecord) -> str:
        """Why a run has no worker, in a line; empty if no reason is known."""
        if (turn := self._find_turn(run)) is not None:
            return turn
        missing = _shorten(next(self._find_worker_notices(run), ""))
        return missing or ("" if self.roster.workers() else NOBODY)

    def find_obstacle(self, run: RunRecord) -> str:
        """What keeps the run that has its turn from continuing, in a line; empty if no reason is known."""
        return next(self._find_all(run), "")

    def _find_all(self, run: RunRecord) -> Iterator[str]:
        if run.state == RunState.PAUSING and run.reason:
            yield run.reason
        yield from self._find_hook_notices(run)
        if notice := self.target_notices.find(run.run):
            yield notice
        yield from self._find_worker_notices(run)
        yield from self.roster.find_host_ends(run.run)
        yield from describe_unconfined(list_unconfined(self.assignment, run))
        yield from self._find_server_notices(run)
        yield from self._find_other_notices()

    def _find_hook_notices(self, run: RunRecord) -> Iterator[str]:
        """Find the hook of its scenario that the run waits for."""
        if run.state == RunState.RUNNING and Hook.SETUP in run.spec.hooks:
            hook = Hook.SETUP
        elif run.state == RunState.TEARING_DOWN:
            hook = Hook.TEARDOWN
        else:
            return
        with self.ledger.read() as t:
            record = hook_table.fetch_hook(t, run.run, hook)
        if record is not None and record.state == HookState.BEGUN:
            again = f", try {record.tries}" if record.tries > 1 else ""
            yield f"waiting for {hook} of the scenario: worker {record.worker} calls it{again}"
        elif record is not None and record.state == HookState.LOST:
            yield f"waiting for {hook} of the scenario: it will be called again: {record.error}"
        elif hook == Hook.TEARDOWN:
            yield f"waiting for {hook} of the scenario: a worker will call it"

    def _find_worker_notices(self, run: RunRecord) -> Iterator[str]:
        if run.state not in (RunState.PENDING, RunState.RUNNING):
            return
        yield from self._find_missing(run)
        yield from self._find_surplus(run)
        yield from self._find_lost_in_time(run)
        yield from self._find_shortage(run)
        if barred := self.roster.find_barred(run.run):
            others = f" (and {len(barred) - 1:,} more)" if len(barred) > 1 else ""
            yield f"worker {barred[0].name} gets no leases of this run{others}: {barred[0].refusal}"

    def _find_surplus(self, run: RunRecord) -> Iterator[str]:
        """Find workers that are left out because the run has fewer requests in flight than workers."""
        spec, most = run.spec, run.spec.most_workers
        wanted = spec.workers or len(self.roster.find_available(run.run))
        if wanted > most:
            what = (
                "connections" if most < spec.concurrency else "users" if spec.runs_user_code else "in flight"
            )
            yield f"{most:,} of {wanted:,} workers take part, with one each of {most:,} {what}"

    def _find_lost_in_time(self, run: RunRecord) -> Iterator[str]:
        if not run.spec.is_open:
            return
        if lost := [worker for worker in self.assignment.workers(run.run) if not worker.knows_clock]:
            others = f" (and {len(lost) - 1:,} more)" if len(lost) > 1 else ""
            yield f"worker {lost[0].name} does not know the coordinator's clock yet{others}"

    def _find_shortage(self, run: RunRecord) -> Iterator[str]:
        """Find what a rate needs that the allowed requests in flight do not hold."""
        if not run.spec.is_open or run.state != RunState.RUNNING or not self.assignment.workers(run.run):
            return
        in_flight, rate_rps = self.assignment.measure_flight(run.run)
        if rate_rps and in_flight >= _NEARLY_FULL * run.spec.concurrency:
            latency_s = round_up_latency(in_flight / rate_rps)
            if shortage := describe_shortage(run.spec, latency_s):
                yield shortage

    def _find_missing(self, run: RunRecord) -> Iterator[str]:
        here, workers = len(self.roster.workers()), self.count_workers(run)
        is_pending = run.state == RunState.PENDING
        if is_pending and (preparing := self.assignment.find_preparing(run.run)):
            members = self.assignment.count(run.run)
            what, does = ("user code", "load it") if run.spec.runs_user_code else ("files", "fetch them")
            yield f"waiting for {what} of the run: {len(preparing):,} of {members:,} workers {does}"
            return
        if self.kube is not None and not is_pending:
            pods = self.kube.workers
            if here < pods.wanted and not (here and pods.is_complete):
                yield f"waiting for workers: {here:,} of {pods.wanted:,} connected{_add(pods.obstacle)}"
            elif not here:
                yield NOBODY
        elif is_pending and workers.missing and (workers.wanted > 1 or self.kube is not None):
            count = f"{workers.there:,} of {workers.wanted:,} connected"
            yield f"waiting for workers: {count}{_add(workers.obstacle)}"
        elif not here:
            yield NOBODY
        elif here < workers.wanted:
            yield f"{here:,} of {workers.wanted:,} workers are connected{_add(workers.obstacle)}"

    def _find_server_notices(self, run: RunRecord) -> Iterator[str]:
        if self.kube is None or run.state != RunState.PENDING or self.kube.may_start(run):
            return
        servers = self.kube.delay_servers
        if servers.wanted:  # else they are about to be requested
            count = f"{servers.there} of {servers.wanted} ready"
            surplus = f", {servers.surplus} still to be removed" if servers.surplus else ""
            yield f"waiting for delay servers: {count}{surplus}{_add(servers.obstacle)}"

    def _find_other_notices(self) -> Iterator[str]:
        if trouble := self.ledger.storage.trouble:
            yield f"the ledger cannot be used: {trouble}; nothing is dealt or accounted until then"
        if trouble := self.troubles.find_broker_trouble():
            yield f"{trouble}: no leases go out and no checkpoints come in"
        if self.kube is not None and self.kube.trouble:
            yield f"Kubernetes: {self.kube.trouble}"
        yield from self.roster.find_troubles()
        yield from self.troubles.list_other_troubles()


def describe_absent(names: Sequence[str]) -> str:
    """The missing workers; if there are many, the first ones."""
    most = 3
    if not names:
        return ""
    if len(names) == 1:
        return f"{names[0]} is missing"
    listed = list(names) if len(names) <= most else [*names[: most - 1], f"{len(names) - most + 1:,} more"]
    return f"{', '.join(listed[:-1])} and {listed[-1]} are missing"


def round_up_latency(latency_s: float) -> float:
    """Round up to one of ten steps per decade: the notice stays the same while a latency hardly changes."""
    decade = 10.0 ** math.floor(math.log10(latency_s))
    return next(step * decade for step in _STEPS if step * decade >= _ALMOST * latency_s)


def _shorten(notice: str) -> str:
    return textwrap.shorten(notice, LONGEST_NOTICE, placeholder=" …")


def _describe_preparing(spec: Spec, count: int) -> str:
    verbs, what = ("load", "loads"), "user code"
    if not spec.runs_user_code:
        verbs, what = ("fetch", "fetches"), "files"
    return f"{count:,} {verbs[count == 1]} the {what} of the run"


def _add(obstacle: str) -> str:
    return f": {obstacle}" if obstacle else ""
