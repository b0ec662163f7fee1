"""What a summary says of the hooks of a run."""

from collections.abc import Iterable

from oku_coordinator.ledger.storage.records import HookRecord
from oku_core.results.hook_summary import HookState, HookSummary

_TIMED = frozenset({HookState.DONE, HookState.FAILED})


def build_hooks(records: Iterable[HookRecord]) -> list[HookSummary]:
    """The hooks of a run that were begun, or are to be called."""
    return [
        HookSummary(
            hook=record.hook,
            state=record.state,
            calls=record.tries,
            worker=record.worker,
            took_s=_measure_s(record),
            error=record.error,
            traceback=record.traceback,
        )
        for record in records
    ]


def _measure_s(record: HookRecord) -> float | None:
    if record.state not in _TIMED or record.ended_at is None:
        return None
    return round(max(0.0, record.ended_at - record.since), 3)
