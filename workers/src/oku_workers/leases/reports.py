"""What a worker says of a lease: that it begins with it, what came of it, or that it gives it back."""

from typing import NamedTuple

from oku_core.accounting.outcome import OUTCOMES
from oku_core.messaging.codec import LeaseHead
from oku_core.messaging.lease import Claim, Lease, Report
from oku_core.process.memory import measure_peak_rss_mb
from oku_workers.executions.execution import Execution


class WorkerIdentity(NamedTuple):
    """Who speaks: the name of a worker, which outlives its process, and the incarnation, which does not."""

    name: str
    incarnation: str


def build_claim(worker: WorkerIdentity, lease: Lease, execution_id: str, now: float) -> Claim:
    """The claim of a lease; `now` is Unix time."""
    return Claim(
        lease=lease.id, execution=execution_id, worker=worker.name, incarnation=worker.incarnation, at=now
    )


def build_report(worker: WorkerIdentity, execution: Execution, execution_id: str) -> Report:
    """The report of an execution that is finished."""
    lease = execution.lease
    return Report(
        lease=lease.id,
        execution=execution_id,
        worker=worker.name,
        incarnation=worker.incarnation,
        start=lease.start,
        done=execution.next_index,
        unfinished=execution.unfinished,
        outcomes=execution.outcomes,
        statuses={str(status): count for status, count in execution.statuses.items()},
        bytes_received=execution.bytes_received,
        latency=execution.build_latency(),
        started_at=execution.started_at,
        ended_at=execution.ended_at,
        cpu_s=execution.cpu_s,
        peak_rss_mb=measure_peak_rss_mb(),
        max_lag_s=execution.max_lag_s,
        busy_share=execution.max_busy_share,
        saturated=execution.saturated,
        lagged=execution.lagged,
        clock_step_s=execution.clock_step_s,
    )


def build_empty_report(
    worker: WorkerIdentity, lease: Lease | LeaseHead, execution_id: str, now: float, refusal: str = ""
) -> Report:
    """The report of a lease that was not begun: all of it is given back.

    With a refusal, this worker gets no more of the run. `now` is Unix time.
    """
    return Report(
        lease=lease.id,
        execution=execution_id,
        worker=worker.name,
        incarnation=worker.incarnation,
        start=lease.start,
        done=lease.start,
        outcomes=[0] * len(OUTCOMES),
        started_at=now,
        ended_at=now,
        refusal=refusal,
    )
