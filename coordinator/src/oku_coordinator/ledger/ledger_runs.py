"""The runs of a ledger: their records and states, their turns, and what is kept beside their accounts."""

import functools
import logging
import math
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from oku_coordinator.ledger.rules import conservation, lifecycle, reclaim, run_end
from oku_coordinator.ledger.rules.retry import create_retry
from oku_coordinator.ledger.storage.records import (
    BreachError,
    RunRecord,
    RunRow,
    Snapshot,
    Standing,
    StretchBasis,
    ThresholdBasis,
    ThresholdRecord,
)
from oku_coordinator.ledger.storage.run_account import RunAccount
from oku_coordinator.ledger.storage.schedule_records import Course, PeriodRecord
from oku_coordinator.ledger.storage.transaction import LedgerFile, Transaction
from oku_coordinator.ledger.tables import (
    account_table,
    history_table,
    hook_table,
    inner_table,
    key_table,
    lease_table,
    period_table,
    run_table,
    series_table,
    server_table,
    slice_table,
    threshold_table,
    work_table,
)
from oku_coordinator.ledger.tables.retry_table import fetch_retry
from oku_core.accounting.interval import Slice, SliceState
from oku_core.accounting.run_state import RunState
from oku_core.results.event import Event, EventType
from oku_core.results.summary import ProcessSummary
from oku_core.spec.spec import Spec
from oku_core.spec.spec_digest import digest_spec

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class LedgerRuns:
    """What can be done with the runs of a ledger.

    Args:
        file: the transactions of the ledger.
        publishes: whether lines of the runs that are created or resumed here are kept for Loki.
    """

    def __init__(self, file: LedgerFile, *, publishes: bool) -> None:
        self._file = file
        self._publishes = publishes

    def create(self, run: str, spec: Spec, now: float, key: str | None = None) -> RunRecord:
        """Enter a new run; its whole request space is pending.

        Args:
            run: its id.
            spec: its spec.
            now: Unix time.
            key: with which it is submitted, if it is; no run of the ledger has had it.
        """

        def create(transaction: Transaction) -> RunRecord:
            run_table.insert_run(transaction, run, spec, now, is_published=self._publishes)
            slice_table.insert_slices(transaction, run, [Slice(0, spec.requests, SliceState.PENDING)])
            lifecycle.note_submission(transaction, run, now)
            if key is not None:
                key_table.insert_key(transaction, key, digest_spec(spec), run)
            return run_table.fetch_run(transaction, run)

        return conservation.change(self._file, create, now)

    def create_retry(self, run: str, retried: str, now: float) -> RunRecord:
        """Enter a new run over the failed requests of a run at rest.

        Raises:
            UnknownRunError: there is no run with the id `retried`.
            UserError: it is not at rest, or none of its failed requests is known.
        """

        def create(transaction: Transaction) -> RunRecord:
            create_retry(transaction, run, retried, now, is_published=self._publishes)
            return run_table.fetch_run(transaction, run)

        return conservation.change(self._file, create, now)

    def fetch(self, run: str) -> RunRecord:
        """One run; `UnknownRunError` when there is none with that id."""
        return self._file.read(lambda transaction: run_table.fetch_run(transaction, run))

    def fetch_page(self, most: int = -1, after: str = "", reference: str | None = None) -> list[RunRow]:
        """Runs without their specs, newest first: all, or at most so many, after the `cursor` of one.

        With a reference only those that it stands for (`oku_core.accounting.run_reference`).
        """
        fetch = functools.partial(run_table.fetch_runs, most=most, after=after, reference=reference)
        return self._file.read(fetch)

    def fetch_current(self) -> RunRecord | None:
        """The active run, else the pending one that has waited longest; None when all runs are at rest."""
        return self._file.read(run_table.fetch_current_run)

    def fetch_live(self) -> list[str]:
        """The runs that are pending or active, in the order of their turns."""
        return self._file.read(run_table.fetch_live_runs)

    def count_queued(self) -> int:
        """How many runs are pending or active."""
        return len(self.fetch_live())

    def count_by_state(self) -> dict[RunState, int]:
        """How many runs are in each state, those without a run among them."""
        return self._file.read(run_table.count_by_state)

    def find_longest_queued_s(self, now: float) -> float:
        """How long the pending run that has been queued longest has been so by `now`; 0 without one."""
        return self._file.read(functools.partial(run_table.find_longest_queued_s, now=now))

    def fetch_recent(self, rested_since: float, most: int) -> list[RunRow]:
        """The active runs, then those that came to rest since a time, the newest first; at most `most`."""
        return self._file.read(
            functools.partial(run_table.fetch_recent, rested_since=rested_since, most=most)
        )

    def fetch_standing(self, run: str) -> Standing:
        """How far a run is; takes the same time however long the run is."""
        return self._file.read(lambda transaction: _build_standing(transaction, run))

    def read_account(self, run: str, read: Callable[[RunAccount], _T]) -> _T:
        """What `read` makes of the account of a run, which nobody changes meanwhile; it is not copied.

        Raises:
            UnknownRunError: there is no such run.
            BreachError: its account cannot be read.
        """
        return self._file.read(lambda transaction: read(account_table.fetch_account(transaction, run)))

    def fetch_snapshot(self, run: str) -> Snapshot:
        """A run with everything that is kept for it at one instant, also while another process writes."""
        return self._file.read(lambda transaction: _build_snapshot(transaction, run))

    def read_threshold_basis(self, run: str, read: Callable[[ThresholdBasis], _T]) -> _T:
        """What `read` makes of what the thresholds of a run are judged by; nobody changes it meanwhile."""
        return self._file.read(lambda transaction: read(_build_threshold_basis(transaction, run)))

    def fetch_thresholds(self, run: str) -> dict[int, ThresholdRecord]:
        """What is kept of the thresholds of a run beside its account, by their places in the spec."""
        return self._file.read(lambda transaction: threshold_table.fetch_thresholds(transaction, run))

    def note_lost_threshold(self, run: str, number: int, now: float, text: str) -> None:
        """Note, once, that a threshold is lost for certain, and keep the text as an event.

        Args:
            run: its id.
            number: the place of the threshold in its spec, from 0.
            now: Unix time.
            text: says which one.
        """

        def note(transaction: Transaction) -> None:
            if threshold_table.note_lost(transaction, run, number, now):
                history_table.note(transaction, run, Event(at=now, type=EventType.THRESHOLD_LOST, text=text))

        self._file.change(note)

    def fetch_stretch_basis(self, run: str, since: int) -> StretchBasis:
        """What thresholds over some seconds in a row are judged by, with the seconds from one on."""
        return self._file.read(lambda transaction: _build_stretch_basis(transaction, run, since))

    def keep_stretches(self, run: str, kept: Mapping[int, ThresholdRecord]) -> None:
        """Keep what thresholds over some seconds in a row came to, by their places in the spec.

        When they were lost is not changed.
        """

        def keep(transaction: Transaction) -> None:
            for number, record in kept.items():
                threshold_table.keep_stretches(transaction, run, number, record)

        self._file.change(keep)

    def requeue(self, run: str, now: float, reason: str) -> None:
        """Put a pending run at the end of the queue, and keep the reason as an event."""
        requeue = functools.partial(lifecycle.requeue, run=run, now=now, reason=reason)
        conservation.change(self._file, requeue, now)

    def change_state(self, run: str, state: RunState, now: float, reason: str = "") -> RunRecord:
        """Put a run into another state.

        Raises:
            UnknownRunError: there is none.
            TransitionError: it cannot get there from where it is.
        """

        def change(transaction: Transaction) -> RunRecord:
            if state == RunState.PENDING:
                run_table.set_published(transaction, run, is_published=self._publishes)
            lifecycle.enter_state(transaction, run, state, now, reason)
            lifecycle.follow_up(transaction, run, now)
            return run_table.fetch_run(transaction, run)

        return conservation.change(self._file, change, now)

    def begin(self, run: str, now: float, missing: int = 0, reason: str = "") -> RunRecord:
        """Let a pending run begin, and keep the reason if it does so without some of its workers.

        Raises:
            UnknownRunError: there is none.
            TransitionError: it is not pending any more.
        """

        def begin(transaction: Transaction) -> RunRecord:
            lifecycle.enter_state(transaction, run, RunState.RUNNING, now)
            if hook_table.is_teardown_due(transaction, run):
                lifecycle.enter_state(transaction, run, RunState.TEARING_DOWN, now)
            elif missing:
                lifecycle.note_missing_workers(transaction, run, now, missing, reason)
            return run_table.fetch_run(transaction, run)

        return conservation.change(self._file, begin, now)

    def end_time(self, run: str, now: float) -> bool:
        """Complete an active run whose time has passed, once it has no open leases; gives whether it is over.

        What is pending is left unused, and as many requests as are accounted were all of the run.
        """
        return conservation.change(self._file, functools.partial(run_end.end_time, run=run, now=now), now)

    def drop_in_flight(self, run: str) -> None:
        """Give the requests in flight of a run that is being cancelled no time to finish."""
        self._file.change(lambda transaction: run_table.drop_in_flight(transaction, run))

    def give_up(self, run: str, state: RunState, now: float, reason: str) -> None:
        """Take back all leases of a running run, and put it into a state of rest."""
        give_up = functools.partial(reclaim.give_up_run, run=run, state=state, now=now, reason=reason)
        conservation.change(self._file, give_up, now)

    def park_interrupted(self, now: float, *, but: str | None = None) -> None:
        """Pause what a stack left running when it was killed; only for a stack that is about to start.

        The leases are taken back, as nobody has them any more. The run `but` keeps its state and goes on. A
        run that does not balance fails; the others are paused all the same.
        """
        for run in self._file.read(run_table.fetch_live_runs):
            park = functools.partial(reclaim.park_run, run=run, now=now, goes_on=run == but)
            try:
                conservation.change(self._file, park, now)
            except BreachError:
                _log.exception("a run has failed", extra={"run": run})

    def set_served(self, run: str, served: int) -> None:
        """Keep what the delay servers counted for a run at rest; does nothing for any other."""
        self._file.change(lambda transaction: run_table.set_served(transaction, run, served))

    def note_servers(self, run: str, stores: Iterable[str], now: float) -> None:
        """Note that these stores of delay servers were seen with a run."""
        self._file.change(lambda transaction: server_table.note_servers(transaction, run, stores, now))

    def fetch_servers(self, run: str) -> dict[str, float]:
        """The stores of the delay servers that were seen with a run, and when each was last seen."""
        return self._file.read(lambda transaction: server_table.fetch_servers(transaction, run))

    def fetch_worker_names(self, run: str) -> set[str]:
        """The names of the workers that have worked on a run."""
        return self._file.read(
            lambda transaction: {worker.name for worker in work_table.fetch_workers(transaction, run)}
        )

    def keep_processes(self, run: str, processes: Iterable[ProcessSummary]) -> None:
        """Keep the peak memory of the processes that are not workers."""
        self._file.change(lambda transaction: work_table.keep_processes(transaction, run, processes))


def _build_standing(transaction: Transaction, run: str) -> Standing:
    return Standing(
        record=run_table.fetch_run(transaction, run),
        lengths=slice_table.sum_lengths(transaction, run),
        leases={lease.id: lease.outcomes for lease in lease_table.fetch_open_leases(transaction, run)},
        period=period_table.fetch_period(transaction, run),
        not_sent=account_table.sum_not_sent(transaction, run),
        reasons=account_table.fetch_reasons(transaction, run),
    )


def _build_snapshot(transaction: Transaction, run: str) -> Snapshot:
    record = run_table.fetch_run(transaction, run)
    breach = record.reason if record.is_broken else None
    accounts = RunAccount()
    try:
        accounts = account_table.fetch_account(transaction, run)
        lengths = conservation.check_run(transaction, run, accounts)
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
    run, periods = record.run, period_table.fetch_periods(transaction, record.run)
    if not record.spec.has_clock and record.state is RunState.COMPLETED and record.periods == 1:
        periods = [PeriodRecord(record.started_at or 0.0, 0.0)]
    is_cut = record.spec.is_timed and record.requests < record.spec.requests
    settled_to = math.inf if is_cut else history_table.find_busy_to(transaction, run)
    return Course(series_table.fetch_series(transaction, run), periods, settled_to)


def _build_stretch_basis(transaction: Transaction, run: str, since: int) -> StretchBasis:
    return StretchBasis(
        series=series_table.fetch_series(transaction, run, since),
        periods=period_table.fetch_periods(transaction, run),
        leases=lease_table.fetch_open_leases(transaction, run),
        pending=slice_table.sum_lengths(transaction, run).pending,
    )


def _build_threshold_basis(transaction: Transaction, run: str) -> ThresholdBasis:
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
        periods=period_table.fetch_periods(transaction, run),
        settled_to=math.inf if is_at_rest else history_table.fetch_settled_to(transaction, run),
    )
