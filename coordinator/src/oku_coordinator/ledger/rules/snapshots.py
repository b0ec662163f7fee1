"""Reads of a whole run at one instant, over several tables."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from oku_coordinator.ledger.rules import conservation
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.storage.records import (
    BreachError,
    HookRecord,
    RetryRecord,
    RunRecord,
    ThresholdRecord,
)
from oku_coordinator.ledger.storage.run_account import RunAccount
from oku_coordinator.ledger.storage.schedule_records import Course, PeriodRecord
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import (
    history_table,
    hook_table,
    lease_table,
    run_table,
    schedule_table,
    slice_table,
    threshold_table,
)
from oku_coordinator.ledger.tables.accounts import account_table, inner_table, series_table, work_table
from oku_coordinator.ledger.tables.submission_table import fetch_retry
from oku_core.accounting.account import Account
from oku_core.accounting.interval import Lengths
from oku_core.accounting.outcome import ReasonCount, build_no_causes
from oku_core.accounting.run_state import RunState
from oku_core.results.series import SeriesRow
from oku_core.summary.summary import ProcessSummary, WorkerSummary
from oku_core.summary.validity import Flag


@dataclass(frozen=True, kw_only=True)
class Standing:
    """The progress of a run at one instant, without reading all of its rows.

    Attributes:
        record: its row and its spec.
        lengths: how much of it is in each state.
        leases: its open leases by id, each with the committed counts of its outcomes.
        period: the newest period of its schedule; None without one.
        not_sent: why requests were not sent, in the order of `NOT_SENT_CAUSES`.
        reasons: why requests failed, each with the name of its part.
    """

    record: RunRecord
    lengths: Lengths
    leases: Mapping[str, list[int]]
    period: PeriodRecord | None = None
    not_sent: Sequence[int] = field(default_factory=build_no_causes)
    reasons: Sequence[tuple[str, ReasonCount]] = ()


class StretchBasis(NamedTuple):
    """The data of an active run that thresholds over consecutive seconds are judged by.

    Attributes:
        series: its seconds, from some time on.
        periods: its periods of activity, the oldest first; none if it has no clock.
        leases: its open leases.
        pending: the number of its unleased requests.
    """

    series: Sequence[SeriesRow]
    periods: Sequence[PeriodRecord]
    leases: Sequence[LeaseRecord]
    pending: int

    @property
    def untaken(self) -> int:
        """The number of unsent requests as of the newest checkpoints."""
        return self.pending + sum(lease.end - lease.done for lease in self.leases)


@dataclass(frozen=True, kw_only=True)
class ThresholdBasis:
    """The data that the thresholds of a run are judged by.

    Attributes:
        record: its row and its spec.
        accounts: its account, by phase and name.
        flags: each with how many requests it concerns and its worst figure.
        thresholds: their records, by their places in the spec.
        course: its course by the clock; None while it is active, or if no threshold needs it.
    """

    record: RunRecord
    accounts: RunAccount
    flags: Sequence[tuple[Flag, int, float]]
    thresholds: Mapping[int, ThresholdRecord]
    course: Course | None = None


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A run with all of its data at one instant.

    Attributes:
        record: its row and its spec.
        lengths: how much of it is in each state.
        accounts: its account, by phase and name.
        workers: the work of each worker.
        processes: the peak memory of the other processes.
        flags: each with how many requests it concerns and its worst figure.
        breach: why the run does not balance; None when it does.
        course: its course by the clock; None without a rate.
        thresholds: the records of its thresholds, by their places in the spec.
        retry: the run that it retries; None if it is no retry.
        tracebacks: the tracebacks of exceptions of user code, by reason.
        hooks: the state of its hooks.
        closed_course: the course of a run without a rate at rest; None unless thresholds over consecutive
            seconds need it.
    """

    record: RunRecord
    lengths: Lengths
    accounts: RunAccount
    workers: list[WorkerSummary]
    processes: list[ProcessSummary]
    flags: list[tuple[Flag, int, float]]
    breach: str | None
    course: Course | None = None
    thresholds: Mapping[int, ThresholdRecord] = field(default_factory=dict)
    retry: RetryRecord | None = None
    tracebacks: Mapping[str, str] = field(default_factory=dict)
    hooks: Sequence[HookRecord] = ()
    closed_course: Course | None = None

    @cached_property
    def account(self) -> Account:
        """The account of all its requests."""
        return self.accounts.parts.fetch_whole()


class RunFrame(NamedTuple):
    """The content of a summary of a run at rest except its accounts: these are unchanged if it is."""

    record: RunRecord
    workers: list[WorkerSummary]
    processes: list[ProcessSummary]
    flags: list[tuple[Flag, int, float]]
    thresholds: Mapping[int, ThresholdRecord]
    hooks: Sequence[HookRecord]


def fetch_frame(transaction: Transaction, run: str) -> RunFrame:
    """The frame of a run."""
    return RunFrame(
        record=run_table.fetch_run(transaction, run),
        workers=work_table.fetch_workers(transaction, run),
        processes=work_table.fetch_processes(transaction, run),
        flags=work_table.fetch_flags(transaction, run),
        thresholds=threshold_table.fetch_thresholds(transaction, run),
        hooks=hook_table.fetch_hooks(transaction, run),
    )


def fetch_standing(transaction: Transaction, run: str) -> Standing:
    """The progress of a run, in constant time."""
    return Standing(
        record=run_table.fetch_run(transaction, run),
        lengths=slice_table.sum_lengths(transaction, run),
        leases={lease.id: lease.outcomes for lease in lease_table.fetch_open_leases(transaction, run)},
        period=schedule_table.fetch_period(transaction, run),
        not_sent=account_table.sum_not_sent(transaction, run),
        reasons=account_table.fetch_reasons(transaction, run),
    )


def fetch_snapshot(transaction: Transaction, run: str) -> Snapshot:
    """Read all data of a run at one instant, even while another process writes."""
    record = run_table.fetch_run(transaction, run)
    breach = record.reason if record.is_broken else None
    accounts = RunAccount()
    try:
        accounts = account_table.fetch_account(transaction, run)
        lengths = conservation.fetch_lengths(transaction, run, accounts)
        accounts = accounts.freeze()
    except BreachError as error:
        breach = breach or error.detail
        lengths = slice_table.sum_lengths(transaction, run)
    return Snapshot(
        record=record,
        lengths=lengths,
        accounts=accounts,
        workers=work_table.fetch_workers(transaction, run),
        processes=work_table.fetch_processes(transaction, run),
        flags=work_table.fetch_flags(transaction, run),
        breach=breach,
        retry=fetch_retry(transaction, run),
        course=_fetch_course(transaction, record) if record.spec.is_open and breach is None else None,
        closed_course=_fetch_closed_course(transaction, record) if _wants_course(record, breach) else None,
        thresholds=threshold_table.fetch_thresholds(transaction, run),
        hooks=hook_table.fetch_hooks(transaction, run) if record.spec.hooks else (),
        tracebacks=inner_table.fetch_tracebacks(transaction, run) if record.spec.runs_user_code else {},
    )


def _wants_course(record: RunRecord, breach: str | None) -> bool:
    """Whether thresholds over consecutive seconds of a run without a rate are judged by its series."""
    has_stretches = any(threshold.over_s is not None for threshold in record.spec.thresholds)
    return has_stretches and not record.spec.is_open and breach is None and record.is_at_rest


def _fetch_closed_course(transaction: Transaction, record: RunRecord) -> Course:
    """The course of a run without a rate at rest, up to its last unsent request."""
    run, periods = record.run, schedule_table.fetch_periods(transaction, record.run)
    if not record.spec.has_clock and record.state is RunState.COMPLETED and record.periods == 1:
        periods = [PeriodRecord(record.started_at or 0.0, 0.0)]
    is_cut = record.spec.is_timed and record.requests < record.spec.requests
    settled_to = math.inf if is_cut else history_table.fetch_busy_to(transaction, run)
    return Course(series_table.fetch_series(transaction, run), periods, settled_to)


def fetch_stretch_basis(transaction: Transaction, run: str, since: int) -> StretchBasis:
    """The data that thresholds over consecutive seconds are judged by, from a second on."""
    return StretchBasis(
        series=series_table.fetch_series(transaction, run, since),
        periods=schedule_table.fetch_periods(transaction, run),
        leases=lease_table.fetch_open_leases(transaction, run),
        pending=slice_table.sum_lengths(transaction, run).pending,
    )


def fetch_threshold_basis(transaction: Transaction, run: str) -> ThresholdBasis:
    """The data that the thresholds of a run are judged by; use it within the transaction."""
    return ThresholdBasis(
        record=run_table.fetch_run(transaction, run),
        accounts=account_table.fetch_account(transaction, run),
        flags=work_table.fetch_flags(transaction, run),
        thresholds=threshold_table.fetch_thresholds(transaction, run),
    )


def _fetch_course(transaction: Transaction, record: RunRecord) -> Course:
    run, is_at_rest = record.run, record.is_at_rest
    return Course(
        series=series_table.fetch_series(transaction, run),
        periods=schedule_table.fetch_periods(transaction, run),
        settled_to=math.inf if is_at_rest else history_table.fetch_settled_to(transaction, run),
    )
