"""Reads of a whole run at one instant, as far as it is kept in several tables."""

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
    """How far a run is at one instant, without reading all of its rows.

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
    """What thresholds over some seconds in a row are judged by while a run goes on.

    Attributes:
        series: its seconds, from some time on.
        periods: its periods of activity, the oldest first; none if it has no clock.
        leases: its open leases.
        pending: how many requests are in no lease, and were not sent.
    """

    series: Sequence[SeriesRow]
    periods: Sequence[PeriodRecord]
    leases: Sequence[LeaseRecord]
    pending: int

    @property
    def untaken(self) -> int:
        """How many requests were left to be sent when the newest checkpoints were made."""
        return self.pending + sum(lease.end - lease.done for lease in self.leases)


@dataclass(frozen=True, kw_only=True)
class ThresholdBasis:
    """What the thresholds of a run are judged by.

    Attributes:
        record: its row and its spec.
        accounts: what its requests sum to, by phase and name.
        flags: each with how many requests it concerns and its worst figure.
        thresholds: what is kept of them, by their places in the spec.
        course: how the run went by the clock; None while it goes on, or if no threshold asks for it.
    """

    record: RunRecord
    accounts: RunAccount
    flags: Sequence[tuple[Flag, int, float]]
    thresholds: Mapping[int, ThresholdRecord]
    course: Course | None = None


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A run with everything that is kept for it, at one instant.

    Attributes:
        record: its row and its spec.
        lengths: how much of it is in each state.
        accounts: what its requests sum to, by phase and name.
        workers: what each worker did.
        processes: the peak memory of the other processes.
        flags: each with how many requests it concerns and its worst figure.
        breach: why the run does not balance; None when it does.
        course: how it went by the clock; None without a rate.
        thresholds: what is kept of its thresholds, by their places in the spec.
        retry: what it sends again; None if it is no retry.
        tracebacks: where exceptions of user code came from, by their reasons.
        hooks: what became of those of its scenario.
        closed_course: how a run without a rate that is at rest went by the clock; None unless thresholds over
            some seconds are judged by it.
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
        """What all its requests sum to."""
        return self.accounts.parts.fetch_whole()


class RunFrame(NamedTuple):
    """All that a summary tells of a run at rest, but its accounts: these are as they were if it is."""

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
    """How far a run is; takes the same time however long the run is."""
    return Standing(
        record=run_table.fetch_run(transaction, run),
        lengths=slice_table.sum_lengths(transaction, run),
        leases={lease.id: lease.outcomes for lease in lease_table.fetch_open_leases(transaction, run)},
        period=schedule_table.fetch_period(transaction, run),
        not_sent=account_table.sum_not_sent(transaction, run),
        reasons=account_table.fetch_reasons(transaction, run),
    )


def fetch_snapshot(transaction: Transaction, run: str) -> Snapshot:
    """A run with everything that is kept for it at one instant, also while another process writes."""
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
    """Whether thresholds over some seconds of a run without a rate are judged by its series."""
    has_stretches = any(threshold.over_s is not None for threshold in record.spec.thresholds)
    return has_stretches and not record.spec.is_open and breach is None and record.is_at_rest


def _fetch_closed_course(transaction: Transaction, record: RunRecord) -> Course:
    """How a run without a rate that is at rest went, as far as requests were left to be sent."""
    run, periods = record.run, schedule_table.fetch_periods(transaction, record.run)
    if not record.spec.has_clock and record.state is RunState.COMPLETED and record.periods == 1:
        periods = [PeriodRecord(record.started_at or 0.0, 0.0)]
    is_cut = record.spec.is_timed and record.requests < record.spec.requests
    settled_to = math.inf if is_cut else history_table.fetch_busy_to(transaction, run)
    return Course(series_table.fetch_series(transaction, run), periods, settled_to)


def fetch_stretch_basis(transaction: Transaction, run: str, since: int) -> StretchBasis:
    """The data by which thresholds over some seconds in a row are judged, with the seconds from one on."""
    return StretchBasis(
        series=series_table.fetch_series(transaction, run, since),
        periods=schedule_table.fetch_periods(transaction, run),
        leases=lease_table.fetch_open_leases(transaction, run),
        pending=slice_table.sum_lengths(transaction, run).pending,
    )


def fetch_threshold_basis(transaction: Transaction, run: str) -> ThresholdBasis:
    """The data by which the thresholds of a run are judged, to be read before the transaction ends."""
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
