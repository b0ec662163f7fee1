"""When a period of activity ends: what a run did is divided by the time in which it could send.

A run that lasts for a time was active for just that time, however late its last answers come and its
coordinator hears of them. One that ends with its last request was active until that had ended, and one with a
rate that sends late goes on for as long as it sends.
"""

from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.storage.schedule_records import PeriodRecord
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import period_table, run_table, series_table

_TOLD_WITHIN_S = 1.0
"""The last request of a run that is stopped is told of so soon; an older one was followed by a silence."""


def stop_clock(transaction: Transaction, record: RunRecord, at: float) -> None:
    """Let the clock of a run stop at a Unix time, or when its time is over; one that is stopped stays so."""
    period = period_table.fetch_period(transaction, record.run)
    if period is not None:
        period_table.stop_period(transaction, record.run, _bound(record, period, at))


def close_period(transaction: Transaction, record: RunRecord, now: float, *, is_complete: bool) -> None:
    """Close the open period of activity, if there is one, and stop its clock.

    Args:
        transaction: to write in.
        record: the run, with what it was before it was stopped.
        now: Unix time.
        is_complete: whether all requests of the run are accounted.
    """
    ended_at, period = now, period_table.fetch_period(transaction, record.run)
    if period is not None:
        stopped_at = period.find_end()
        ended_at = _bound(record, period, now if stopped_at is None else min(now, stopped_at))
    last_at = record.last_ended_at
    if record.active_since is not None and last_at is not None and last_at > record.active_since:
        is_last = is_complete and _ends_with_request(record)
        if is_last or (period is None and now - last_at < _TOLD_WITHIN_S):
            ended_at = min(ended_at, last_at)
        if is_complete and record.spec.is_open and ended_at < now:
            late_until = series_table.find_sent_until(transaction, record.run)
            ended_at = max(ended_at, min(now, last_at, late_until))
    period_table.stop_period(transaction, record.run, ended_at)
    run_table.close_period(transaction, record.run, ended_at)


def _ends_with_request(record: RunRecord) -> bool:
    """Whether a run that is complete has come to its last request before its time was over."""
    if record.spec.is_open:
        return False  # its schedule says how long it lasts
    return record.spec.length_s is None or record.requests == record.spec.requests


def _bound(record: RunRecord, period: PeriodRecord, at: float) -> float:
    """A time, or the end of the time of a run if that comes first."""
    length_s = record.spec.length_s
    return at if length_s is None else min(at, period.build_period().unix_time(float(length_s)))
