"""The intake of checkpoints into the ledger.

A checkpoint is the whole state of its lease. Its growth over its predecessor is folded into the account of
the run, and it replaces its predecessor, all in one transaction. Then the limits of its worker rise: they are
committed before the worker receives them.
"""

import logging
from collections.abc import Callable, Iterable, Sequence

import msgspec

from oku_coordinator.ledger.rules.failed_requests import build_index_finder
from oku_coordinator.ledger.rules.hooks import record_report
from oku_coordinator.ledger.rules.leases import closing
from oku_coordinator.ledger.rules.leases.growth import (
    PartGrowth,
    UntrueError,
    find_regress,
    grow_inner,
    grow_parts,
    list_ended,
    list_sent,
)
from oku_coordinator.ledger.rules.lifecycle import enter_next_state
from oku_coordinator.ledger.rules.phase_plan import build_phase_plan
from oku_coordinator.ledger.storage.lease_records import LeaseRecord, Receipt, pack_positions
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import lease_table
from oku_coordinator.ledger.tables.accounts import inner_table, series_table
from oku_coordinator.ledger.tables.accounts.account_table import open_account, open_inner
from oku_coordinator.ledger.tables.accounts.work_table import add_flag, add_work
from oku_coordinator.ledger.tables.run_table import (
    add_watched,
    fetch_spec,
    fetch_state,
    open_period,
    record_last_end,
)
from oku_core.accounting.lease_state import LeaseState, MessageVerdict
from oku_core.accounting.outcome import sum_counts
from oku_core.accounting.run_state import FINAL_STATES, REST_STATES, RunState
from oku_core.messaging.checkpoint import Checkpoint, CheckpointBatch, Part
from oku_core.messaging.checkpoint_faults import find_fault
from oku_core.messaging.hook import HookReport
from oku_core.results.series import place
from oku_core.spec.spec import Spec
from oku_core.summary.validity import flag_growth

Allow = Callable[[CheckpointBatch, Spec], int]
"""How many positions the sender of a batch may take beyond those that it reports as taken."""
_log = logging.getLogger(__name__)
_CONFIRMING = frozenset({MessageVerdict.ACCOUNTED, MessageVerdict.CLOSED, MessageVerdict.REPEATED})


def fold_batches(
    transaction: Transaction, batches: Sequence[CheckpointBatch], allow: Allow, now: float
) -> list[Receipt]:
    """Record batches of checkpoints in the ledger; returns a receipt for each."""
    intake = _Intake(transaction, allow, now)
    receipts = [intake.fold_batch(batch) for batch in batches]
    intake.finish()
    return receipts


class _Intake:
    """The intake of one transaction; data of runs is read once."""

    def __init__(self, transaction: Transaction, allow: Allow, now: float) -> None:
        self._transaction = transaction
        self._allow = allow
        self._now = now
        self._states: dict[str, RunState | None] = {}
        self._watched: dict[str, tuple[float, float]] = {}
        self._ended_at: dict[str, float] = {}
        self._closed: set[str] = set()

    def fold_batch(self, batch: CheckpointBatch) -> Receipt:
        """Record a batch."""
        receipt = Receipt(batch=batch)
        for checkpoint in batch.checkpoints:
            verdict = self._record_checkpoint(batch, checkpoint, receipt)
            receipt.verdicts.append(verdict)
        for report in batch.hooks:
            self._record_report(batch, report)
        if _CONFIRMING & set(receipt.verdicts):
            self._raise_limits(batch, receipt)
        return receipt

    def finish(self) -> None:
        """Write the collected changes, and let runs enter their next state."""
        for run, (watched_s, underfilled_s) in self._watched.items():
            add_watched(self._transaction, run, watched_s, underfilled_s, self._now)
        for run, ended_at in self._ended_at.items():
            record_last_end(self._transaction, run, ended_at)
        for run in self._closed:
            enter_next_state(self._transaction, run, self._now)

    def _record_report(self, batch: CheckpointBatch, report: HookReport) -> None:
        names = f"{report.attempt.run} {batch.worker} {batch.incarnation} {report.error} {report.traceback}"
        if _is_writable(names):
            record_report(self._transaction, batch.worker, batch.incarnation, report, self._now)

    def _record_checkpoint(
        self, batch: CheckpointBatch, checkpoint: Checkpoint, receipt: Receipt
    ) -> MessageVerdict:
        if not _is_writable(f"{checkpoint.lease} {batch.worker} {batch.incarnation}"):
            return MessageVerdict.UNKNOWN  # and no message can contain its name
        lease = lease_table.find_lease(self._transaction, checkpoint.lease)
        verdict = self._judge(batch, checkpoint, lease)
        if lease is not None and verdict == MessageVerdict.ACCOUNTED:
            try:
                verdict = self._account_for(batch, checkpoint, lease)
            except UntrueError as error:
                _log.warning(
                    "worker %s sent a checkpoint of lease %s that cannot be true: %s", batch.worker, lease.id,
                    error, extra={"run": lease.run, "lease": lease.id, "worker": batch.worker},
                )  # fmt: skip
                verdict = MessageVerdict.UNTRUE
        elif verdict == MessageVerdict.LATE and checkpoint.is_final:
            self._apply_to_void_lease(checkpoint)
        self._answer(checkpoint, verdict, receipt)
        return verdict

    def _judge(
        self, batch: CheckpointBatch, checkpoint: Checkpoint, lease: LeaseRecord | None
    ) -> MessageVerdict:
        """The verdict on a checkpoint, as far as it does not depend on its contents."""
        if lease is None:
            return MessageVerdict.UNKNOWN
        if (lease.worker, lease.incarnation) != (batch.worker, batch.incarnation):
            return MessageVerdict.FOREIGN
        # When a run fails with open leases, its account stays as it was found.
        if lease.state == LeaseState.EXPIRED or self._has_failed(lease):
            return MessageVerdict.LATE
        if lease.state == LeaseState.CLOSED or checkpoint.sequence <= lease.sequence:
            return MessageVerdict.REPEATED
        return MessageVerdict.ACCOUNTED

    def _apply_to_void_lease(self, checkpoint: Checkpoint) -> None:
        """Lower the bound of a void lease: its worker was declared dead, lives, and reports how far it got.

        Nothing is accounted, but the worker takes no more: fewer requests may have been sent in vain.
        """
        lease = lease_table.find_lease(self._transaction, checkpoint.lease)
        if lease is None or lease.state != LeaseState.EXPIRED:
            return
        if self._fetch_state(lease.run) in REST_STATES:
            return
        if checkpoint.done >= lease.done and find_fault(checkpoint, lease.length) is None:
            closing.lower_resent(self._transaction, lease, checkpoint.done, checkpoint.list_unsent())

    def _has_failed(self, lease: LeaseRecord) -> bool:
        return lease.state == LeaseState.ACTIVE and self._fetch_state(lease.run) in FINAL_STATES

    def _fetch_state(self, run: str) -> RunState | None:
        if run not in self._states:
            self._states[run] = fetch_state(self._transaction, run)
        return self._states[run]

    def _account_for(
        self, batch: CheckpointBatch, checkpoint: Checkpoint, lease: LeaseRecord
    ) -> MessageVerdict:
        if fault := find_fault(checkpoint, lease.length) or find_regress(lease, checkpoint):
            raise UntrueError(fault)
        plan = build_phase_plan(fetch_spec(self._transaction, lease.run))
        for fault in (
            *(plan.find_fault(lease, part) for part in checkpoint.parts),
            *(plan.find_inner_fault(part) for part in checkpoint.inner),
        ):
            if fault:
                raise UntrueError(fault)
        stored = lease_table.fetch_parts(self._transaction, lease) if lease.sequence else {}
        growths = grow_parts(stored, checkpoint)
        inner = self._grow_inner(lease, checkpoint) if checkpoint.inner else []
        if checkpoint.done and not lease.done:
            begun_at = min(self._now, max(lease.cut_at, checkpoint.figures.started_at))
            open_period(self._transaction, lease.run, begun_at)
        if checkpoint.covered > lease.covered:
            ended_at = max(self._find_ended_at(lease, checkpoint), self._ended_at.get(lease.run, 0.0))
            self._ended_at[lease.run] = ended_at
        grown = _grow_lease(lease, checkpoint, growths)
        lease_table.write_parts(self._transaction, lease, [growth.part for growth in growths])
        self._fold(batch.worker, lease, grown, growths)
        self._fold_inner(lease, inner)
        if checkpoint.tracebacks:
            inner_table.add_tracebacks(self._transaction, lease.run, checkpoint.tracebacks)
        if checkpoint.is_final:
            closing.close(self._transaction, grown, self._now)
            self._closed.add(lease.run)
            return MessageVerdict.CLOSED
        if checkpoint.end < lease.end:
            closing.shorten_lease(self._transaction, grown, checkpoint.end)
        else:
            lease_table.write_growth(self._transaction, grown)
        return MessageVerdict.ACCOUNTED

    def _find_ended_at(self, lease: LeaseRecord, checkpoint: Checkpoint) -> float:
        """When the last request of a lease ended; a slow clock is corrected by the start of the request."""
        behind_s = max(0.0, lease.cut_at - checkpoint.figures.started_at)
        return min(self._now, checkpoint.figures.ended_at + behind_s)

    def _fold(
        self, worker: str, lease: LeaseRecord, grown: LeaseRecord, growths: Sequence[PartGrowth]
    ) -> None:
        """Fold the growth of a lease into the account of its run and the other tables."""
        for growth in growths:
            gained = growth.gained
            if gained.reasons:
                gained = self._place_reasons(lease, gained)
            open_account(self._transaction, lease.run, (gained.phase, gained.name)).add(gained)
            # Requests with due times are sent by the coordinator's clock, but they end by the worker's.
            for seconds, started_at in (
                (list_ended(gained), grown.figures.started_at),
                (list_sent(gained), 0.0),
            ):
                placed = place(seconds, started_at=started_at, cut_at=lease.cut_at, now=self._now)
                series_table.add_seconds(self._transaction, lease.run, placed)
        before, after = lease.figures, grown.figures
        add_work(
            self._transaction, lease.run, worker,
            requests=grown.covered - lease.covered,
            cpu_s=max(0.0, after.cpu_s - before.cpu_s),
            peak_rss_mb=after.peak_rss_mb,
        )  # fmt: skip
        flags = flag_growth(before, after, covered_before=lease.covered, covered=grown.covered)
        for flag in flags:
            add_flag(self._transaction, lease.run, *flag)
        watched_s, underfilled_s = self._watched.get(lease.run, (0.0, 0.0))
        self._watched[lease.run] = (
            watched_s + max(0.0, after.watched_s - before.watched_s),
            underfilled_s + max(0.0, after.underfilled_s - before.underfilled_s),
        )

    def _grow_inner(self, lease: LeaseRecord, checkpoint: Checkpoint) -> list[PartGrowth]:
        stored = inner_table.fetch_inner_parts(self._transaction, lease) if lease.sequence else {}
        return grow_inner(stored, checkpoint)

    def _fold_inner(self, lease: LeaseRecord, growths: Sequence[PartGrowth]) -> None:
        """Fold the growth of the inner requests of a lease into the inner account of its run."""
        inner_table.write_inner_parts(self._transaction, lease, [growth.part for growth in growths])
        for growth in growths:
            gained = self._place_reasons(lease, growth.gained) if growth.gained.reasons else growth.gained
            account = open_inner(self._transaction, lease.run, (gained.phase, gained.name))
            inner_table.fold_inner(account, gained)

    def _place_reasons(self, lease: LeaseRecord, gained: Part) -> Part:
        """The growth of a part, with indices in place of positions in its reasons."""
        find = build_index_finder(self._transaction, lease)
        reasons = []
        for count in gained.reasons:
            ends = find(count.first), find(count.last)
            reasons.append(msgspec.structs.replace(count, first=min(ends), last=max(ends)))
        return msgspec.structs.replace(gained, reasons=reasons)

    def _answer(self, checkpoint: Checkpoint, verdict: MessageVerdict, receipt: Receipt) -> None:
        """Add the answer to a checkpoint to the receipt.

        A final checkpoint is confirmed even if it does not count: the worker has nothing to add to it. An
        open lease that does not count is ended. Otherwise workers would repeat them forever.
        """
        name = checkpoint.lease
        if verdict in _CONFIRMING or checkpoint.is_final:
            receipt.confirmed[name] = max(checkpoint.sequence, receipt.confirmed.get(name, 0))
        else:
            receipt.ends[name] = 0
        if verdict in _CONFIRMING and not checkpoint.is_final:
            lease = lease_table.find_lease(self._transaction, name)
            if lease is not None and checkpoint.end > lease.end:
                receipt.ends[name] = lease.end

    def _raise_limits(self, batch: CheckpointBatch, receipt: Receipt) -> None:
        """Raise the limits of a worker, and add all limits that it may not have received."""
        if not _is_writable(batch.run) or self._fetch_state(batch.run) != RunState.RUNNING:
            return
        held = lease_table.fetch_held(self._transaction, batch.run, [batch.incarnation])
        leases = held[batch.incarnation]
        allowance = self._allow(batch, fetch_spec(self._transaction, batch.run))
        raised = raise_limits(leases, allowance)
        for lease in leases:
            limit = raised.get(lease.id, lease.limit)
            if limit > lease.limit:
                lease_table.write_growth(self._transaction, msgspec.structs.replace(lease, limit=limit))
            if limit > lease.done:
                receipt.limits[lease.id] = limit
            if lease.end < lease.reported_end:
                receipt.ends[lease.id] = lease.end


def _grow_lease(lease: LeaseRecord, checkpoint: Checkpoint, growths: Sequence[PartGrowth]) -> LeaseRecord:
    """The lease as its newest checkpoint describes it, with its previous end."""
    return msgspec.structs.replace(
        lease,
        done=checkpoint.done,
        in_flight=pack_positions(checkpoint.in_flight),
        untouched=pack_positions(checkpoint.untouched),
        reported_end=checkpoint.end,
        sequence=checkpoint.sequence,
        outcomes=sum_counts([lease.outcomes, *(growth.gained.outcomes for growth in growths)]),
        figures=checkpoint.figures,
    )


def _is_writable(names: str) -> bool:
    """Whether the ledger can store names: JSON can carry text that UTF-8 cannot encode."""
    try:
        names.encode()
    except UnicodeEncodeError:
        return False
    return True


def raise_limits(leases: Iterable[LeaseRecord], allowance: int) -> dict[str, int]:
    """The raised limits, by lease, so that a worker may take `allowance` more positions.

    Limits never fall, so earlier ones may allow more; that counts as spent, too.

    Args:
        leases: the open leases of one process of a worker, in the order in which it begins them.
        allowance: how many positions it may take.
    """
    raised: dict[str, int] = {}
    for lease in leases:
        limit = min(lease.end, max(lease.limit, lease.done + max(0, allowance)))
        allowance -= limit - lease.done
        if limit > lease.limit:
            raised[lease.id] = limit
    return raised
