"""Makes the summary of a run from what the ledger keeps of it."""

from collections.abc import Sequence
from datetime import UTC, datetime

from oku_coordinator.ledger.storage.records import Snapshot
from oku_core.accounting import hdr
from oku_core.accounting.outcome import build_outcome_counts
from oku_core.results.summary import (
    OutcomeCounts,
    ServersSummary,
    Summary,
    build_latency_summary,
    find_imbalance,
)
from oku_core.results.validity import WindowFill, build_validity, flag_unknown_served


def build_summary(snapshot: Snapshot, now: float, notices: Sequence[str] = ()) -> Summary:
    """The summary of a run at `now`, in Unix time, with notices on what it waits for."""
    record, account = snapshot.record, snapshot.account
    active_s = record.measure_active_s(now)
    imbalance = snapshot.breach or find_imbalance(
        state=record.state,
        requests=record.requests,
        accounted=snapshot.lengths.accounted,
        outcomes=account.outcomes,
        resent_at_most=record.resent_at_most + snapshot.lengths.leased,
        # While requests are under way, the two counts are not of the same instant.
        served=record.served if record.is_at_rest else None,
    )
    validity = build_validity(
        snapshot.flags,
        outcomes=account.outcomes,
        resent_at_most=record.resent_at_most,
        windows=record.windows,
        imbalance=imbalance,
        fill=WindowFill(record.watched_s, record.underfilled_s, len(snapshot.workers)),
    )
    if record.is_at_rest and record.spec.brings_servers and account.accounted and record.served is None:
        validity.append(flag_unknown_served(account.accounted))
    return Summary(
        run=record.run,
        name=record.name,
        state=record.state,
        reason=record.reason,
        notices=list(notices),
        engine=record.spec.engine,
        requests=record.requests,
        accounted=snapshot.lengths.accounted,
        resent_at_most=record.resent_at_most,
        outcomes=OutcomeCounts(**build_outcome_counts(account.outcomes)),
        statuses=dict(sorted(account.statuses.items())),
        bytes_received=account.bytes_received,
        started_at=format_time(record.started_at),
        ended_at=format_time(record.ended_at),
        active_s=round(active_s, 3),
        watched_s=round(record.watched_s, 3),
        underfilled_s=round(record.underfilled_s, 3),
        throughput_rps=round(account.accounted / active_s, 1) if active_s else 0.0,
        latency_ms=build_latency_summary(account.histogram),
        histogram=hdr.encode_base64(account.histogram),
        workers=snapshot.workers,
        processes=snapshot.processes,
        servers=ServersSummary(served=record.served) if record.served is not None else None,
        validity=validity,
    )


def format_time(unix_s: float | None) -> str | None:
    """Unix time as ISO 8601 in UTC, to the millisecond."""
    if unix_s is None:
        return None
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
