"""Leases that a test wants to have in a ledger, and what their workers say of them."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from tests.kit.checkpoints import change_checkpoint
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.leases import expiring
from oku_coordinator.ledger.rules.leases.expiring import FindLost, FindReached, find_no_record, find_nothing
from oku_coordinator.ledger.rules.leases.intake import fold_batches
from oku_coordinator.ledger.storage.lease_records import LeaseOrder, LeaseRecord
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables.lease_table import deal_leases
from oku_core.accounting.histogram import HistogramSnapshot, bucket_index
from oku_core.accounting.lease_state import ExpiryReason, MessageVerdict
from oku_core.accounting.measured_time import Time
from oku_core.messaging.checkpoint import Checkpoint, CheckpointBatch, LeaseFigures, Part

BeginRun = Callable[..., RunRecord]
Deal = Callable[..., LeaseRecord]
MakeBatch = Callable[..., CheckpointBatch]
Apply = Callable[..., list[MessageVerdict]]


def deal_lease(
    ledger: Ledger, run: str, size: int, now: float, *, worker: str = "w1", limit: int | None = None
) -> LeaseRecord:
    """Lease the first `size` pending indices of a run, or fewer.

    The lease is for the process `b1` of worker `w1`, or `b2` of `w2` and so on; its worker may take all of it
    unless there is a limit.
    """
    lease = deal_if_pending(ledger, run, size, now, worker=worker, limit=limit)
    assert lease is not None
    return lease


def deal_if_pending(
    ledger: Ledger, run: str, size: int, now: float, *, worker: str = "w1", limit: int | None = None
) -> LeaseRecord | None:
    """The same; None when there is nothing to lease."""
    order = LeaseOrder(worker, build_incarnation(worker), size, size if limit is None else limit)
    with ledger.change(now) as transaction:
        return next(iter(deal_leases(transaction, run, [order], now)), None)


def build_incarnation(worker: str) -> str:
    """The id of the process of a worker: `b1` for `w1`."""
    return f"b{worker.removeprefix('w')}"


def build_checkpoint(
    lease: LeaseRecord, /, done: int | None = None, in_flight: Sequence[int] = (), **changes: Any
) -> Checkpoint:
    """The checkpoint of a lease whose requests were ok, in a millisecond and in second 3, changed as wanted.

    It is final, of all of the lease, unless it is said otherwise.
    """
    done = lease.end if done is None else done
    checkpoint = Checkpoint(
        lease=lease.id,
        sequence=lease.sequence + 1,
        done=done,
        end=lease.end,
        in_flight=list(in_flight),
        is_final=True,
        parts=[build_part(done - len(in_flight))],
        figures=LeaseFigures(
            started_at=3.0 if done else 0.0, ended_at=4.0 if done else 0.0, cpu_s=0.5, peak_rss_mb=80.0
        ),
    )
    return change_checkpoint(checkpoint, **changes)


def build_part(covered: int, second: int = 3, latency_us: int = 1000) -> Part:
    """What came of so many requests that were ok."""
    latency = HistogramSnapshot(
        buckets=[bucket_index(latency_us), covered], sum_us=covered * latency_us,
        min_us=latency_us, max_us=latency_us,
    )  # fmt: skip
    return Part(
        outcomes=make_counts(covered),
        statuses={"200": covered} if covered else {},
        bytes_received=13 * covered,
        times={Time.LATENCY: latency if covered else HistogramSnapshot()},
        per_second={second: make_counts(covered)} if covered else {},
    )


def build_batch(lease: LeaseRecord, /, *checkpoints: Checkpoint, **changes: Any) -> CheckpointBatch:
    """The message of the worker that has a lease, changed as wanted."""
    batch = CheckpointBatch(
        worker=lease.worker, incarnation=lease.incarnation, run=lease.run, checkpoints=list(checkpoints)
    )
    return msgspec.structs.replace(batch, **changes)


def apply_batches(
    ledger: Ledger, batches: Sequence[CheckpointBatch], now: float, allowance: int = 0
) -> list[MessageVerdict]:
    """Take in what workers say; gives the verdicts on all of it."""
    with ledger.change(now) as transaction:
        receipts = fold_batches(transaction, batches, lambda _batch, _spec: allowance, now)
    return [verdict for receipt in receipts for verdict in receipt.verdicts]


def expire(
    ledger: Ledger,
    names: Sequence[str],
    reason: ExpiryReason,
    now: float,
    find_lost: FindLost = find_nothing,
    find_reached: FindReached = find_no_record,
) -> list[str]:
    """Expire open leases in a transaction; gives those that were open."""
    with ledger.change(now) as transaction:
        return expiring.expire_leases(transaction, names, reason, now, find_lost, find_reached)


def shorten_to_limits(ledger: Ledger, names: Sequence[str], now: float) -> list[LeaseRecord]:
    """Shorten open leases to their limits in a transaction; gives those that became shorter."""
    with ledger.change(now) as transaction:
        return expiring.shorten_to_limits(transaction, names)
