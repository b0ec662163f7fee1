"""A run as the API answers it: the same members in a list and from calls that change it."""

from typing import Any

from oku_coordinator.ledger.storage.records import RunRecord, RunRow
from oku_coordinator.runs.summaries import format_time
from oku_core.spec.parser import build_mapping


def build_row_object(row: RunRow) -> dict[str, Any]:
    """A run as the API lists it, without its spec, which may be large."""
    return {
        "run": row.run,
        "name": row.name,
        "state": row.state,
        "reason": row.reason,
        "requests": row.requests,
        "accounted": row.accounted,
        "ok": row.outcomes[0],
        "engine": row.engine,
        "target": row.target,
        "load": row.load,
        "created_at": format_time(row.created_at),
        "started_at": format_time(row.started_at),
        "ended_at": format_time(row.ended_at),
        "active_s": round(row.active_s, 3),
    }


def build_run_object(record: RunRecord) -> dict[str, Any]:
    """A run as calls that change it answer: as it is listed, and its spec."""
    return build_row_object(record) | {"spec": build_mapping(record.spec)}
