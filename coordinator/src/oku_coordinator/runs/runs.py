"""Operations on runs: submit, list, show, pause, resume, cancel, delete, and end them."""

import asyncio
import logging
import secrets
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime

import msgspec

from oku_coordinator.broker.sender import Broker
from oku_coordinator.event_loop import LoopSignals
from oku_coordinator.ledger import Ledger, batches
from oku_coordinator.ledger.rules import history, hooks, lifecycle, retried_run
from oku_coordinator.ledger.storage.records import RunRecord, RunRow
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import run_table
from oku_coordinator.ledger.tables.accounts import work_table
from oku_coordinator.runs.followers import Followers
from oku_coordinator.runs.readiness import Readiness
from oku_coordinator.runs.retention import delete_run, find_submitted
from oku_coordinator.runs.run_documents import write_failures, write_run_history
from oku_coordinator.runs.summary.summarizer import Summarizer
from oku_coordinator.servers.served_count import ServedCounter, ServedTotal
from oku_coordinator.servers.server_watch import UNSEEN
from oku_core.accounting.run_state import SENDING_STATES, RunState, TearingDownError
from oku_core.messaging.printed import PrintedSummary
from oku_core.process.clock import Clock
from oku_core.process.resources import measure_peak_rss_mb
from oku_core.results.event import Event, EventType
from oku_core.results.failure_filter import FailureFilter
from oku_core.results.lines import LineKind
from oku_core.spec.spec import Spec
from oku_core.summary.summary import ProcessSummary, Summary
from oku_core.summary.summary_lines import (
    build_failure_lines,
    build_inner_lines,
    build_phase_lines,
    build_summary_line,
    build_target_lines,
    build_threshold_lines,
)
from oku_core.summary.validity import Validity

_log = logging.getLogger(__name__)

_GOING_ON = (RunState.PENDING, RunState.RUNNING)
"""States of a run that need no resuming."""


class Runs:
    """The runs of a coordinator.

    Args:
        ledger: stores the runs.
        served: fetches the counts of the delay servers.
        signals: start a round when a run has changed.
        broker: may report its peak memory.
        readiness: the rules for specs, and the notices of runs.
        clock: Unix time.

    Attributes:
        followers: the followers of runs.
    """

    def __init__(
        self,
        ledger: Ledger,
        served: ServedCounter,
        signals: LoopSignals,
        broker: Broker,
        readiness: Readiness,
        clock: Clock = time.time,
    ) -> None:
        self._clock = clock
        self._ledger = ledger
        self._served = served
        self._signals = signals
        self._preparing = asyncio.Lock()
        self._broker = broker
        self._readiness = readiness
        self.followers = Followers(ledger)
        self._summarizer = Summarizer(ledger, clock)

    async def admit(self, spec: Spec, proofs: Mapping[str, str]) -> None:
        """Apply the checks of a submission that `submit` cannot, and reject the spec with a `UserError`.

        The caller must prove to have its files before any message mentions them, and the bodies must fit into
        the memory of a worker.
        """
        self._readiness.check_user_code(spec)
        self._readiness.check_proofs(spec, proofs)
        await self._readiness.check_memory(spec)

    def find_submitted(self, key: str | None, spec: Spec) -> RunRecord | None:
        """The run that was submitted with a key; None without a key."""
        return None if key is None else find_submitted(self._ledger, key, spec)

    def submit(self, spec: Spec, key: str | None = None) -> RunRecord:
        """Submit a run with a spec that `admit` has accepted, and with a new key."""
        now = self._clock()
        self._readiness.check(spec)
        self._readiness.check_queue()
        with self._ledger.change(now) as t:
            record = lifecycle.create_run(t, build_run_id(now), spec, now, key)
        self._signals.wake()
        return record

    def retry(self, run: str, only: FailureFilter) -> RunRecord:
        """Submit a run over these failed requests of a run at rest."""
        now = self._clock()
        with self._ledger.read() as t:
            spec = run_table.fetch_run(t, run).spec
        self._readiness.check_user_code(spec)
        self._readiness.check_queue()
        with self._ledger.change(now) as t:
            record = retried_run.create_retry(t, build_run_id(now), run, now, only)
        self._signals.wake()
        return record

    def fetch_page(self, most: int, after: str, reference: str | None = None) -> list[RunRow]:
        """At most this many runs, newest first, after the `cursor` of one.

        With a reference, only the matching ones (`oku_core.results.run_api`).
        """
        with self._ledger.read() as t:
            return run_table.fetch_runs(t, most, after, reference)

    def pause(self, run: str) -> RunRecord:
        """Stop dealing a run; requests in flight may finish."""
        now = self._clock()
        with self._ledger.change(now) as t:
            before = run_table.fetch_run(t, run)
            if before.state == RunState.TEARING_DOWN:
                raise TearingDownError(run)
            is_out = before.state not in (RunState.PENDING, RunState.PAUSED)
            record = _enter(t, before, RunState.PAUSING if is_out else RunState.PAUSED, now)
        return self._announce(before, record)

    async def prepare_resume(self, run: str) -> None:
        """Load the account of a run that can be resumed, so that the event loop does not wait for it.

        One at a time: the queue may be full afterwards, and then the account stays in memory for a while.

        Raises:
            UnknownRunError: there is no such run.
            TransitionError: it is over, or has not stopped yet.
            UserCodeRefusedError: it runs user code, which is not allowed here.
            QueueFullError: too many runs are waiting.
        """
        async with self._preparing:
            if self._check_resume(run).state not in _GOING_ON:
                await asyncio.to_thread(batches.preload_account, self._ledger, run)

    def resume(self, run: str) -> RunRecord:
        """Queue a paused run again, or a failed one with a true account.

        A run that has not stopped continues.
        """
        record = self._check_resume(run)
        self._readiness.forget_refusals(run)
        if record.state in _GOING_ON:
            return record
        now = self._clock()
        with self._ledger.change(now) as t:
            before = run_table.fetch_run(t, run)
            record = _enter(t, before, RunState.PENDING, now)
        return self._announce(before, record)

    def _check_resume(self, run: str) -> RunRecord:
        """Check whether a run continues, or can be resumed."""
        with self._ledger.read() as t:
            record = run_table.fetch_run(t, run)
        if record.state not in _GOING_ON:
            lifecycle.check_entry(record, RunState.PENDING)
            self._readiness.check_user_code(record.spec)
            self._readiness.check_queue()
        return record

    def cancel(self, run: str, *, at_once: bool = False, reason: str = "") -> RunRecord:
        """Cancel a run, for a reason; requests in flight may finish, unless it ends at once.

        A run that is being cancelled can still be ended at once. A run that waits for its teardown stops
        waiting.
        """
        now = self._clock()
        with self._ledger.change(now) as t:
            before = run_table.fetch_run(t, run)
            if before.state == RunState.TEARING_DOWN:
                why = f"was given up: {reason or 'the run was cancelled'}"
                hooks.give_up_teardown(t, run, why, now)
            else:
                is_out = before.state in SENDING_STATES
                ended = _enter(t, before, RunState.CANCELLING if is_out else RunState.CANCELLED, now, reason)
                if at_once and ended.is_active:
                    run_table.drop_in_flight(t, run)
            record = run_table.fetch_run(t, run)
        return self._announce(before, record)

    def _announce(self, before: RunRecord, record: RunRecord) -> RunRecord:
        """Announce the changes of a run; returns its current record."""
        if record != before:
            self._signals.wake()
        if record.state != before.state and record.is_at_rest:
            self.followers.announce_rest()
        return record

    async def delete(self, run: str) -> None:
        """Delete a run that is over or paused; its space is freed soon."""
        await delete_run(self._ledger, run, self._clock())

    def fetch_spec(self, run: str) -> Spec:
        """The spec of a run."""
        with self._ledger.read() as t:
            return run_table.fetch_run(t, run).spec

    async def summarize(self, run: str) -> Summary:
        """The current summary of a run, with the counts of the delay servers.

        Their count is stored once the run is at rest: only then does it belong to the same instant as the
        account.
        """
        with self._ledger.read() as t:
            record = run_table.fetch_run(t, run)
        return await self._sum_up(record, await self._ask_servers(record))

    async def _ask_servers(self, record: RunRecord) -> ServedTotal | None:
        return await self._served.fetch(record.run) if record.spec.brings_servers else None

    async def _sum_up(self, record: RunRecord, answer: ServedTotal | None) -> Summary:
        """Build a summary with the servers' answer, which they gave after the run was in this state."""
        served = answer.requests if answer else None
        if served is not None and record.is_at_rest and (record.served is None or served > record.served):
            self._keep_served(record.run, served)
        record, summary = await self._summarizer.build(record, served)
        printed = self.find_printed(record.run)
        return msgspec.structs.replace(summary, notices=self.build_notices(record), printed=printed)

    def build_notices(self, record: RunRecord) -> list[str]:
        """What a run waits for, and its problems."""
        return self._readiness.build_notices(record)

    def find_printed(self, run: str) -> PrintedSummary | None:
        """What the user code of a run has printed; None if it has printed nothing, or long ago."""
        return self._readiness.printed.find(run)

    def _keep_served(self, run: str, served: int) -> None:
        try:
            with self._ledger.change() as t:
                run_table.set_served(t, run, served)
        except sqlite3.OperationalError as error:  # the summary is shown without them
            _log.warning("the count of the delay servers cannot be stored: %s", error, extra={"run": run})

    async def read_history(self, run: str) -> AsyncGenerator[bytes]:
        """Read the history of a run in a thread, in the pieces of `write_run_history`.

        Raises `UnknownRunError` at once, not with the first piece.
        """
        summary = await self.summarize(run)
        return self._read_pieces(lambda reader: write_run_history(reader, summary, self._clock()))

    async def _read_pieces(self, write: Callable[[Ledger], Iterator[bytes]]) -> AsyncGenerator[bytes]:
        with closing(self._ledger.open_reader()) as reader:
            pieces = write(reader)
            while piece := await asyncio.to_thread(next, pieces, b""):
                yield piece

    async def read_failures(self, run: str) -> AsyncGenerator[bytes]:
        """Read the failed requests of a run in a thread, in the pieces of `write_failures`.

        Raises `UnknownRunError` at once, not with the first piece.
        """
        with self._ledger.read() as t:
            run_table.fetch_run(t, run)
        return self._read_pieces(lambda reader: write_failures(reader, run))

    async def end(self, run: str, *, waits: bool = False) -> bool:
        """Store the counts of the delay servers for a run at rest, and the peak memory of the processes.

        Args:
            run: its id.
            waits: whether to store nothing and return False while silent servers may come back.
        """
        with self._ledger.read() as t:
            record = run_table.fetch_run(t, run)
        answer = await self._ask_servers(record)
        if waits and answer is None and self._may_be_served(record):
            self.followers.set_held(run, is_held=True)
            return False
        self.followers.set_held(run, is_held=False)
        processes = [ProcessSummary(name="coordinator", peak_mb=round(measure_peak_rss_mb(), 1))]
        if (broker_mb := await asyncio.to_thread(self._broker.fetch_peak_mb)) is not None:
            processes.append(ProcessSummary(name="broker", peak_mb=round(broker_mb, 1)))
        with self._ledger.change() as t:
            work_table.keep_processes(t, run, [*processes, *(answer.processes if answer else ())])
        summary, now = await self._sum_up(record, answer), self._clock()
        events = [
            Event(
                at=now,
                type=EventType.VALIDITY,
                text=_describe_flag(validity),
                flag=validity.flag,
                requests=validity.requests,
            )
            for validity in summary.validity
        ]
        parts = {
            LineKind.PHASE: list(build_phase_lines(summary.phases)),
            LineKind.TARGET: list(build_target_lines(summary.targets)),
            LineKind.INNER: list(build_inner_lines(summary.inner_requests)),
            LineKind.THRESHOLD: list(build_threshold_lines(summary.thresholds)),
            LineKind.FAILURE: list(build_failure_lines(summary)),
        }
        line = build_summary_line(summary)
        with self._ledger.change() as t:
            history.put_summary(t, run, line, events, now, parts)
        return True

    def _may_be_served(self, record: RunRecord) -> bool:
        """Whether there can be a count: requests were sent, and no server is lost for good."""
        is_begun = record.spec.brings_servers and record.started_at is not None
        with self._ledger.read() as t:
            return is_begun and UNSEEN not in work_table.fetch_servers(t, record.run)


def _enter(
    transaction: Transaction, before: RunRecord, state: RunState, now: float, reason: str = ""
) -> RunRecord:
    """Put a run into a state that it may already have."""
    if before.state == state:
        return before
    return lifecycle.change_state(transaction, before.run, state, now, reason)


def build_run_id(now: float) -> str:
    """A short id that sorts by time: date and time in UTC, and four random characters."""
    alphabet = "abcdefghijkmnpqrstuvwxyz23456789"
    timestamp = datetime.fromtimestamp(now, UTC).strftime("%y%m%d-%H%M%S")
    return f"{timestamp}-{''.join(secrets.choice(alphabet) for _ in range(4))}"


def _describe_flag(validity: Validity) -> str:
    if validity.share is None:
        share = ""
    else:  # less than all is never 100 %
        share = f" ({min(validity.share, 0.999) if validity.share < 1 else 1:.1%} of the requests)"
    return f"{validity.flag}{share}: {validity.detail}"
